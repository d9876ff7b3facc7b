package linear

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/internal/wire/storeclient"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
	"github.com/seqsvr/seqsvr/tests/kit/sessiontest"
	"github.com/seqsvr/seqsvr/tests/robust/proxy"
)

func TestMain(m *testing.M) { harness.Main(m) }

// Shape of a run on real processes, where a call costs commits on three disks.
const (
	mostCalls = 100 // of each client
	fewSwaps  = 10  // and as many conflicts: with fewer the run goes on after the faults
	faults    = 12  // every third kills
	longest   = 300 * time.Millisecond
	between   = 40 * time.Millisecond // calls of a client, at most
)

// site is three StoreSvr processes, and for each client its own way to each of them.
type site struct {
	t      *testing.T
	stores []*localcluster.Process
	ways   [clients][]*proxy.Proxy
}

func newSite(t *testing.T) *site {
	t.Helper()
	c := harness.Launch(t, func(cfg *localcluster.Config) {
		cfg.Sections, cfg.Roles = 4, []localcluster.Role{localcluster.RoleStore} // nobody else writes the registers
	})
	s := &site{t: t, stores: c.Processes()}
	for i := range s.ways {
		for _, p := range s.stores {
			way, err := proxy.Listen("127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = way.Close() })
			way.Target(p.Addr)
			s.ways[i] = append(s.ways[i], way)
		}
	}
	return s
}

// group is a client's own view of the stores, over its own ways.
func (s *site) group(client int) *quorum.Group {
	s.t.Helper()
	var addrs []string
	for _, way := range s.ways[client] {
		addrs = append(addrs, way.Addr())
	}
	cluster, err := storeclient.Connect(harness.Within(s.t), addrs)
	if err != nil {
		s.t.Fatal(err)
	}
	id := cluster.Identity
	group, err := quorum.NewGroup(quorum.Config{Ref: id.Ref, N: id.N, R: id.R, W: id.W, Secret: sessiontest.Secret(uint64(client + 1))}, storeclient.NamedStores(cluster.Stores))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { group.Close(); _ = cluster.Close() })
	return group
}

// rest waits for a random time.
func rest(random *rand.Rand, most time.Duration) {
	<-time.After(time.Duration(random.Int64N(int64(most))))
}

// harm kills stores and cuts ways, one fault after the other, and counts what it did. Each
// is healed, and often a client has no quorum meanwhile.
func (s *site) harm(random *rand.Rand) (kills, cuts int) {
	for n := range faults {
		rest(random, longest)
		if n%3 == 0 {
			kills += s.kill(random)
		} else {
			cuts += s.cut(random)
		}
	}
	return kills, cuts
}

func (s *site) kill(random *rand.Rand) int {
	victims := slices.Clone(s.stores)
	random.Shuffle(len(victims), func(i, j int) { victims[i], victims[j] = victims[j], victims[i] })
	victims = victims[:1+random.IntN(len(victims))]
	for _, p := range victims {
		if err := p.Kill(); err != nil {
			s.t.Errorf("kill: %v", err)
		}
	}
	rest(random, longest)
	for _, p := range victims {
		if err := p.Start(); err != nil {
			s.t.Errorf("start: %v", err)
		}
	}
	s.introduce()
	return len(victims)
}

// introduce has stores that have just started hear what their fellows remember of them, as
// renewals of AllocSvr do, of which there are none here.
func (s *site) introduce() {
	var addrs []string
	for _, p := range s.stores {
		addrs = append(addrs, p.Addr)
	}
	ctx, cancel := context.WithTimeout(harness.Within(s.t), 2*longest)
	defer cancel()
	if cluster, err := storeclient.Connect(ctx, addrs); err == nil {
		_ = cluster.Close()
	}
}

// modes of a way that is cut: requests do not get through, answers do not, neither does,
// connections are refused, everything is slow.
var modes = []proxy.Mode{
	{StallA: true}, {StallB: true}, {StallA: true, StallB: true}, {Refuse: true}, {Delay: 30 * time.Millisecond, Jitter: 60 * time.Millisecond},
}

func (s *site) cut(random *rand.Rand) int {
	var cut []*proxy.Proxy
	for _, way := range slices.Concat(s.ways[:]...) {
		if random.IntN(2) == 0 {
			continue
		}
		m := modes[random.IntN(len(modes))]
		way.Set(m)
		if m.Refuse {
			way.Break()
		}
		cut = append(cut, way)
	}
	rest(random, longest)
	for _, way := range cut {
		way.Set(proxy.Mode{})
	}
	return len(cut)
}

