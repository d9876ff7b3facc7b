package com.github.seqsvr.client;

import static com.github.seqsvr.client.Connection.command;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.Executors;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Function;

/**
 * A client for a whole program. Calls that come while a write is under way travel together in the next one. A future
 * that fails has a SeqException as its cause. Stages run on the thread that reads replies, so a stage must not block:
 * use the Async methods of CompletableFuture for one that does.
 */
public final class AsyncClient implements AutoCloseable {
  private static final int SWEEP_MS = 50; // between two looks at deadlines
  private static final long LONGEST_WAIT_MS = 50_000; // of one wait at a router, which allows 55 s
  private static final long MAX_SEQ = (1L << 53) - 1;

  private final Options options;
  private final String prefix;
  private final ThreadFactory daemons = work -> {
    Thread t = new Thread(work, "seqsvr-client");
    t.setDaemon(true);
    return t;
  };
  private final ScheduledExecutorService clock = new ScheduledThreadPoolExecutor(1, daemons);
  private final ExecutorService waiters = Executors.newCachedThreadPool(daemons);
  private final AtomicLong commands = new AtomicLong(), writes = new AtomicLong(), retries = new AtomicLong(), connections = new AtomicLong();

  // All below is guarded by this.
  private ArrayDeque<Call> queue = new ArrayDeque<>(); // to be sent
  private ArrayDeque<Call> sent = new ArrayDeque<>(); // without a reply, of connection
  private final Set<Call> pausing = new HashSet<>();
  private final Set<Connection> waits = new HashSet<>();
  private int waiting;
  private Connection connection; // if null, the writer makes one when there is something to send
  private int at, waitAt; // index of the address in use, and of that of waits
  private long heard; // when the connection last brought something
  private SeqException last; // why a connection was lost
  private boolean dispatching; // the reader completes calls, and wakes the writer after the last one
  private boolean closed;

  /** Makes a client. It connects with its first call. */
  public AsyncClient(Options options) {
    this.options = options;
    prefix = Key.prefixOf(options.space);
    at = waitAt = ThreadLocalRandom.current().nextInt(options.addresses.size()); // so that clients divide among routers
    clock.scheduleWithFixedDelay(this::sweep, SWEEP_MS, SWEEP_MS, TimeUnit.MILLISECONDS);
    daemons.newThread(this::write).start();
  }

  /** Returns the address in use. */
  public synchronized String address() { return options.addresses.get(at).toString(); }

  /** Returns what the client did so far. */
  public Stats stats() { return new Stats(commands.get(), writes.get(), retries.get(), connections.get()); }

  /** Takes the next number of a key. */
  public CompletableFuture<Long> next(Key key) {
    String name = key.name(prefix);
    return call(command("INCR", name), reply -> (Long) reply);
  }

  /** Takes numbers of a key in a row. */
  public CompletableFuture<Range> take(Ask ask) { return this.<Range>submit(List.of(taking(ask))).get(0); }

  /** Takes numbers of many keys. An entry that failed has an error. */
  public CompletableFuture<List<Range>> nextBatch(List<Ask> asks) {
    List<Call> calls = new ArrayList<>(asks.size());
    for (Ask ask : asks) calls.add(taking(ask));
    List<CompletableFuture<Range>> all = submit(calls);
    return CompletableFuture.allOf(all.toArray(CompletableFuture[]::new)).handle((done, failed) -> {
      List<Range> out = new ArrayList<>(all.size());
      for (CompletableFuture<Range> one : all) out.add(one.handle((range, err) -> err == null ? range : new Range(0, 0, false, faultOf(err))).join());
      return out;
    });
  }

  /** Returns the numbers that a request id has got, or null. */
  public CompletableFuture<Range> lookup(Key key, String requestId) {
    return call(command("SEQ.LOOKUP", key.name(prefix), "ID", requestId), reply -> {
      if (reply == null) return null;
      List<?> got = (List<?>) reply;
      return new Range((Long) got.get(0), (Long) got.get(1), true, null);
    });
  }

  /** Returns the last number that was taken, or a bound above it after a crash; 0 if there is none. */
  public CompletableFuture<Long> current(Key key) {
    return call(command("GET", key.name(prefix)), reply -> reply == null ? 0L : Long.valueOf((String) reply));
  }

  /** Lifts a key to atLeast, and returns the number that it has reached. */
  public CompletableFuture<Long> raise(Key key, long atLeast) {
    if (atLeast < 0 || atLeast > MAX_SEQ) throw SeqException.bad("atLeast is " + atLeast + ", expected 0 to " + MAX_SEQ);
    return call(command("SEQ.RAISE", key.name(prefix), atLeast), reply -> (Long) reply);
  }

