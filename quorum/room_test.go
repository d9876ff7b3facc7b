package quorum

import (
	"math"
	"testing"
)

// A store that has less memory than the others is lost alone, and stops nothing.
func TestStoresAreFullOnceFewerThanWHaveRoom(t *testing.T) {
	for n, most := range map[int]int{3: 1, 4: 1, 5: 2} { // stores that may be full
		r := newRenewal(t, n, true)
		full := func() bool { return r.Room().Left == 0 }
		for i := range n {
			if r.renew(RenewReply{Full: true}, i); full() != (i+1 > most) {
				t.Errorf("%d of %d are full: got %+v", i+1, n, r.Room())
			}
		}
		if r.renew(RenewReply{}, 0); n == 3 && !full() {
			t.Error("two of three are full: got room")
		}
		for i := range n {
			r.renew(RenewReply{}, i)
		}
		if got := r.Room(); got.Left != math.MaxUint64 {
			t.Errorf("none of %d is full any more: got %+v", n, got)
		}
	}
}

func TestTheRoomIsWhatWStoresHave(t *testing.T) {
	r := newRenewal(t, 3, true)
	names := func(i int) string { return r.now.Load().stores[i].store.Name }
	r.renew(RenewReply{Left: 10, Limit: 100}, 0)
	if got := r.Room(); got.Left != math.MaxUint64 {
		t.Errorf("two of three said nothing: got %+v", got)
	}
	r.renew(RenewReply{Left: 70, Limit: 100}, 1)
	r.renew(RenewReply{Left: 30, Limit: 200}, 2)
	got := r.Room()
	if got.Store != names(2) || got.Left != 30 || got.Limit != 200 {
		t.Errorf("got %+v, want the 30 of 200 bytes of %s", got, names(2))
	}
	r.renew(RenewReply{Left: 30, Limit: 200}, 2)
	if again := r.Room(); again.Heard == got.Heard {
		t.Errorf("a reply that says the same is not heard: %+v", again)
	}
}

// The answer of a removed store does not count, and does not count for the store in its place.
func TestAStoreThatWasRemovedIsNotFull(t *testing.T) {
	r := newRenewal(t, 3, true)
	r.renew(RenewReply{Full: true}, 0, 1)
	_, stores := fakeStores(4, true)
	if err := r.Reconfigure(Ref{}, 2, stores[1:]); err != nil {
		t.Fatal(err)
	}
	if got := r.Room(); got.Left == 0 {
		t.Errorf("one of three is full: got %+v", got)
	}
}
