package quorum

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/seq"
)

func contains(err error, text string) bool { return strings.Contains(err.Error(), text) }

// claimant says something of its disk with every write.
type claimant struct {
	Store
	claim Claim
	err   error
}

func (c claimant) Prepare(ctx context.Context, r PrepareRequest) (Reply, error) {
	reply, err := c.Store.Prepare(ctx, r)
	reply.Claim = c.claim
	return reply, errors.Join(err, c.err)
}

func (c claimant) Step(ctx context.Context, r StepRequest) (Reply, error) {
	reply, err := c.Store.Step(ctx, r)
	reply.Claim = c.claim
	return reply, errors.Join(err, c.err)
}

func TestWhatAStoreSaysOfItsDiskWithAWriteIsToldOn(t *testing.T) {
	claim := Claim{Store: "u", Boot: 1, Commits: 5}
	for name, row := range map[string]struct {
		store claimant
		told  bool
		want  int
	}{
		"said":                {claimant{claim: claim}, true, 2},
		"said to nobody":      {claimant{claim: claim}, false, 0},
		"nothing said":        {claimant{claim: Claim{Store: "u", Boot: 1}}, true, 0},
		"said with a failure": {claimant{claim: claim, err: errDropped}, true, 0},
	} {
		told := 0 // the store answers one request after the other
		cfg := Config{N: 1, R: 1, W: 1}
		if row.told {
			cfg.OnClaim = func(c Claim) {
				if told++; c != claim {
					t.Errorf("%s: told %+v", name, c)
				}
			}
		}
		row.store.Store = newFake("u", section)
		g, err := NewGroup(cfg, []NamedStore{{Name: "s", Store: row.store}})
		if err != nil {
			t.Fatal(err)
		}
		g.Prepare(t.Context(), me, []PrepareItem{{Register: section, Round: 1}})
		g.Step(t.Context(), me, []StepItem{{Register: section, Round: 1, Max: 1}})
		g.Close()
		if told != row.want {
			t.Errorf("%s: told %d times, want %d", name, told, row.want)
		}
	}
}

func TestASlowStoreIsAskedWhatTheOthersWereAsked(t *testing.T) {
	fakes, stores := fakeStores(3, true, section)
	gate := make(chan struct{})
	slow := &spy{Store: fakes[2]}
	fakes[2].always(fault{hold: gate})
	stores[2].Store = late{slow, gate}
	g, err := NewGroup(Config{N: 3, R: 2, W: 2}, stores)
	if err != nil {
		t.Fatal(err)
	}
	regs := []seq.Register{section}
	g.Probe(t.Context(), me, regs)
	regs[0] = routes
	items := []PrepareItem{{Register: section, Round: 1}}
	g.Prepare(t.Context(), me, items)
	items[0].Round = 99
	close(gate)
	g.Close()
	for _, asked := range slow.take() {
		switch r := asked.(type) {
		case ReadRequest:
			if r.Registers[0] != section {
				t.Errorf("asked %+v", r)
			}
		case PrepareRequest:
			if r.Items[0].Round != 1 {
				t.Errorf("asked %+v", r)
			}
		}
	}
}

// late looks at a request only once the gate is open.
type late struct {
	Store
	gate <-chan struct{}
}

func (l late) Read(ctx context.Context, r ReadRequest) (Reply, error) {
	<-l.gate
	return l.Store.Read(ctx, r)
}

func (l late) Prepare(ctx context.Context, r PrepareRequest) (Reply, error) {
	<-l.gate
	return l.Store.Prepare(ctx, r)
}

func TestALookShowsTheHigherOfWhatStoresPromisedAndWhatWasAskedFor(t *testing.T) {
	g, fakes := cluster(t, 3, true, section)
	for _, f := range fakes {
		f.always(fault{before: errDropped})
	}
	g.Prepare(t.Context(), me, []PrepareItem{{Register: section, Round: 5}})
	g.sent.Wait()
	for _, f := range fakes {
		f.script(nil)
		f.set(section, Result{Promised: epoch(9, other)})
	}
	if got := g.Probe(t.Context(), me, []seq.Register{section})[0]; got.Promised != epoch(9, other) {
		t.Errorf("promised %v, want round 9 of the other", got.Promised)
	}
}

func TestAReadByPrefixThatOneMoreStoreCouldDecideIsUndecided(t *testing.T) {
	g, fakes := cluster(t, 3, true, section)
	fakes[0].always(fault{edit: func(r *Result) { r.Verdict, r.Holder = VerdictHeld, other }})
	fakes[2].always(fault{before: errDropped})
	got, err := g.ReadPrefix(t.Context(), me, string(section))
	if err != nil || len(got) != 1 || got[section].State != Unknown {
		t.Errorf("got %+v, %v, want it unknown", got, err)
	}
	twice := []answer{{results: []Result{{Register: section}}}, {results: []Result{{Register: section}}}}
	if regs := alignByRegister(twice); len(regs) != 1 {
		t.Errorf("of two stores: %v", regs)
	}
}

func TestAStoreThatDoesNotSayWhoItIsDoesNotCountEvenAlone(t *testing.T) {
	g, fakes := cluster(t, 1, false, section)
	fakes[0].always(fault{nameless: true})
	if out := g.Probe(t.Context(), me, []seq.Register{section})[0]; out.State != Unknown || !errors.Is(out.Err, ErrIdentity) {
		t.Errorf("got %v, %v", out.State, out.Err)
	}
	_, stores := fakeStores(3, true, section)
	if _, err := NewGroup(Config{N: 3, R: 2, W: 1}, stores); !errors.Is(err, ErrBadConfig) {
		t.Errorf("a group whose writes miss each other: %v", err)
	}
	if err := checkUUID(stores, 0, "uuid-1"); !errors.Is(err, ErrIdentity) {
		t.Error(fmt.Errorf("as another store: %w", err))
	}
}