  /** Takes snowflake IDs of a namespace, such as "default". */
  public CompletableFuture<List<Long>> generate(String namespace, int count) {
    if (count < 1 || count > 10_000) throw SeqException.bad("count is " + count + ", expected 1 to 10000");
    byte[] one = command("INCR", "snowflake:" + namespace);
    List<Call> calls = new ArrayList<>(count);
    for (int i = 0; i < count; i++) calls.add(new Call(one, reply -> Long.valueOf((String) reply)));
    List<CompletableFuture<Long>> all = submit(calls);
    return CompletableFuture.allOf(all.toArray(CompletableFuture[]::new)).thenApply(done -> all.stream().map(CompletableFuture::join).toList());
  }

  /** Takes numbers of a segment tag in a row. */
  public CompletableFuture<Range> segment(String tag, int count) {
    return call(command("INCRBY", "tag:" + tag, count), reply -> new Range((Long) reply - count + 1, (Long) reply, false, null));
  }

  /** Takes numbers with a ticket. If life is null, it is the space's. */
  public CompletableFuture<Ticket> open(Ask ask, Duration life) {
    List<Object> words = new ArrayList<>(List.of("SEQ.OPEN", ask.key().name(prefix), "COUNT", ask.count()));
    if (life != null) words.addAll(List.of("LIFE", life.toMillis()));
    words.addAll(request(ask));
    long begun = System.currentTimeMillis();
    return call(command(words.toArray()), reply -> {
      List<?> got = (List<?>) reply;
      long lives = (Long) got.get(3);
      return new Ticket(ask.key(), (Long) got.get(0), (Long) got.get(1), (Long) got.get(2), lives, begun + lives, (Long) got.get(4) == 1);
    });
  }

  /** Ends a ticket, since its numbers were committed. */
  public CompletableFuture<Void> done(Ticket t) { return call(command("SEQ.DONE", t.key().name(prefix), t.first(), t.id()), reply -> null); }

  /** Ends a ticket whose numbers will not be committed. */
  public CompletableFuture<Void> cancel(Ticket t) { return call(command("SEQ.CANCEL", t.key().name(prefix), t.first(), t.id()), reply -> null); }

  /** Returns the mark of a key. */
  public CompletableFuture<Mark> mark(Key key) {
    return call(command("SEQ.MARK", key.name(prefix)), reply -> Mark.of(((List<?>) reply).get(0)));
  }

  /** Returns the mark once it is above after, and after the time within at the latest. A wait holds a connection and a thread. */
  public CompletableFuture<Mark> wait(Key key, long after, Duration within) {
    if (after < 0 || after > MAX_SEQ) throw SeqException.bad("after is " + after + ", expected 0 to " + MAX_SEQ);
    return CompletableFuture.supplyAsync(() -> waitFor(key.name(prefix), after, System.nanoTime() + within.toNanos()), waiters);
  }

  /** Ends all connections. Calls without an answer fail with CLOSED. */
  @Override public void close() {
    List<Call> left;
    synchronized (this) {
      if (closed) return;
      closed = true;
      left = new ArrayList<>(queue);
      left.addAll(sent);
      left.addAll(pausing);
      queue.clear();
      sent.clear();
      pausing.clear();
      if (connection != null) connection.close();
      waits.forEach(Connection::close);
      notifyAll();
    }
    clock.shutdownNow();
    waiters.shutdown();
    for (Call call : left) call.future.completeExceptionally(SeqException.closed());
  }

  static SeqException faultOf(Throwable err) {
    while (err instanceof CompletionException && err.getCause() != null) err = err.getCause();
    if (err instanceof SeqException ours) return ours;
    throw new IllegalStateException(err);
  }

  private static final class Call {
    final byte[] text;
    final Function<Object, ?> read;
    final CompletableFuture<Object> future = new CompletableFuture<>();
    final long begun = System.nanoTime();
    int attempts;
    SeqException fault; // of the last attempt

    Call(byte[] text, Function<Object, ?> read) {
      this.text = text;
      this.read = read;
    }
  }

  private Call taking(Ask ask) {
    String name = ask.key().name(prefix);
    int count = ask.count();
    if (ask.requestId() == null) {
      byte[] text = count == 1 ? command("INCR", name) : command("INCRBY", name, count);
      return new Call(text, reply -> new Range((Long) reply - count + 1, (Long) reply, false, null));
    }
    List<Object> words = new ArrayList<>(List.of("SEQ.NEXT", name, "COUNT", count));
    words.addAll(request(ask));
    return new Call(command(words.toArray()), reply -> {
      List<?> got = (List<?>) reply;
      return new Range((Long) got.get(0), (Long) got.get(1), (Long) got.get(2) == 1, null);
    });
  }

