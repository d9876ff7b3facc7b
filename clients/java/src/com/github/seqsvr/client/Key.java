package com.github.seqsvr.client;

/** A sequence: of a uid or of a string, in the client's space or in one of its own. */
public final class Key {
  final String space; // null means the client's
  private final String text;

  private Key(String space, String text) {
    this.space = space;
    this.text = text;
  }

  /** Returns the key of a uid of 0 to 2^63-1. */
  public static Key of(long uid) {
    if (uid < 0) throw SeqException.bad("uid is " + uid + ", expected 0 or more, or Key.ofUnsigned");
    return new Key(null, Long.toString(uid));
  }

  /** Returns the key of a uid of 64 bits without a sign. */
  public static Key ofUnsigned(long uid) { return new Key(null, Long.toUnsignedString(uid)); }

  /** Returns the key of a string, whatever it looks like. */
  public static Key of(String name) {
    if (name == null || name.isEmpty()) throw SeqException.bad("key is empty, expected a uid or a string");
    return new Key(null, '"' + name + '"'); // in quotes, so that it is never taken for a UID
  }

  /** Returns this key in a space. An empty space is the default space. */
  public Key in(String space) { return new Key(space, text); }

  /** Returns the key as RESP has it. prefix is the client's. */
  String name(String prefix) { return space == null ? prefix + text : prefixOf(space) + text; }

  static String prefixOf(String space) { return space.isEmpty() ? "seq:" : "seq:" + space + "/"; }

  @Override public String toString() { return space == null ? text : space + "/" + text; }
}
