package com.github.seqsvr.client;

/**
 * Numbers that hold the mark of their key until done, cancel, or the end of their life, which is deadlineMs by this
 * machine's clock, in ms since 1970.
 */
public record Ticket(Key key, long first, long last, long id, long lifeMs, long deadlineMs, boolean replayed) {}
