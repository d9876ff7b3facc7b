package storesvr

import (
	"fmt"
	"testing"

	"github.com/seqsvr/seqsvr/exact"
	"github.com/seqsvr/seqsvr/seq"
)

// full renews a session, and returns whether the store has no memory for more.
func (b *bench) full() bool {
	b.t.Helper()
	reply, err := b.Renew(b.t.Context(), b.renewal(alice))
	if err != nil {
		b.t.Fatal(err)
	}
	return reply.Full
}

// Owners hear before the process is ended, and the store takes in what they send until then.
func TestAStoreTellsThatItHasNoMemoryForMore(t *testing.T) {
	b := newExact(t)
	if b.full() {
		t.Error("full without a limit")
	}
	b.core.memory = 100 * uint64(exact.Bytes(1, 100)) / exactShare
	o := b.owner(1, alice)
	take := func(from, n int) {
		t.Helper()
		ids := make([]string, n)
		for i := range ids {
			ids[i] = fmt.Sprint(from + i)
		}
		if got := b.log(alice, exact.Change{Batch: taken(t, o, ids...)}); got.Message != "" {
			t.Fatalf("got %+v", got)
		}
	}
	if take(0, 90); b.full() {
		t.Error("full with 90 of 100 ids")
	}
	if take(90, 20); !b.full() {
		t.Error("not full with 110 of 100 ids")
	}
	if take(110, 1); b.state(exactSection).Last(seq.UID(7)) != 111 {
		t.Error("what an owner sent is not taken in")
	}
	if b.core.memory = 1 << 40; b.full() {
		t.Error("full of a limit that is far away")
	}
}
