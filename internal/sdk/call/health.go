package call

import (
	"sync/atomic"
	"time"
)

// probeEvery is the least time between two probes of a server: as long as a call's pauses
// between two rounds, so that no caller waits for longer. Where connections are refused a probe ends at once, and
// without this each round of each caller would send the next one.
const probeEvery = 20 * time.Millisecond

// health says whether a server answers, as far as the last attempts tell. While it is in
// doubt, one call at a time goes there, to see whether the server is back, and the others go
// elsewhere.
//
// A server has one for the calls for IDs and one for all others. A call for an ID may have
// to wait there, for a worker id or for the next tick, so that silence says nothing of the
// others; but an answer does. Since all servers answer these calls, none goes there to see before the
// server has said anything, which it is asked in the background, or before no other is left. A Set has one for the addresses of Config that are none of its nodes
// (set.relays), which is in doubt for all but the one that had the last answer.
type health struct {
	silent  atomic.Bool  // the last attempt got no answer
	probing atomic.Bool  // a call is there to see
	probed  atomic.Int64 // when the last such call began, Unix nanoseconds

	// For calls for IDs.
	passed atomic.Bool // a call would have gone there since the last question
	spoke  atomic.Bool // the server answered a question since it was silent
}

// admit says whether a call may go to the server now. probe is h if that call is the one that sees
// whether the server is back, which release ends; else nil.
func (h *health) admit() (ok bool, probe *health) {
	if !h.silent.Load() {
		return true, nil
	}
	if !h.probe(time.Now()) {
		return false, nil
	}
	return true, h
}

// probe begins a probe if none is under way and the last one is long enough ago.
func (h *health) probe(now time.Time) bool {
	if !h.probing.CompareAndSwap(false, true) {
		return false
	}
	if since := time.Duration(now.UnixNano() - h.probed.Load()); 0 <= since && since < probeEvery { // negative if the clock was set back
		h.probing.Store(false)
		return false
	}
	h.probed.Store(now.UnixNano())
	return true
}

// hush notes an attempt without an answer.
func (h *health) hush() {
	h.spoke.Store(false)
	h.silent.Store(true)
}

// mute says that a call for an ID goes by the server: it is silent, and answered no question since.
func (h *health) mute() bool {
	if !h.silent.Load() || h.spoke.Load() {
		return false
	}
	h.passed.Store(true)
	return true
}

// release ends the probe of a health. It does nothing if h is nil.
func (h *health) release() {
	if h != nil {
		h.probing.Store(false)
	}
}
