import com.github.seqsvr.client.Ask;
import com.github.seqsvr.client.AsyncClient;
import com.github.seqsvr.client.Client;
import com.github.seqsvr.client.Key;
import com.github.seqsvr.client.Mark;
import com.github.seqsvr.client.Options;
import com.github.seqsvr.client.Range;
import com.github.seqsvr.client.SeqException;
import com.github.seqsvr.client.Stats;
import com.github.seqsvr.client.Ticket;
import java.io.BufferedReader;
import java.io.FileInputStream;
import java.io.InputStreamReader;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

/** java LibraryTest PHASE ADDR...: asserts what a cluster answers. tests/languages runs it. */
public final class LibraryTest {
  static final Duration PATIENCE = Duration.ofSeconds(120); // on a busy machine
  static final long BASE = Long.parseLong(System.getenv().getOrDefault("SEQ_BASE", "0")); // of the keys
  static String[] addresses;

  public static void main(String[] args) throws Exception {
    addresses = Arrays.copyOfRange(args, 1, args.length);
    switch (args[0]) {
      case "calls" -> calls();
      case "coalesce" -> coalesce();
      case "failover" -> failover();
      case "secure" -> secure();
      case "bench" -> bench();
      default -> throw new IllegalArgumentException(args[0]);
    }
    if (!args[0].equals("bench")) System.out.println("done");
    System.exit(0);
  }

  static Options options() { return Options.of(addresses).timeout(PATIENCE).connect(Duration.ofSeconds(60)).silence(Duration.ofSeconds(60)); }

  static Key uid(long n) { return Key.of(BASE + n); }

  static void same(Object got, Object want) {
    if (!Objects.equals(got, want)) throw new AssertionError("got " + got + ", want " + want);
  }

  static Range range(long first, long last, boolean replayed) { return new Range(first, last, replayed, null); }

  static SeqException fails(String code, boolean retryable, Supplier<?> call) {
    Object got;
    try {
      got = call.get();
    } catch (SeqException e) {
      same(e.code + " " + e.retryable, code + " " + retryable);
      return e;
    }
    throw new AssertionError("got " + got + ", want " + code);
  }

