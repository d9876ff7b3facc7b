package snowflake_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/seqsvr/seqsvr/snowflake"
)

func ExampleParseLayout() {
	l, err := snowflake.ParseLayout("time:32,worker:9,sequence:12;unit=1s;epoch=2026-01-01T00:00Z")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(l.MaxWorker(), l.MaxSequence(), l.Exhausted().Year())
	// Output: 511 4095 2162
}

func ExampleLayout_Decode() {
	l, err := snowflake.Preset("twitter")
	if err != nil {
		log.Fatal(err)
	}
	parts, err := l.Decode(1541815603606036480)
	if err != nil {
		log.Fatal(err)
	}
	at, err := l.TimeOf(parts.Tick)
	fmt.Println(parts.Datacenter, parts.Worker, parts.Sequence, at.UTC().Format(time.RFC3339Nano), err)
	// Output: 11 26 0 2022-06-28T16:07:40.105Z <nil>
}

func ExampleGenerator() {
	l, err := snowflake.Preset("twitter")
	if err != nil {
		log.Fatal(err)
	}
	tick := func(at time.Time) snowflake.Tick { return snowflake.Tick(at.Sub(l.Epoch()) / l.Unit()) }
	now := time.Now()
	// Datacenter 1, worker 7 was not used so far: else the mark that was saved is the floor.
	g, err := snowflake.New(l, 1, 7, tick(now.Add(-time.Minute)))
	if err != nil {
		log.Fatal(err)
	}
	g.Extend(tick(now.Add(time.Hour))) // after that mark was saved durably
	a, err := g.Next(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	b, err := g.Next(context.Background())
	fmt.Println(a < b, err)
	// Output: true <nil>
}
