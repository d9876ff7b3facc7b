package com.github.seqsvr.client;

/** An error of seqsvr, or of this library on the way to it. */
public final class SeqException extends RuntimeException {
  private static final long serialVersionUID = 1;

  /** A name of ErrorCode in error.proto without its prefix, or DISCONNECTED, CLOSED, INTERRUPTED or UNIMPLEMENTED. */
  public final String code;

  /** The same call may succeed later. The library has repeated it until its deadline. */
  public final boolean retryable;

  /** Of ID_CONFLICT: the numbers that the request id has got; otherwise 0. */
  public final long first, count;

  SeqException(String code, String message, boolean retryable) { this(code, message, retryable, 0, 0); }

  SeqException(String code, String message, boolean retryable, long first, long count) {
    super(message.startsWith(code) ? message : code + ": " + message);
    this.code = code;
    this.retryable = retryable;
    this.first = first;
    this.count = count;
  }

  static SeqException bad(String message) { return new SeqException("BAD_ARGUMENT", message, false); }

  static SeqException closed() { return new SeqException("CLOSED", "the client is closed", false); }

  static SeqException disconnected(String message) { return new SeqException("DISCONNECTED", message, true); }
}