  static void calls() throws Exception {
    Client c = new Client(options()), orders = new Client(options().space("orders")), inbox = new Client(options().space("inbox"));
    same(c.next(uid(42)), 1L);
    same(c.take(Ask.of(uid(42)).count(100)), range(2, 101, false));
    same(c.current(uid(42)), 101L);
    same(c.current(uid(43)), 0L);
    same(c.raise(uid(42), 500), 500L);
    same(c.raise(uid(42), 5), 500L);
    same(c.next(uid(42).in("")), 501L);
    same(c.next(Key.ofUnsigned(-1 - BASE)), 1L);
    for (String text : List.of("" + BASE, "room:" + BASE, "a/" + BASE, "Zürich \"" + BASE + '"', "-" + BASE)) {
      Key name = Key.of(text);
      same(c.next(name), 1L);
      same(c.next(name.in("")), 2L);
      same(c.next(name.in("orders")), 1L);
    }
    List<Range> got = c.nextBatch(List.of(Ask.of(uid(1)), Ask.of(uid(2)), Ask.of(Key.of("x:" + BASE)).count(5), Ask.of(Key.of(1).in("nosuch")), Ask.of(uid(1))));
    same(got.stream().map(r -> r.first() + "-" + r.last() + (r.error() == null ? "" : r.error().code)).toList(), List.of("1-1", "1-1", "1-5", "0-0UNKNOWN_SPACE", "2-2"));

    List<Long> ids = c.generate("default", 300);
    same(new HashSet<>(ids).size(), 300);
    same(ids.stream().allMatch(id -> id > 1L << 53), true);
    fails("UNKNOWN_TAG", false, () -> c.segment("nosuch", 3));

    Ask once = Ask.of(uid(7)).count(3).id("msg-1");
    same(orders.take(once), range(1, 3, false));
    same(orders.take(once), range(1, 3, true));
    same(orders.lookup(uid(7), "msg-1"), range(1, 3, true));
    same(orders.lookup(uid(7), "msg-2"), null);
    same(orders.next(uid(7)), 4L);
    SeqException conflict = fails("ID_CONFLICT", false, () -> orders.take(once.count(1)));
    same(List.of(conflict.first, conflict.count), List.of(1L, 3L));
    fails("ID_EXPIRED", false, () -> orders.take(Ask.of(uid(7)).id("old", 1)));
    fails("ID_NOT_KEPT", false, () -> c.take(Ask.of(uid(1)).id("a")));
    fails("UNKNOWN_SPACE", false, () -> c.next(Key.of(1).in("nosuch")));
    fails("RAISE_TOO_FAR", false, () -> c.raise(uid(42), (1L << 53) - 1));
    fails("NO_TICKETS", false, () -> c.open(Ask.of(uid(1))));
    fails("BAD_ARGUMENT", false, () -> Ask.of(uid(1)).count(0));
    fails("BAD_ARGUMENT", false, () -> Key.of(-1));
    fails("BAD_ARGUMENT", false, () -> Key.of(""));
    fails("BAD_ARGUMENT", false, () -> Options.of("localhost"));

    Key u = Key.of("u:" + BASE);
    Ask ask = Ask.of(u);
    inbox.cancel(inbox.open(ask));
    same(inbox.wait(u, 0, PATIENCE).seq(), 1L); // a new owner knows marks after a ticket's life
    Ticket a = inbox.open(ask), b = inbox.open(ask.count(2), Duration.ofSeconds(9));
    same(List.of(a.first(), b.first(), b.last(), a.lifeMs(), b.lifeMs()), List.of(2L, 3L, 4L, 10_000L, 9000L));
    same(b.deadlineMs() > System.currentTimeMillis() - PATIENCE.toMillis(), true);
    inbox.done(b);
    Mark mark = inbox.mark(u);
    same(List.of(mark.known(), mark.seq(), mark.last()), List.of(true, 1L, 4L));
    CompletableFuture<Mark> waited = inbox.async().wait(u, 1, PATIENCE);
    Iterator<Mark> watched = inbox.watch(u, 1);
    inbox.done(a);
    same(waited.join().seq(), 4L);
    same(watched.next().seq(), 4L);
    CompletableFuture<Mark> later = CompletableFuture.supplyAsync(watched::next);
    inbox.cancel(inbox.open(ask));
    same(later.join().seq(), 5L);
    same(inbox.wait(u, 5, Duration.ofMillis(1)).seq(), 5L);
    fails("TICKET_ENDED", false, () -> { inbox.done(a); return null; });

    List<CompletableFuture<Long>> many = IntStream.range(0, 300).mapToObj(i -> c.async().next(uid(300))).toList();
    same(many.stream().map(CompletableFuture::join).toList(), LongStream.rangeClosed(1, 300).boxed().toList());
    CompletableFuture<Mark> left = inbox.async().wait(u, 5, PATIENCE);
    for (Client one : List.of(c, orders, inbox)) one.close();
    try {
      left.join();
      throw new AssertionError("a wait outlived its client");
    } catch (java.util.concurrent.CompletionException e) {
      same(((SeqException) e.getCause()).code, "CLOSED");
    }
    fails("CLOSED", false, () -> c.next(uid(1)));
  }

  /** The cluster counts how many pipelines 1,000 calls at a time were. */
  static void coalesce() {
    try (Client c = new Client(options())) {
      c.next(uid(1));
      c.nextBatch(LongStream.range(1000, 2000).mapToObj(i -> Ask.of(uid(i))).toList());
      Stats stats = c.async().stats();
      same(List.of(stats.commands(), stats.writes()), List.of(1001L, 2L));
    }
  }

