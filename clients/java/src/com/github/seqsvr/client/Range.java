package com.github.seqsvr.client;

/**
 * The numbers first to last, both included. replayed says that the request id had them before. A Range of nextBatch
 * that has an error has no numbers; otherwise error is null.
 */
public record Range(long first, long last, boolean replayed, SeqException error) {}
