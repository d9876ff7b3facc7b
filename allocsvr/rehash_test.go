package allocsvr

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/internal/lab/history"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/bubble"
)

// nextOf is next for a string key, hashed as the node does that is asked.
func (f *fleet) nextOf(key string) uint64 {
	f.t.Helper()
	for deadline := f.clock.Now() + patient; f.clock.Now() < deadline; time.Sleep(time.Millisecond) {
		for _, n := range f.all() {
			begun := f.clock.Now()
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			got := n.Take(ctx, &f.stores.Mapping.Spaces[0], n.keys[seq.DefaultSpace].Counter(key).Alone(), nil)
			cancel()
			if len(got.Faults) == 0 {
				f.calls.Add(history.Call{Key: history.Key{Space: "key " + key}, First: got.First[0], Last: got.Last[0], Start: begun, End: f.clock.Now()})
				return got.First[0]
			}
		}
	}
	f.t.Fatalf("no number for key %q within %v", key, patient)
	return 0
}

// Nodes that hash by SHA-256, or under one of two secrets, leave, crash and start again in any
// order, with all that sections may go on from: hand-overs and parked counters. A key
// never gets a number twice, nor a lower one (the fleet's history is checked at its end).
func TestNoKeyRepeatsOrGoesBackWhileNodesThatHashDifferentlyTakeTurns(t *testing.T) {
	ways := []seq.KeyHashers{nil, {seq.DefaultSpace: {Secret: seq.KeySecret{1}}}, {seq.DefaultSpace: {Secret: seq.KeySecret{2}}}}
	for seed := range uint64(8) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			dir := t.TempDir()
			bubble.Test(t, func(t *testing.T) {
				draw := rand.New(rand.NewPCG(seed, 38))
				f := newFleetOn(t, bubble.NewClock(), seq.Space{Name: seq.DefaultSpace, Sections: 4, Step: 100})
				begin := func(name string) *node {
					f.keys = ways[draw.IntN(len(ways))]
					return f.start(name, 1, filepath.Join(dir, name))
				}
				running := map[string]*node{"a": begin("a"), "b": begin("b")}
				for range 8 {
					for range 30 {
						f.nextOf(fmt.Sprint("room:", draw.IntN(6)))
						f.next(seq.UID(draw.IntN(6)) << seq.BlockBits)
					}
					name := [...]string{"a", "b"}[draw.IntN(2)]
					switch draw.IntN(3) {
					case 0: // the other goes first, so that counters are parked
						for _, other := range []string{"a", "b"} {
							if other != name {
								f.leave(running[other])
							}
						}
						f.leave(running[name])
						running["a"], running["b"] = begin("a"), begin("b")
					case 1:
						f.leave(running[name])
						running[name] = begin(name)
					default:
						running[name].kill()
						running[name] = begin(name)
					}
				}
			})
		})
	}
}

// A UID that is the public hash of a key is the same counter as the key by SHA-256, and
// another one under a secret: the hash alone leads to no counter of a key.
func TestWhatMeetsByThePublicHashDoesNotMeetUnderASecret(t *testing.T) {
	const key = "room:7"
	meets := seq.PlainAll(seq.HashKey(key))
	for _, secret := range []seq.KeySecret{{}, {1}, {2}} {
		bubble.Test(t, func(t *testing.T) {
			f := newFleetOn(t, bubble.NewClock(), seq.Space{Name: seq.DefaultSpace, Sections: 4, Step: 100})
			f.keys = seq.KeyHashers{seq.DefaultSpace: {Secret: secret}}
			a := f.start("a", 1, "")
			f.serving(a)
			for range 5 {
				f.nextOf(key)
			}
			got := a.Take(t.Context(), &f.stores.Mapping.Spaces[0], meets, nil)
			want := uint64(6)
			if !secret.IsZero() {
				want = 1
			}
			if len(got.Faults) > 0 || got.First[0] != want {
				t.Errorf("the UID that meets the key got %v, %v after 5 numbers of the key, want %d", got.First, got.Faults, want)
			}
		})
	}
}
