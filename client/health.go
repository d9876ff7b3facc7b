package client

import "sync/atomic"

// health says whether a server answers, as far as the last attempts tell. While it is in
// doubt, one call at a time goes there, to see whether the server is back, and the others go
// elsewhere.
//
// A server has one for the calls for IDs and one for all others. A call for an ID may have
// to wait there, for a worker id or for the next tick, so that silence says nothing of the
// others; but an answer does.
type health struct {
	silent  atomic.Bool // the last attempt got no answer
	probing atomic.Bool // a call is there to see
}

// admit says whether a call may go to the server now. A probe is the call that sees whether
// the server is back; release ends it.
func (h *health) admit() (ok, probe bool) {
	if !h.silent.Load() {
		return true, false
	}
	ok = h.probing.CompareAndSwap(false, true)
	return ok, ok
}

func (h *health) release(probe bool) {
	if probe {
		h.probing.Store(false)
	}
}