// recorded is a run of all clients on real stores.
func (s *site) recorded(seed uint64) *recorder {
	s.t.Helper()
	groups := make([]*quorum.Group, clients)
	for i := range groups {
		groups[i] = s.group(i)
	}
	r := &recorder{began: time.Now()}
	var callers, harmed sync.WaitGroup
	var over atomic.Bool
	harmed.Go(func() {
		defer over.Store(true)
		kills, cuts := s.harm(rand.New(rand.NewPCG(seed, 1)))
		s.t.Logf("%d kills of stores, %d ways cut", kills, cuts)
	})
	enough := func() bool {
		count, swaps := r.kinds()
		return over.Load() && swaps >= fewSwaps && count[conflict] >= fewSwaps
	}
	for i, group := range groups {
		c := newCaller(group, r, i, seed)
		callers.Go(func() {
			for c.calls < mostCalls && !enough() {
				c.call()
				rest(c.random, between)
			}
		})
	}
	callers.Wait()
	harmed.Wait()
	for _, reg := range registers { // what the stores hold in the end is part of the history
		s.load(r, groups[0], reg)
	}
	return r
}

// load records a load that succeeds, maybe of stores that were started just now.
func (s *site) load(r *recorder, group *quorum.Group, reg seq.Register) {
	s.t.Helper()
	ctx := harness.Within(s.t)
	for {
		call := r.now()
		doc, err := group.LoadDocument(ctx, sessiontest.Session(1), reg)
		if err == nil {
			r.add(0, input{register: reg}, call, doc, nil)
			return
		}
		if ctx.Err() != nil {
			s.t.Fatalf("load %s at the end: %v", reg, err)
		}
		<-time.After(between)
	}
}

func TestDocumentsAreLinearizableOnProcessesThatAreKilledAndCutOff(t *testing.T) {
	s := newSite(t)
	r := s.recorded(uint64(time.Now().UnixNano()))
	count, swaps := r.kinds()
	t.Logf("%d done, %d of them swaps, %d conflicts, %d unknown in %v", count[done], swaps, count[conflict], count[unknown], time.Since(r.began).Round(time.Second))
	if swaps == 0 || count[conflict] == 0 {
		t.Error("no swap, or none that met another: the run shows nothing")
	}
	switch result := porcupine.CheckOperationsTimeout(model.ToModel(), r.ops, patience); result {
	case porcupine.Ok:
	case porcupine.Unknown:
		t.Fatalf("no verdict in %v", patience)
	default:
		t.Fatalf("no order of the %d calls explains their answers", len(r.ops))
	}
	for name, forge := range forgeries {
		forged, ok := forge(slices.Clone(r.ops))
		if !ok {
			t.Errorf("%s: nothing in the history to forge", name)
			continue
		}
		if result := porcupine.CheckOperationsTimeout(model.ToModel(), forged, patience); result != porcupine.Illegal {
			t.Errorf("%s was put into the history, and the verdict is %v, want %v", name, result, porcupine.Illegal)
		}
	}
}

// forgeries put into a history what cannot have been.
var forgeries = map[string]func([]porcupine.Operation) ([]porcupine.Operation, bool){
	"a load of what was overwritten before it began": func(ops []porcupine.Operation) ([]porcupine.Operation, bool) {
		for i, late := range ops {
			for _, early := range ops {
				old, is := made(early)
				if !is || !sameRegister(early, late) || late.Input.(input).swap || late.Output.(output).saw.version <= old.version {
					continue
				}
				for _, between := range ops {
					if next, is := made(between); is && sameRegister(between, late) && next.version == old.version+1 && between.Return < late.Call {
						late.Output = output{saw: old}
						ops[i] = late
						return ops, true
					}
				}
			}
		}
		return ops, false
	},
	"a second winner of one version": func(ops []porcupine.Operation) ([]porcupine.Operation, bool) {
		for i, lost := range ops {
			in := lost.Input.(input)
			for _, won := range ops {
				if doc, is := made(won); is && i > 0 && sameRegister(won, lost) && lost.Output.(output).verdict == conflict && doc.version == in.old+1 {
					lost.Output = output{saw: document{in.old + 1, in.body}}
					ops[i] = lost
					return ops, true
				}
			}
		}
		return ops, false
	},
	"a body that nobody wrote": func(ops []porcupine.Operation) ([]porcupine.Operation, bool) {
		for i, op := range ops {
			if out := op.Output.(output); !op.Input.(input).swap && out.saw.version > 0 {
				out.saw.body = fmt.Sprint(out.saw.body, ", forged")
				op.Output = out
				ops[i] = op
				return ops, true
			}
		}
		return ops, false
	},
}

// made is the document that a swap is known to have made.
func made(op porcupine.Operation) (document, bool) {
	out := op.Output.(output)
	return out.saw, op.Input.(input).swap && out.verdict == done
}

func sameRegister(a, b porcupine.Operation) bool {
	return a.Input.(input).register == b.Input.(input).register
}
