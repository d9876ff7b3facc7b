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
	room := b.core.exactRoom()
	if reply.Limit != room.most || reply.Left != room.most-min(room.used, room.most) {
		b.t.Errorf("the store tells %d bytes of %d, and has %+v", reply.Left, reply.Limit, room)
	}
	return reply.Full
}

// Owners hear before the process is ended, and the store takes in what they send until then.
func TestAStoreTellsThatItHasNoMemoryForMore(t *testing.T) {
	b := newExact(t)
	if b.full() {
		t.Error("full without a limit")
	}
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
	take(0, 90)
	used := b.state(exactSection).Bytes()
	if b.core.memory = 100 * uint64(2*used) / exactShare; used == 0 || b.full() {
		t.Errorf("full with %d bytes of twice as many", used)
	}
	if take(90, 200); !b.full() {
		t.Error("not full with three times the ids")
	}
	if take(290, 1); b.state(exactSection).Last(seq.UID(7)) != 291 {
		t.Error("what an owner sent is not taken in")
	}
	if b.core.memory = 1 << 40; b.full() {
		t.Error("full of a limit that is far away")
	}
}
