package quorum

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/bubble"
)

// spy keeps what a store is asked.
type spy struct {
	Store
	mu    sync.Mutex // guards asked
	asked []any
}

func (s *spy) note(req any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, req)
}

func (s *spy) take() []any {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := s.asked
	s.asked = nil
	return asked
}

func (s *spy) Read(ctx context.Context, r ReadRequest) (Reply, error) {
	s.note(r)
	return s.Store.Read(ctx, r)
}

func (s *spy) Prepare(ctx context.Context, r PrepareRequest) (Reply, error) {
	s.note(r)
	return s.Store.Prepare(ctx, r)
}

func (s *spy) Step(ctx context.Context, r StepRequest) (Reply, error) {
	s.note(r)
	return s.Store.Step(ctx, r)
}

func (s *spy) Release(ctx context.Context, r ReleaseRequest) (string, error) {
	s.note(r)
	return s.Store.Release(ctx, r)
}

// A store judges a request by the list, the session and the items that it names: one that
// leaves something out asks something else.
func TestRequestsSayForWhomAndUnderWhichListTheyAre(t *testing.T) {
	ref := Ref{Cluster: "c", Era: 4, Members: 1, MembersHash: 77}
	f := newFake("u", section, routes)
	s := &spy{Store: f}
	own := seq.NewSecret("")
	me := own.Session()
	g, err := NewGroup(Config{Ref: ref, N: 1, R: 1, W: 1, Secret: own}, []NamedStore{{Name: "s", UUID: "u", Store: s}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	ctx := t.Context()
	leases := []LeaseItem{{Register: section, Round: 3}}
	for _, row := range []struct {
		name string
		do   func()
		want []any
	}{
		{"probe", func() { g.Probe(ctx, me, []seq.Register{section}) },
			[]any{ReadRequest{Ref: ref, Session: me, Registers: []seq.Register{section}}}},
		{"read by prefix", func() { _, _ = g.ReadPrefix(ctx, me, "s") }, []any{ReadRequest{Ref: ref, Session: me, Prefix: "s"}}},
		{"prepare", func() { g.Prepare(ctx, me, []PrepareItem{{Register: section, Round: 3}}) },
			[]any{PrepareRequest{Ref: ref, Session: me, Secret: own, Items: []PrepareItem{{Register: section, Round: 3}}}}},
		{"step", func() { g.Step(ctx, me, []StepItem{{Register: section, Round: 3, Max: 9}}) },
			[]any{StepRequest{Ref: ref, Session: me, Secret: own, Items: []StepItem{{Register: section, Round: 3, Max: 9}}}}},
		{"release", func() { _ = g.Release(ctx, me, leases, other) }, []any{ReleaseRequest{Ref: ref, Session: me, Secret: own, Items: leases, To: other}}},
		{"release of nothing", func() { _ = g.Release(ctx, me, nil, other) }, nil},
		{"probe of nothing", func() { g.Probe(ctx, me, nil) }, nil},
		{"end of a session", func() { _ = g.EndSession(ctx, own) }, []any{ReleaseRequest{Ref: ref, Session: me, Secret: own, All: true}}},
		{"load", func() { _, _ = g.LoadDocument(ctx, me, routes) }, []any{ReadRequest{Ref: ref, Session: me, Registers: []seq.Register{routes}}}},
	} {
		row.do()
		g.sent.Wait()
		if diff := cmp.Diff(row.want, s.take()); diff != "" {
			t.Errorf("%s (-want +got)\n%s", row.name, diff)
		}
	}
}

func TestARenewalSaysEverythingAboutItsSession(t *testing.T) {
	r := newRenewal(t, 3, true)
	r.Attach(section, 4)
	req, _ := r.send(0)
	want := RenewRequest{Session: me, Name: "a", Addr: "a:1", Lease: lease, Attached: 1, Number: 1, Attach: []LeaseItem{{Register: section, Round: 4}}}
	if diff := cmp.Diff(want, req); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for i := 1; i < 3; i++ { // counted over all stores: a place may get another store, and that one back
		if req, _ := r.send(i); req.Number != uint64(i+1) {
			t.Errorf("store %d: renewal %d, want %d", i, req.Number, i+1)
		}
	}
}

// Everything that asks stores starts over under the list that they have.
func TestEveryOperationGoesOverToANewerList(t *testing.T) {
	for name, do := range map[string]func(ctx context.Context, g *Group) error{
		"read by prefix": func(ctx context.Context, g *Group) error { _, err := g.ReadPrefix(ctx, me, "s"); return err },
		"release": func(ctx context.Context, g *Group) error {
			return g.Release(ctx, me, []LeaseItem{{Register: section, Round: 1}}, other)
		},
		"end of a session": func(ctx context.Context, g *Group) error { return g.EndSession(ctx, seq.NewSecret("")) },
		"load":             func(ctx context.Context, g *Group) error { _, err := g.LoadDocument(ctx, me, routes); return err },
		"swap": func(ctx context.Context, g *Group) error {
			_, err := g.SwapDocument(ctx, me, routes, 0, []byte("x"))
			return err
		},
		"repair": func(ctx context.Context, g *Group) error { return g.RepairDocument(ctx, me, routes) },
		"probe":  func(ctx context.Context, g *Group) error { return g.Probe(ctx, me, []seq.Register{section})[0].Err },
	} {
		for _, told := range []bool{true, false} {
			bubble.Test(t, func(t *testing.T) {
				fakes, stores := fakeStores(3, true, section, routes)
				var g *Group
				refuse := func(string) fault {
					if g.Config().Ref.Members == 1 {
						return fault{before: fmt.Errorf("%w: newer", seq.ErrStaleEra)}
					}
					return fault{}
				}
				for _, f := range fakes {
					f.script(refuse)
				}
				asked := 0
				stale := func() { asked++ }
				cfg := Config{Ref: Ref{Members: 1}, N: 3, R: 2, W: 2, Timeout: 10 * time.Second, OnStale: stale}
				g, err := NewGroup(cfg, stores)
				if err != nil {
					t.Fatal(err)
				}
				defer g.Close()
				start := time.Now()
				if told {
					time.AfterFunc(time.Second, func() {
						if err := g.Reconfigure(Config{Ref: Ref{Members: 2}, N: 3, R: 2, W: 2}, stores); err != nil {
							t.Error(err)
						}
					})
				}
				err = do(t.Context(), g)
				if took := time.Since(start); told && (err != nil || took > 2*time.Second) ||
					!told && (!errors.Is(err, seq.ErrStaleEra) || took < refreshTime || took > 4*refreshTime) {
					t.Errorf("%s, newer list told %v: got %v after %v", name, told, err, took)
				}
				if asked == 0 {
					t.Errorf("%s: the newer list is not asked for", name)
				}
				if got := g.Config(); told && (got.Timeout != cfg.Timeout || got.OnStale == nil) {
					t.Errorf("%s: the next list goes by %+v", name, got)
				}
			})
		}
	}
}

func TestARepairedDocumentIsAtWStoresWhateverWasAccepted(t *testing.T) {
	g, fakes := cluster(t, 3, true, routes)
	if err := g.RepairDocument(t.Context(), me, routes); err != nil {
		t.Errorf("nothing to repair: %v", err)
	}
	g.sent.Wait()
	if n := fakes[0].count("step"); n != 0 {
		t.Errorf("%d steps of a document that was never written", n)
	}
	// So many have what was accepted under an older list that every W of this one meet it.
	body := documentOf(7, "old")
	for _, f := range fakes[:2] {
		f.set(routes, Result{Promised: epoch(5, other), Accepted: epoch(5, other), Max: 7, Payload: body})
	}
	if err := g.RepairDocument(t.Context(), me, routes); err != nil {
		t.Fatal(err)
	}
	g.sent.Wait()
	have := 0
	for _, f := range fakes {
		if got := f.get(routes); string(got.Payload) == string(body) && got.Max == 7 && got.Accepted.Session == me {
			have++
		}
	}
	if have < 2 {
		t.Errorf("%d stores have it under the repairer's epoch, want 2 or more", have)
	}
	fakes[1].always(fault{before: errDropped})
	fakes[2].always(fault{before: errDropped})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := g.RepairDocument(ctx, me, routes); err == nil {
		t.Error("repaired at one store of three")
	}
}

// documentOf is a document as it is kept: its version, 8 bytes, and its body.
func documentOf(version byte, body string) []byte {
	return append([]byte{0, 0, 0, 0, 0, 0, 0, version}, body...)
}

func TestSessionsAreShownAsTheStoresSawThemLastInTheOrderOfTheirNames(t *testing.T) {
	r := newRenewal(t, 3, true)
	var infos []SessionInfo
	for i, name := range []string{"d", "b", "e", "a", "c"} {
		infos = append(infos, SessionInfo{Session: seq.Session(i + 1), Name: name, Addr: name + ":1", Remaining: lease, Attached: uint32(i)})
	}
	r.renew(RenewReply{Sessions: infos}, 0)
	names := func() (out string) {
		for _, s := range r.Sessions() {
			out += s.Name + "@" + s.Addr + " "
		}
		return out
	}
	if got := names(); got != "a@a:1 b@b:1 c@c:1 d@d:1 e@e:1 " || r.news != 1 {
		t.Errorf("got %s, told %d times", got, r.news)
	}
	infos[0].Addr = "moved:1"
	r.renew(RenewReply{Sessions: infos}, 1)
	infos[2].Name = "z"
	r.renew(RenewReply{Sessions: infos}, 2)
	if got := names(); got != "a@a:1 b@b:1 c@c:1 d@moved:1 z@e:1 " || r.news != 3 {
		t.Errorf("got %s, told %d times, want a move and a name told", got, r.news)
	}
}

func TestADeadSessionIsKeptWhileAStoreMayStillKeepItsLeases(t *testing.T) {
	r := newRenewal(t, 3, true)
	long := []SessionInfo{{Session: other, Name: "b", Remaining: 2 * keepDead}}
	r.renew(RenewReply{Sessions: long}, 0, 1, 2)
	r.clock.Advance(2 * lease) // no store has just started
	r.renew(RenewReply{}, 0, 1)
	r.clock.Advance(keepDead)
	r.renew(RenewReply{}, 0)
	if got := r.Sessions(); len(got) != 1 || !got[0].Dead {
		t.Errorf("got %+v, want it dead and shown: a store still has it", got)
	}
	r.clock.Advance(keepDead)
	r.renew(RenewReply{}, 0)
	if got := r.Sessions(); len(got) != 0 {
		t.Errorf("got %+v, want it forgotten", got)
	}
}

func TestTheHolderThatIsShownIsTheOneThatStaysLongest(t *testing.T) {
	held := func(who seq.Session, d time.Duration) answer {
		return answer{uuid: fmt.Sprint(who), results: []Result{{Verdict: VerdictHeld, Holder: who, Remaining: d}}}
	}
	reserved := answer{uuid: "r", results: []Result{{Verdict: VerdictHeld, Remaining: time.Hour}}}
	for _, answers := range [][]answer{
		{held(8, 1), held(9, 3), reserved}, {held(9, 3), held(8, 1), reserved}, {reserved, held(9, 3), held(8, 1)}, {reserved, held(8, 1), held(9, 3)},
	} {
		b := &batch{op: "probe", n: 3, w: 2, length: 1, answers: answers, register: func(int) seq.Register { return section }}
		if o := b.outcomes(time.Now())[0]; o.Holder != 9 || o.State != Refused {
			t.Errorf("got %v, %v, want 9 and refused", o.Holder, o.State)
		}
	}
}

func TestAnErrorSaysWhatWasAskedOfWhatAndWhyNot(t *testing.T) {
	g, fakes := cluster(t, 3, true, section)
	for _, f := range fakes {
		f.always(fault{verdict: VerdictRefused, edit: func(r *Result) { r.Message = "too large" }})
	}
	err := g.Step(t.Context(), me, []StepItem{{Register: section, Round: 5, Max: 100}})[0].Err
	if want := fmt.Sprintf("step %s: %v (too large)", section, ErrRefused); err == nil || err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
	for _, f := range fakes {
		f.always(fault{before: errDropped})
	}
	err = g.Prepare(t.Context(), me, []PrepareItem{{Register: section, Round: 5}})[0].Err
	if err == nil || !strings.HasPrefix(err.Error(), fmt.Sprintf("prepare %s: %v; store ", section, seq.ErrNoQuorum)) || strings.Count(err.Error(), "dropped") < 2 {
		t.Errorf("got %q, want the stores and their reasons", err)
	}
}

func TestStoresThatCameAreRenewedAndThoseThatWentAreNot(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		l, fakes := run(t, 3, nil)
		h := l.Attach(section, 1)
		<-h.Ready()
		more, stores := fakeStores(4, true)
		for i := range fakes {
			stores[i].Store = fakes[i]
		}
		if err := l.Reconfigure(Ref{Members: 2}, 2, []NamedStore{stores[0], stores[1], stores[3]}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		gone, stays := fakes[2].count("renew"), fakes[0].count("renew")
		time.Sleep(3 * lease)
		if got := fakes[2].count("renew"); got != gone {
			t.Errorf("the store that went was renewed %d times more", got-gone)
		}
		if came, stayed := more[3].count("renew"), fakes[0].count("renew")-stays; came < 14 || stayed < 14 {
			t.Errorf("in three leases the store that came was renewed %d times, one that stayed %d", came, stayed)
		}
		if got := l.Connected(); got != 3 {
			t.Errorf("%d connected", got)
		}
		bad := slices.Clone(stores[:3])
		bad[1].UUID = bad[0].UUID
		for name, err := range map[string]error{
			"quorums that miss each other": l.Reconfigure(Ref{Members: 3}, 1, stores[:3]),
			"a uuid twice":                 l.Reconfigure(Ref{Members: 3}, 2, bad),
		} {
			if !errors.Is(err, ErrBadConfig) && !errors.Is(err, ErrIdentity) {
				t.Errorf("%s: got %v", name, err)
			}
		}
		if l.now.Load().ref.Members != 2 {
			t.Error("a list that was refused is in force")
		}
	})
}
