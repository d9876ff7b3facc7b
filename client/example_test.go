package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/clienttest"
)

// inExample is what a cluster for tests needs of one.
type inExample struct {
	testing.TB
	ends []func()
}

func (e *inExample) Helper()            {}
func (e *inExample) Cleanup(end func()) { e.ends = append(e.ends, end) }
func (e *inExample) Fatal(why ...any)   { log.Fatal(why...) }

// example is a cluster, in place of the addresses of yours.
func example() (addrs []string, stop func()) {
	e := &inExample{}
	c := clienttest.Start(e, 2, seq.Space{Name: seq.DefaultSpace}, seq.Space{Name: "orders", Mode: seq.Exact})
	c.AddTag("orders")
	return c.Addrs(), func() {
		for _, end := range e.ends {
			end()
		}
	}
}

func ExampleClient_Next() {
	addrs, stop := example() // []string{"10.0.0.1:7400", "10.0.0.2:7400"}
	defer stop()
	ctx := context.Background()
	c, err := client.New(ctx, client.Config{Addrs: addrs})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	for range 3 {
		n, err := c.Next(ctx, client.Key{UID: 42})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(n)
	}
	n, err := c.Next(ctx, client.StringKey("", "room:7"))
	fmt.Println(n, err)
	// Output:
	// 1
	// 2
	// 3
	// 1 <nil>
}

func ExampleClient_NextBatch() {
	addrs, stop := example()
	defer stop()
	ctx := context.Background()
	c, err := client.New(ctx, client.Config{Addrs: addrs})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	got, err := c.NextBatch(ctx, "", []seq.UID{1, 2, 3}, []uint32{1, 1, 10})
	if err != nil {
		log.Fatal(err)
	}
	for i, r := range got {
		fmt.Println(i, r.First, r.Last, r.Err)
	}
	// Output:
	// 0 1 1 <nil>
	// 1 1 1 <nil>
	// 2 1 10 <nil>
}

func ExampleClient_TakeIdempotent() {
	addrs, stop := example()
	defer stop()
	ctx := context.Background()
	c, err := client.New(ctx, client.Config{Addrs: addrs})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	order := client.Key{Space: "orders", UID: 42}
	// Both are kept with what they are for, before the first attempt.
	request := client.Request{ID: "order-77", Sent: time.Now()}
	for range 2 { // the second might be made after a crash
		got, err := c.TakeIdempotent(ctx, order, 3, request)
		fmt.Println(got.First, got.Last, got.Replayed, err)
	}
	var had *seq.IDConflict
	_, err = c.TakeIdempotent(ctx, order, 4, request)
	fmt.Println(errors.As(err, &had), had.First, had.Count)
	// Output:
	// 1 3 false <nil>
	// 1 3 true <nil>
	// true 1 3
}

func ExampleClient_TakeSegment() {
	addrs, stop := example()
	defer stop()
	ctx := context.Background()
	c, err := client.New(ctx, client.Config{Addrs: addrs})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	first, last, err := c.TakeSegment(ctx, "orders", 1000)
	fmt.Println(last-first+1, err)
	_, _, err = c.TakeSegment(ctx, "invoices", 1)
	fmt.Println(errors.Is(err, seq.ErrUnknownTag)) // an operator adds tags
	// Output:
	// 1000 <nil>
	// true
}
