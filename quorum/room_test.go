package quorum

import "testing"

// A store that has less memory than the others is lost alone, and stops nothing.
func TestStoresAreFullOnceFewerThanWHaveRoom(t *testing.T) {
	for n, most := range map[int]int{3: 1, 4: 1, 5: 2} { // stores that may be full
		r := newRenewal(t, n, true)
		for i := range n {
			if r.renew(RenewReply{Full: true}, i); r.Full() != (i+1 > most) {
				t.Errorf("%d of %d are full: got %v", i+1, n, r.Full())
			}
		}
		if r.renew(RenewReply{}, 0); n == 3 && !r.Full() {
			t.Error("two of three are full: got false")
		}
		for i := range n {
			r.renew(RenewReply{}, i)
		}
		if r.Full() {
			t.Errorf("none of %d is full any more: got true", n)
		}
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
	if r.Full() {
		t.Error("one of three is full: got true")
	}
}
