package com.github.seqsvr.client;

/**
 * A key with options. In a space of mode=exact the same requestId gets the same numbers again. firstSentMs is when it
 * was first sent, in ms since 1970: keep it beside the id. If zero, it is now.
 */
public record Ask(Key key, int count, String requestId, long firstSentMs) {
  static final int MAX_COUNT = 1 << 20;

  public Ask {
    if (count < 1 || count > MAX_COUNT) throw SeqException.bad("count is " + count + ", expected 1 to " + MAX_COUNT);
  }

  /** Returns an ask for one number. */
  public static Ask of(Key key) { return new Ask(key, 1, null, 0); }

  /** Returns an ask for n numbers in a row. */
  public Ask count(int n) { return new Ask(key, n, requestId, firstSentMs); }

  /** Returns an ask with a request id that is sent now for the first time. */
  public Ask id(String requestId) { return id(requestId, System.currentTimeMillis()); }

  /** Returns an ask with a request id that was first sent at a time. */
  public Ask id(String requestId, long firstSentMs) { return new Ask(key, count, requestId, firstSentMs); }
}
