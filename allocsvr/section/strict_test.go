package section

import (
	"errors"
	"testing"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// A preemption comes between any two looks, while the lease of the former owner still runs.
func TestNoAnswerOfAStrictSpaceRestsOnTheLease(t *testing.T) {
	asks := map[string]func(o *owned) error{
		"next": func(o *owned) error {
			out := o.Take(t.Context(), o.c.space, seq.PlainAll(1), nil)
			return faultOf(out.Faults, out.First[0] != 0)
		},
		"current": func(o *owned) error {
			out, faults := o.Current(t.Context(), o.c.space, seq.PlainAll(1))
			return faultOf(faults, out[0].Value != 0)
		},
		"raise": func(o *owned) error {
			_, err := o.Raise(t.Context(), o.c.space, seq.PlainAll(1).At(0), 5, Reach{})
			return err
		},
		"raise of many": func(o *owned) error {
			values, faults := o.RaiseAll(t.Context(), o.c.space, seq.PlainAll(1), []uint64{5}, 0)
			return faultOf(faults, values[0] != 0)
		},
		"page": func(o *owned) error {
			_, err := o.Page(t.Context(), 0, 0)
			return err
		},
	}
	for name, ask := range asks {
		for _, mode := range []seq.Mode{seq.Strict, seq.Ordered} {
			o := newOwnedOf(t, seq.Space{Name: "user", Sections: 1, Step: ownerStep, Mode: mode})
			looks, promised := 0, o.epoch
			o.regs.OnProbe = func() quorum.Outcome {
				looks++
				return quorum.Outcome{State: quorum.Won, Promised: promised}
			}
			o.Take(t.Context(), o.c.space, seq.PlainAll(1), nil)
			looks = 0
			if err := ask(o); err != nil {
				t.Errorf("%s, %s: %v", name, mode, err)
			}
			if strict := mode == seq.Strict; strict != (looks == 1) || !strict && looks > 0 {
				t.Errorf("%s, %s: %d looks", name, mode, looks)
			}
			promised = seq.Epoch{Round: o.epoch.Round + 1, Session: otherSession}
			err := ask(o)
			if mode != seq.Strict {
				continue
			}
			if !errors.Is(err, seq.ErrNoLease) || o.c.State() != Absent {
				t.Errorf("%s: got %v, and the section is %s, want no lease and it absent", name, err, o.c.State())
			}
			if err := ask(o); !errors.Is(err, seq.ErrNotOwner) {
				t.Errorf("%s: got %v, want a redirect", name, err)
			}
		}
	}
}

func faultOf(faults []Fault, served bool) error {
	switch {
	case len(faults) == 0 && served:
		return nil
	case len(faults) == 1 && !served:
		return faults[0].Err
	}
	return errors.New("neither an answer nor an error")
}

func TestAStrictNumberThatWaitedForAStepIsLookedAtAfterIt(t *testing.T) {
	o := newOwnedOf(t, seq.Space{Name: "user", Sections: 1, Step: ownerStep, Mode: seq.Strict})
	o.regs.OnProbe = func() quorum.Outcome {
		return quorum.Outcome{State: quorum.Won, Promised: seq.Epoch{Round: o.epoch.Round + 1, Session: otherSession}}
	}
	k := o.take(ownerStep + 1)
	go o.c.confirm(o.epoch, 2*ownerStep)
	k.Settle(t.Context())
	if err := faultOf(k.out.Faults, k.out.First[0] != 0); !errors.Is(err, seq.ErrNoLease) {
		t.Errorf("got %d, %v, want no lease", k.out.First[0], err)
	}
}

func TestASectionStaysWhereALookGotNoAnswer(t *testing.T) {
	o := newOwnedOf(t, seq.Space{Name: "user", Sections: 1, Step: ownerStep, Mode: seq.Strict})
	o.regs.OnProbe = func() quorum.Outcome {
		return quorum.Outcome{State: quorum.Unknown, Promised: seq.Epoch{Round: 9, Session: otherSession}, Err: seq.ErrNoQuorum}
	}
	out := o.Take(t.Context(), o.c.space, seq.PlainAll(1), nil)
	if err := faultOf(out.Faults, out.First[0] != 0); !errors.Is(err, seq.ErrNoQuorum) || o.c.State() != Owned {
		t.Errorf("got %v, and the section is %s, want it owned", err, o.c.State())
	}
}
