// Package resp speaks the protocol of Redis, RESP2 and RESP3, so that programs which take
// their numbers from INCR go on doing so:
//
//	INCR seq:42              the next number of uid 42; seq:SPACE/42 in another space
//	INCRBY seq:42 10         ten numbers: the reply is the last of them
//	GET seq:42, MGET ...     the last number handed out, nil if there was none
//	INCR tag:orders          the next number of a segment tag; INCRBY for many
//	INCR snowflake:1         one snowflake ID of a namespace, by name or number
//
// and what clients say when they connect: HELLO, CLIENT, COMMAND, PING, ECHO, SELECT 0,
// QUIT. Anything else gets the answer of a server that does not know the command.
//
// It guarantees that the commands of a connection are answered in their order, that a
// pipeline is sent on as a few batches instead of one call a command, and that a number is
// handed out at most once, as everywhere. Unlike there, a number may be skipped, and
// nothing can be set or lowered. An error that begins with TRYAGAIN is worth repeating;
// all others begin with ERR.
//
// Parser is pure: bytes in, commands out, bounded in every direction. What belongs here:
// the protocol and what its commands mean. What does not: owners, retries and batches,
// which are package client's.
package resp