  /** Callers take without a pause while the router that serves them is killed, and go on at the other one. */
  static void failover() throws Exception {
    Client first = new Client(options());
    while (!first.async().address().equals(addresses[0])) {
      first.close();
      first = new Client(options());
    }
    Client c = first;
    AtomicBoolean over = new AtomicBoolean();
    ExecutorService threads = Executors.newCachedThreadPool();
    List<CompletableFuture<Void>> takers = IntStream.range(0, 16).mapToObj(i -> CompletableFuture.runAsync(() -> {
      long last = 0;
      for (int more = 50; more > 0; more -= over.get() ? 1 : 0) {
        long n = c.next(uid(5000 + i));
        if (n <= last) throw new AssertionError(n + " after " + last);
        last = n;
      }
    }, threads)).toList();
    c.next(uid(1));
    System.out.println("kill");
    new BufferedReader(new InputStreamReader(System.in)).readLine();
    Client orders = new Client(options().space("orders"));
    Ask ask = Ask.of(uid(9)).count(2).id("over");
    Range ordered = orders.take(ask);
    over.set(true);
    for (CompletableFuture<Void> taker : takers) taker.join();
    same(c.async().address(), addresses[1]);
    same(c.async().stats().connections() > 1, true);
    same(orders.take(ask), range(ordered.first(), ordered.last(), true));
    Client nowhere = new Client(Options.of(addresses[0]).timeout(Duration.ofMillis(200)));
    fails("DEADLINE", true, () -> nowhere.next(uid(1)));
  }

  static void secure() throws Exception {
    KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
    store.load(null);
    try (var file = new FileInputStream(System.getenv("SEQ_CA"))) {
      store.setCertificateEntry("ca", CertificateFactory.getInstance("X.509").generateCertificate(file));
    }
    TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
    trust.init(store);
    SSLContext tls = SSLContext.getInstance("TLS");
    tls.init(null, trust.getTrustManagers(), null);
    try (Client c = new Client(options().tls(tls).token(System.getenv("SEQ_TOKEN"))); Client wrong = new Client(options().tls(tls).token("swordfish"));
        Client plain = new Client(options().timeout(Duration.ofSeconds(1)))) {
      same(c.next(uid(42)), 1L);
      fails("UNAUTHENTICATED", false, () -> wrong.next(uid(42)));
      try {
        throw new AssertionError("a port of TLS answered without: " + plain.next(uid(42)));
      } catch (SeqException e) {
        same(e.retryable, true);
      }
    }
  }

  /** How many numbers a second SEQ_CALLERS callers get in SEQ_SECONDS, as JSON; SEQ_THREADS=1 for callers that wait. */
  static void bench() throws Exception {
    int callers = Integer.parseInt(System.getenv().getOrDefault("SEQ_CALLERS", "64"));
    double seconds = Double.parseDouble(System.getenv().getOrDefault("SEQ_SECONDS", "3"));
    long warm = System.nanoTime() + 2_000_000_000L, end = warm + (long) (seconds * 1e9);
    LongAdder taken = new LongAdder();
    try (Client c = new Client(Options.of(addresses))) {
      List<CompletableFuture<Void>> all = new ArrayList<>();
      ExecutorService threads = Executors.newCachedThreadPool();
      for (int i = 0; i < callers; i++) {
        Key key = Key.of(10_000 + i);
        if (System.getenv("SEQ_THREADS") == null) {
          CompletableFuture<Void> done = new CompletableFuture<>();
          all.add(done);
          next(c.async(), key, 0, warm, end, taken, done);
          continue;
        }
        all.add(CompletableFuture.runAsync(() -> {
          long last = 0;
          for (long begun = System.nanoTime(); begun < end; begun = System.nanoTime()) {
            long n = c.next(key);
            if (n <= last) throw new AssertionError(n + " after " + last);
            last = n;
            if (begun >= warm) taken.increment();
          }
        }, threads));
      }
      for (CompletableFuture<Void> one : all) one.join();
    }
    System.out.println("{\"rate\":" + Math.round(taken.sum() / seconds) + "}");
  }

  static void next(AsyncClient c, Key key, long last, long warm, long end, LongAdder taken, CompletableFuture<Void> done) {
    long begun = System.nanoTime();
    if (begun >= end) {
      done.complete(null);
      return;
    }
    c.next(key).whenComplete((n, err) -> {
      if (err != null || n <= last) {
        done.completeExceptionally(err != null ? err : new AssertionError(n + " after " + last));
        return;
      }
      if (begun >= warm) taken.increment();
      next(c, key, n, warm, end, taken, done);
    });
  }
}
