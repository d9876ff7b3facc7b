package client

import (
	"testing"
	"time"
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
