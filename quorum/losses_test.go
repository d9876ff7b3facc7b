package quorum

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/seq"
)

// An earlier answer of a hold stays true while no loss is counted.
func TestAHoldIsWorthNoLessUntilALossIsCounted(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	draw := rand.New(rand.NewPCG(seed, 0))
	for range 200 {
		r := newRenewal(t, 3, true)
		var holds [4]*Hold
		for i := range holds {
			holds[i] = r.Attach(seq.SectionRegister(seq.SectionID(i)), 1)
		}
		type answer struct {
			until  time.Duration
			losses uint64
		}
		var said [len(holds)]answer
		for step := range 60 {
			for i, h := range holds {
				losses := r.Losses()
				until := h.Until()
				if said[i].losses == losses && until < said[i].until {
					t.Fatalf("step %d: hold %d until %s, was %s, %d losses all the while", step, i, until, said[i].until, losses)
				}
				said[i] = answer{until, losses}
			}
			r.clock.Advance(time.Duration(draw.Int64N(int64(lease / 3))))
			i := draw.IntN(len(holds))
			switch draw.IntN(12) {
			case 0:
				holds[i].Drop()
			case 1:
				said[i] = answer{}
				holds[i] = r.Attach(holds[i].register, holds[i].round+1)
			case 2:
				r.renew(RenewReply{Reset: true}, draw.IntN(3))
			case 3:
				r.renew(RenewReply{Lost: []LeaseItem{{Register: holds[i].register, Round: holds[i].round}}}, draw.IntN(3))
			default:
				r.renew(RenewReply{}, draw.IntN(3))
			}
		}
	}
}

func TestAnotherMemberListCountsAsALoss(t *testing.T) {
	r := newRenewal(t, 3, true)
	r.Attach(section, 5)
	r.renew(RenewReply{}, 0, 1, 2)
	before := r.Losses()
	_, stores := fakeStores(3, true)
	if err := r.Reconfigure(r.now.Load().ref, 3, stores); err != nil {
		t.Fatal(err)
	}
	if r.Losses() == before {
		t.Error("no loss was counted when three stores came to be needed instead of two")
	}
}
