// Package client is the Go SDK: numbers from a cluster, by one call.
//
//	ctx := context.Background()
//	c, err := client.New(ctx, client.Config{Addrs: []string{"10.0.0.1:7400", "10.0.0.2:7400"}})
//	if err != nil {
//		log.Fatal(err)
//	}
//	defer c.Close()
//	n, err := c.Next(ctx, client.Key{UID: 42})
//	if err != nil {
//		log.Fatal(err)
//	}
//	fmt.Println(n)
//
// # How do I ...
//
//   - take many numbers at once: [Client.NextN] for one key, [Client.NextBatch] for many UIDs.
//   - use a string as the key: [StringKey], [Client.NextKeys].
//   - repeat a call after a crash and get the same number: [Client.TakeIdempotent], in a space of mode=exact.
//   - see the last number without taking one: [Client.Current]. Lift it: [Client.Raise].
//   - take a range for a table of a database: [Client.TakeSegment]. Numbers of invoices: [Client.NextNumbers].
//   - make snowflake IDs: [Client.NextID], [Client.Generate]. Make them in this process: [Client.NewLocal].
//   - bound a call: give its ctx a deadline, or set Config.Timeout.
//   - find out why a call failed: errors.Is with the errors here and in package seq.
//   - secure the connections: Config.TLS, Config.TokenFile.
//   - count retries: [Client.Stats], or package clientmetrics for Prometheus.
//
// # What a caller may rely on
//
// During a failover callers see delay, not errors, as long as their context allows. A retry
// can only skip numbers, never repeat one: an answer that no caller waits for any more is
// thrown away for good. Calls for one key that follow each other get rising numbers. A caller that
// leaves early disturbs no other, and a key that has to wait at the server does not hold up
// the keys that were in one batch with it. How many calls may wait is bounded
// (Config.MaxQueue); more are refused with seq.ErrOverloaded.
//
// In a space of mode=exact every take has a request id, which all of its attempts repeat:
// the server that answers in the end gives what the first attempt took, if that took
// anything. So nothing is skipped there by retries.
//
// A Set out of service holds up no calls for others. Calls for it end with a seq.ErrNoQuorum that
// names it: within a second if its AllocSvr say that they have no quorum, and within about three
// if none of them answers (then it is an ErrUnreachable, too). Afterwards they end at
// once, until an AllocSvr of the Set answers again.
//
// With Config.Fallback the Client makes snowflake IDs by itself while the service is away.
//
// # Where it is done
//
// The Client stands on three rooms: internal/sdk/call asks servers until one answers,
// internal/sdk/route knows which one has a section, and internal/sdk/stream carries keys of many callers
// in one message.
//
// What belongs here: what a program may call. What does not: how a call travels, and anything that
// hands out a number that was not lent to it.
package client
