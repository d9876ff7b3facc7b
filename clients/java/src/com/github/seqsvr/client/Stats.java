package com.github.seqsvr.client;

/** What a client did so far: commands in how many writes, repeated commands, connections. */
public record Stats(long commands, long writes, long retries, long connections) {}
