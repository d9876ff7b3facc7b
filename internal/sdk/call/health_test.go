package call

import (
	"errors"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/internal/sdk/route"
	"github.com/seqsvr/seqsvr/internal/sdk/stream"
	"github.com/seqsvr/seqsvr/seq"
)

func TestProbesOfAServerAreOneAtATimeAndApart(t *testing.T) {
	var h health
	now := time.Now()
	if !h.probe(now) {
		t.Error("the first one was not let go at once")
	}
	if h.probe(now.Add(time.Hour)) {
		t.Error("two at a time")
	}
	h.release()
	for after, want := range map[time.Duration]bool{0: false, probeEvery - 1: false, probeEvery: true, time.Hour: true, -time.Hour: true} {
		h.probed.Store(now.UnixNano())
		if got := h.probe(now.Add(after)); got != want {
			t.Errorf("%v after the last one: %v, want %v", after, got, want)
		}
		h.release()
	}
}

// A call for an ID that goes to see whether a server is back waits for longer than others do.
func TestNoCallForAnIDGoesToASilentServerBeforeThatHasSaidAnything(t *testing.T) {
	var h health
	if h.mute() || h.passed.Load() {
		t.Error("gone by while it answers")
	}
	for range 2 {
		h.hush()
		if !h.mute() || !h.passed.Load() {
			t.Error("not gone by, or not noted")
		}
		h.spoke.Store(true)
		if h.mute() {
			t.Error("gone by after it said something")
		}
	}
	if ok, probe := h.admit(); !ok || probe != &h {
		t.Error("the first call then does not see whether it answers")
	}
}

// A key that stands twice in an order must not be asked for once: the other one, asked for again, would get
// the larger number though it stands first.
func TestWhetherAServerIsSilentIsLookedAtOnceForAllKeysOfAnOrder(t *testing.T) {
	p, s := parcels{}, &Server{Server: &route.Server{}}
	s.health.silent.Store(true)
	if !p.of(s).silent {
		t.Error("a silent server is asked")
	}
	s.health.silent.Store(false)
	if !p.of(s).silent {
		t.Error("it is asked for a later key of the order")
	}
	if p.n = 0; p.of(s).silent {
		t.Error("it is not asked by the next orders")
	}
	if p.of(nil) != nil {
		t.Error("an owner that is not known has a parcel")
	}
}

func TestASilentServerIsInDoubtUntilItAnswers(t *testing.T) {
	p := peer(bare("a").table.Seeds()[0])
	if err := p.Ended(stream.ErrTimedOut); !errors.Is(err, ErrUnreachable) || Final(err) {
		t.Errorf("got %v, want %v, to be retried", err, ErrUnreachable)
	}
	if !p.health.silent.Load() {
		t.Error("the silent server is not in doubt")
	}
	if ok, probe := p.health.admit(); !ok || probe != &p.health {
		t.Error("the first call to a server in doubt is its probe")
	}
	if ok, _ := p.health.admit(); ok {
		t.Error("a second call went to a server in doubt beside the probe")
	}
	p.health.release()
	p.Answered()
	if ok, probe := p.health.admit(); !ok || probe != nil {
		t.Error("a server that answered is still in doubt")
	}
}

func TestTheCallersOwnOverloadEndsACallAndAServersDoesNot(t *testing.T) {
	if !Final(stream.ErrFull) {
		t.Error("the caller's own overload must not be retried")
	}
	if Final(seq.ErrOverloaded) {
		t.Error("a server's own overload must be retried")
	}
}
