package com.github.seqsvr.client;

import java.util.List;

/**
 * Up to seq nothing is missing. last is at or above the last number that was taken. If the mark is not known, it will
 * be in knownInMs, and seq and fence are 0.
 */
public record Mark(boolean known, long seq, long fence, long last, long knownInMs) {
  static Mark of(Object reply) {
    List<?> all = (List<?>) reply;
    return new Mark(all.get(0) != null, number(all.get(0)), number(all.get(1)), number(all.get(2)), number(all.get(3)));
  }

  private static long number(Object value) { return value == null ? 0 : (Long) value; }
}
