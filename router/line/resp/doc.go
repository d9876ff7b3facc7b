// Package resp speaks the protocol of Redis, RESP2 and RESP3, so that programs which take
// their numbers from INCR go on doing so:
//
//	INCR seq:42              the next number of uid 42; seq:SPACE/42 in another space
//	INCR seq:room:7          the next number of a string key, in every command; seq:"42" if it
//	                         looks like a uid, and seq:SPACE/a/b or seq:"a/b" if it has a slash
//	INCRBY seq:42 10         ten numbers: the reply is the last of them
//	SEQ.NEXT seq:orders/42 [COUNT n] [ID id [SENT unix_ms]]
//	                         first, last, and whether the ID had them before: 1 or 0; an ID
//	                         in spaces of mode=exact only
//	SEQ.LOOKUP seq:orders/42 ID id
//	                         first and last that the ID has got; nil if there are none
//	SEQ.OPEN seq:inbox/42 [COUNT n] [LIFE ms] [ID id [SENT unix_ms]]
//	                         first, last, ticket, its life in ms, and 1 or 0 as above; in
//	                         spaces with tickets only, as the next three
//	SEQ.DONE seq:inbox/42 first ticket
//	                         the numbers of the ticket are committed; SEQ.CANCEL if they
//	                         will not be
//	SEQ.MARK seq:inbox/42 ... for each key mark, fence, last number, and the ms for which
//	                         the mark is not known, when mark and fence are nil
//	SEQ.WAIT seq:inbox/42 after ms
//	                         waits until the mark is above after, for ms at the most: mark,
//	                         fence, last number, the ms for which the mark is not known, and
//	                         the ms that held, which are 55000 at the most and 0 in a MULTI
//	SEQ.RAISE seq:42 1000    lifts the key to 1000, unless it is above: the number that it has
//	                         reached
//	GET seq:42, MGET ...     the last number handed out, or a bound above it after a
//	                         takeover; nil if there was none
//	INCR tag:orders          the next number of a segment tag; INCRBY for many
//	INCR snowflake:1         one snowflake ID of a namespace, by name or number, as a string
//	MULTI ... EXEC           a pipeline that takes nothing before EXEC, nor if it is wrong
//
// and what clients say when they connect: HELLO, AUTH, CLIENT, COMMAND, INFO, CLUSTER, PING,
// ECHO, SELECT 0, QUIT. Anything else gets the answer of a server that does not know the
// command.
//
// It is a dialect of package line, which answers the commands of a connection in their order. A
// number is handed out at most once, as everywhere. Unlike in Redis, a number may be skipped, and
// nothing can be set or lowered. An error that begins with TRYAGAIN is worth repeating;
// the others begin with ERR, or a word that clients know.
//
// Parser is pure: bytes in, commands out, bounded in every direction. What belongs here:
// the protocol and what its commands mean. What does not: connections and the order of work, which
// are package line's.
package resp
