package com.github.seqsvr.client;

import java.time.Duration;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;

/** An AsyncClient whose methods wait. Threads share it. */
public final class Client implements AutoCloseable {
  private final AsyncClient of;

  /** Makes a client. It connects with its first call. */
  public Client(Options options) { of = new AsyncClient(options); }

  /** Returns the client whose methods do not wait. Both share a connection. */
  public AsyncClient async() { return of; }

  /** Takes the next number of a key. */
  public long next(Key key) { return await(of.next(key)); }

  /** Takes numbers of a key in a row. */
  public Range take(Ask ask) { return await(of.take(ask)); }

  /** Takes numbers of many keys. An entry that failed has an error. */
  public List<Range> nextBatch(List<Ask> asks) { return await(of.nextBatch(asks)); }

  /** Returns the numbers that a request id has got, or null. */
  public Range lookup(Key key, String requestId) { return await(of.lookup(key, requestId)); }

  /** Returns the last number that was taken, or a bound above it after a crash; 0 if there is none. */
  public long current(Key key) { return await(of.current(key)); }

  /** Lifts a key to atLeast, and returns the number that it has reached. */
  public long raise(Key key, long atLeast) { return await(of.raise(key, atLeast)); }

  /** Takes snowflake IDs of a namespace, such as "default". */
  public List<Long> generate(String namespace, int count) { return await(of.generate(namespace, count)); }

  /** Takes numbers of a segment tag in a row. */
  public Range segment(String tag, int count) { return await(of.segment(tag, count)); }

  /** Takes numbers with a ticket of the space's life. */
  public Ticket open(Ask ask) { return await(of.open(ask, null)); }

  /** Takes numbers with a ticket. */
  public Ticket open(Ask ask, Duration life) { return await(of.open(ask, life)); }

  /** Ends a ticket, since its numbers were committed. */
  public void done(Ticket ticket) { await(of.done(ticket)); }

  /** Ends a ticket whose numbers will not be committed. */
  public void cancel(Ticket ticket) { await(of.cancel(ticket)); }

  /** Returns the mark of a key. */
  public Mark mark(Key key) { return await(of.mark(key)); }

  /** Returns the mark once it is above after, and after the time within at the latest. A wait holds a connection. */
  public Mark wait(Key key, long after, Duration within) { return await(of.wait(key, after, within)); }

  /** Returns the marks of a key, each above the one before and above after. hasNext is always true; next waits. */
  public Iterator<Mark> watch(Key key, long after) {
    return new Iterator<>() {
      private long at = after;

      @Override public boolean hasNext() { return true; }

      @Override public Mark next() {
        while (true) {
          try {
            Mark mark = Client.this.wait(key, at, Duration.ofSeconds(50));
            if (mark.known() && mark.seq() > at) {
              at = mark.seq();
              return mark;
            }
          } catch (SeqException e) {
            if (!e.retryable) throw e;
          }
        }
      }
    };
  }

  /** Ends all connections. Calls without an answer fail with CLOSED. */
  @Override public void close() { of.close(); }

  private static <T> T await(CompletableFuture<T> call) {
    try {
      return call.get();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      call.cancel(false);
      throw new SeqException("INTERRUPTED", "the thread was interrupted; the call may have had an effect", true);
    } catch (ExecutionException e) {
      if (e.getCause() instanceof SeqException fault) { // with this thread's stack
        throw new SeqException(fault.code, fault.getMessage(), fault.retryable, fault.first, fault.count);
      }
      throw new CompletionException(e.getCause());
    }
  }
}
