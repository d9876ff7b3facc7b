package handover

import (
	"testing"

	"github.com/seqsvr/seqsvr/internal/base/counters"
	"github.com/seqsvr/seqsvr/seq"
)

// The stores decide which counters of a section are good, so neither kind takes the place of the
// other.
func TestAnOfferStandsBesideTheCountersOfThisMachine(t *testing.T) {
	sealed := func(session seq.Session) Sealed {
		return Sealed{ID: 3, Epoch: seq.Epoch{Round: 4, Session: session}, Table: counters.New(7)}
	}
	for name, row := range map[string]struct {
		good seq.Session // zero if none
		own  bool        // are there
		ok   bool
	}{
		"the own ones are good":     {good: 1, own: true, ok: true},
		"the offered ones are good": {good: 2, own: true, ok: true},
		"neither are":               {own: true},
		"there is an offer alone":   {good: 2, ok: true},
	} {
		k := &Kept{}
		if row.own {
			k.Keep(sealed(1))
		}
		k.Offer(sealed(2))
		k.Offer(sealed(3), sealed(2)) // the last one counts
		if all := k.All(); len(all) != 1 && row.own || len(all) > 0 && all[0].Epoch.Session != 1 {
			t.Errorf("%s: to be parked: %+v", name, all)
		}
		s, ok, there := k.Use(3, func(s Sealed) bool { return s.Epoch.Session == row.good })
		if !there || ok != row.ok || ok && s.Epoch.Session != row.good {
			t.Errorf("%s: got %+v, %v, %v", name, s, ok, there)
		}
		if _, _, there := k.Use(3, func(Sealed) bool { return true }); there {
			t.Errorf("%s: they are used twice", name)
		}
	}
}