  /** Returns the words of a request id, which all attempts repeat. */
  private static List<Object> request(Ask ask) {
    if (ask.requestId() == null) return List.of();
    return List.of("ID", ask.requestId(), "SENT", ask.firstSentMs() == 0 ? System.currentTimeMillis() : ask.firstSentMs());
  }

  private <T> CompletableFuture<T> call(byte[] text, Function<Object, T> read) { return this.<T>submit(List.of(new Call(text, read))).get(0); }

  /** Sends calls until each has an answer that is worth no other attempt, or until the deadline. */
  @SuppressWarnings("unchecked")
  private <T> List<CompletableFuture<T>> submit(List<Call> calls) {
    SeqException refused = null;
    synchronized (this) {
      int unanswered = queue.size() + sent.size();
      if (closed) {
        refused = SeqException.closed();
      } else if (unanswered >= options.maxQueue) {
        refused = new SeqException("OVERLOADED", unanswered + " calls have no answer yet", true);
      } else {
        enqueue(calls);
      }
    }
    List<CompletableFuture<T>> out = new ArrayList<>(calls.size());
    for (Call call : calls) {
      if (refused != null) call.future.completeExceptionally(refused);
      out.add((CompletableFuture<T>) (CompletableFuture<?>) call.future);
    }
    return out;
  }

  /** Is called with the lock. */
  private void enqueue(List<Call> calls) {
    boolean idle = queue.isEmpty();
    for (Call call : calls) {
      call.attempts++;
      queue.add(call);
    }
    if (idle && !dispatching) notifyAll();
  }

  /** The thread that connects and writes. */
  private void write() {
    int failures = 0;
    var out = new ByteArrayOutputStream();
    while (true) {
      Connection to;
      synchronized (this) {
        while (!closed && (queue.isEmpty() || dispatching)) {
          try {
            wait();
          } catch (InterruptedException e) {
            return; // nothing interrupts this thread
          }
        }
        if (closed) return;
        to = connection;
      }
      if (to == null) {
        to = connect();
        failures = to == null ? failures + 1 : 0;
        if (to == null) {
          if (failures >= options.addresses.size()) sleep(pauseOf(failures / options.addresses.size()));
          continue;
        }
      }
      out.reset();
      synchronized (this) {
        if (connection != to) continue;
        if (sent.isEmpty()) heard = System.nanoTime();
        for (Call call : queue) {
          if (call.future.isDone()) continue;
          out.writeBytes(call.text);
          sent.add(call);
          commands.incrementAndGet();
        }
        queue.clear();
      }
      if (out.size() == 0) continue;
      writes.incrementAndGet();
      try {
        to.write(out.toByteArray());
      } catch (IOException e) {
        lose(to, SeqException.disconnected(to.address + ": " + e.getMessage()));
      }
    }
  }

  private Connection connect() {
    Options.Address address;
    synchronized (this) {
      address = options.addresses.get(at);
    }
    connections.incrementAndGet();
    try {
      Connection made = new Connection(options, address);
      synchronized (this) {
        if (closed) {
          made.close();
          return null;
        }
        connection = made;
        heard = System.nanoTime();
      }
      daemons.newThread(() -> read(made)).start();
      return made;
    } catch (SeqException e) {
      List<Call> refused = List.of();
      synchronized (this) {
        last = e;
        at = (at + 1) % options.addresses.size();
        if (!e.retryable) { // a token that does not hold
          refused = new ArrayList<>(queue);
          queue.clear();
        }
      }
      for (Call call : refused) call.future.completeExceptionally(e);
      return null;
    }
  }

  /** The thread that reads a connection. */
  private void read(Connection from) {
    List<Call> calls = new ArrayList<>();
    List<Object> replies = new ArrayList<>();
    try {
      while (true) {
        do {
          replies.add(from.read());
        } while (from.more());
        synchronized (this) {
          heard = System.nanoTime();
          if (connection != from) return;
          if (replies.size() > sent.size()) { // such as that there are too many connections
            lose(from, replies.get(0) instanceof SeqException e ? e : SeqException.disconnected(from.address + ": a reply to nothing"));
            return;
          }
          for (int i = 0; i < replies.size(); i++) calls.add(sent.poll());
          dispatching = true;
        }
        try {
          for (int i = 0; i < calls.size(); i++) answer(calls.get(i), replies.get(i));
        } finally {
          synchronized (this) {
            dispatching = false;
            if (!queue.isEmpty()) notifyAll();
          }
        }
        calls.clear();
        replies.clear();
      }
    } catch (IOException | ClassCastException e) { // a router that is none
      lose(from, SeqException.disconnected(from.address + ": " + e.getMessage()));
    }
  }

  private void answer(Call call, Object reply) {
    if (!(reply instanceof SeqException fault)) {
      call.future.complete(call.read.apply(reply));
    } else if (fault.retryable) {
      again(call, fault, pauseOf(call.attempts - 1));
    } else {
      call.future.completeExceptionally(fault);
    }
  }

