package idbench

import (
	"context"
	"testing"

	bwmarrin "github.com/bwmarrin/snowflake"
	"github.com/sony/sonyflake"

	"github.com/seqsvr/seqsvr/snowflake"
)

func TestBwmarrinReadsIDsOfTheTwitterLayout(t *testing.T) {
	l, err := snowflake.Preset("twitter")
	if err != nil {
		t.Fatal(err)
	}
	g := ours(t, "twitter", snowflake.OverflowBorrow, 5)
	for range 100 {
		id, err := g.Next(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		p, err := l.Decode(id)
		if err != nil {
			t.Fatal(err)
		}
		theirs := bwmarrin.ID(id)
		// Their node is datacenter and worker in one number.
		if got, want := theirs.Node(), int64(p.Datacenter)<<5|int64(p.Worker); got != want {
			t.Errorf("node of %d: they read %d, we %d", id, got, want)
		}
		if got, want := theirs.Step(), int64(p.Sequence); got != want {
			t.Errorf("step of %d: they read %d, we %d", id, got, want)
		}
		at, err := l.TimeOf(p.Tick)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := theirs.Time(), at.UnixMilli(); got != want {
			t.Errorf("time of %d: they read %d, we %d", id, got, want)
		}
		for text, e := range map[string]snowflake.Encoding{
			theirs.String(): snowflake.Decimal, theirs.Base58(): snowflake.Base58, theirs.Base32(): snowflake.ZBase32,
		} {
			if got, err := e.Parse(text); err != nil || got != id {
				t.Errorf("their %s %q: we read %d, %v, want %d", e, text, got, err, id)
			}
		}
	}
}

func TestWeReadIDsOfBwmarrin(t *testing.T) {
	l, err := snowflake.Preset("twitter")
	if err != nil {
		t.Fatal(err)
	}
	node, err := bwmarrin.NewNode(11<<5 | 26)
	if err != nil {
		t.Fatal(err)
	}
	id := node.Generate()
	p, err := l.Decode(snowflake.ID(id))
	if err != nil || p.Datacenter != 11 || p.Worker != 26 || int64(p.Sequence) != id.Step() {
		t.Errorf("got %+v, %v, want datacenter 11 worker 26 sequence %d", p, err, id.Step())
	}
}

func TestSonyflakeReadsIDsOfItsLayoutAndWeRead(t *testing.T) {
	l, err := snowflake.Preset("sonyflake")
	if err != nil {
		t.Fatal(err)
	}
	compare := func(id uint64) {
		t.Helper()
		p, err := l.Decode(snowflake.ID(id))
		if err != nil {
			t.Fatal(err)
		}
		got := sonyflake.Decompose(id)
		if got["time"] != uint64(p.Tick) || got["sequence"] != p.Sequence || got["machine-id"] != uint64(p.Worker) {
			t.Errorf("%d: they read %v, we %+v", id, got, p)
		}
	}
	g := ours(t, "sonyflake", snowflake.OverflowBorrow, 40_000)
	for range 600 { // more than a tick has
		id, err := g.Next(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		compare(uint64(id))
	}
	theirs, err := sony(t).NextID()
	if err != nil {
		t.Fatal(err)
	}
	compare(theirs)
}
