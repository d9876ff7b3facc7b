// Package client is the Go SDK. A Client takes numbers from a cluster:
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
//   - see the last number without taking one: [Client.Current]. Raise it: [Client.Raise].
//   - take a range for a table of a database: [Client.TakeSegment]. Number invoices: [Client.NextNumbers].
//   - make snowflake IDs: [Client.NextID], [Client.Generate]. Make them in this process: [Client.NewLocal].
//   - bound a call: give its ctx a deadline, or set Config.Timeout.
//   - find out why a call failed: errors.Is with the errors here and in package seq.
//   - secure the connections: Config.TLS, Config.TokenFile.
//   - count retries: [Client.Stats], or package clientmetrics for Prometheus.
//
// # Guarantees
//
// During a failover calls are delayed and do not fail, as long as their contexts allow. A retry can only
// skip numbers and never repeats one, because the Client discards an answer that no caller waits for.
// Consecutive calls for one key return rising numbers.
//
// A caller that cancels its call disturbs no other caller. A key that waits at the server does not delay
// other keys of its batch. Config.MaxQueue limits the calls that wait. The Client refuses more of them with
// seq.ErrOverloaded.
//
// In a space of mode=exact every take has a request id, which all of its attempts repeat. If the first
// attempt took numbers, a later attempt returns the same numbers. So retries skip nothing there.
//
// A Set that is out of service delays no calls for other Sets. A call for it fails with a seq.ErrNoQuorum
// that names the Set. That takes a second if its AllocSvr report that they have no quorum. It takes about
// three seconds if no AllocSvr answers, and the error is an ErrUnreachable too. Later calls fail at once
// until an AllocSvr of the Set answers again.
//
// With Config.Fallback the Client makes snowflake IDs itself while the service is unavailable.
//
// # Implementation
//
// The Client uses three packages. internal/sdk/call asks servers until one answers. internal/sdk/route
// knows the owner of each section. internal/sdk/stream sends the keys of many callers in one message.
//
// What belongs here: the API of programs. What does not: how a call travels, and anything that hands out a
// number that no server lent.
package client