  private long deadline(Call call) { return call.begun + options.timeout.toNanos(); }

  private void again(Call call, SeqException fault, long pauseMs) {
    call.fault = fault;
    boolean late = deadline(call) - System.nanoTime() <= TimeUnit.MILLISECONDS.toNanos(pauseMs);
    synchronized (this) {
      if (closed) {
        fault = SeqException.closed();
      } else if (!late) {
        retries.incrementAndGet();
        pausing.add(call);
        clock.schedule(() -> resend(call), pauseMs, TimeUnit.MILLISECONDS);
        return;
      }
    }
    call.future.completeExceptionally(fault);
  }

  private synchronized void resend(Call call) {
    if (pausing.remove(call) && !call.future.isDone()) enqueue(List.of(call));
  }

  private void lose(Connection lost, SeqException cause) {
    lost.close();
    List<Call> left;
    synchronized (this) {
      if (connection != lost) return;
      connection = null;
      last = cause;
      left = new ArrayList<>(sent);
      sent.clear();
      if (!left.isEmpty()) at = (at + 1) % options.addresses.size();
    }
    for (Call call : left) if (!call.future.isDone()) again(call, cause, 0);
  }

  private void sweep() {
    long now = System.nanoTime();
    List<Call> late = new ArrayList<>();
    Connection silent = null;
    SeqException why;
    synchronized (this) {
      why = last;
      for (ArrayDeque<Call> calls : List.of(queue, sent)) {
        for (Call call : calls) if (deadline(call) <= now) late.add(call);
      }
      queue.removeAll(late);
      if (connection != null && !sent.isEmpty() && now - heard > options.silence.toNanos()) silent = connection;
    }
    for (Call call : late) {
      SeqException fault = call.fault;
      if (fault == null) {
        long ms = TimeUnit.NANOSECONDS.toMillis(now - call.begun);
        fault = new SeqException("DEADLINE", "no answer in " + ms + " ms" + (why == null ? "" : ", last: " + why.getMessage()), true);
      }
      call.future.completeExceptionally(fault);
    }
    if (silent != null) lose(silent, SeqException.disconnected(silent.address + " was silent for " + options.silence));
  }

  private Mark waitFor(String name, long after, long until) {
    for (int failures = 0; ; ) {
      long left = Math.max(0, TimeUnit.NANOSECONDS.toMillis(until - System.nanoTime()));
      long pause;
      try {
        Mark mark = waitOnce(name, after, Math.min(left, LONGEST_WAIT_MS));
        long now = Math.max(0, TimeUnit.NANOSECONDS.toMillis(until - System.nanoTime()));
        if (mark.known() && mark.seq() > after || now == 0) return mark;
        pause = mark.known() ? 0 : Math.min(now, mark.knownInMs());
      } catch (SeqException e) {
        if (!e.retryable || System.nanoTime() >= until) throw e;
        pause = pauseOf(failures++);
      }
      sleep(pause);
    }
  }

  /** One wait, on a connection of its own, since a wait holds its connection. */
  private Mark waitOnce(String name, long after, long ms) {
    int place;
    synchronized (this) {
      if (closed) throw SeqException.closed();
      if (waiting >= options.maxWaits) throw new SeqException("OVERLOADED", waiting + " waits have a connection each", true);
      waiting++;
      place = waitAt;
    }
    connections.incrementAndGet();
    Connection c = null;
    try {
      c = new Connection(options, options.addresses.get(place));
      synchronized (this) {
        if (closed) throw SeqException.closed();
        waits.add(c);
      }
      c.within(ms + options.silence.toMillis());
      c.write(command("SEQ.WAIT", name, after, ms));
      Object reply = c.read();
      if (reply instanceof SeqException e) throw e;
      return Mark.of(reply);
    } catch (IOException | SeqException e) {
      synchronized (this) {
        if (closed) throw SeqException.closed();
        if (e instanceof SeqException ours && !ours.code.equals("DISCONNECTED")) throw ours;
        waitAt = (place + 1) % options.addresses.size();
      }
      throw e instanceof SeqException ours ? ours : SeqException.disconnected("wait: " + e.getMessage());
    } finally {
      synchronized (this) {
        waiting--;
        waits.remove(c);
      }
      if (c != null) c.close();
    }
  }

  private static long pauseOf(int n) { return (long) (Math.min(1000, 10L << Math.min(n, 7)) * ThreadLocalRandom.current().nextDouble(0.5, 1)); }

  private static void sleep(long ms) {
    try {
      Thread.sleep(ms);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new SeqException("INTERRUPTED", "the wait was interrupted", false);
    }
  }
}
