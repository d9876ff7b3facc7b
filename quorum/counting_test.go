package quorum

import (
	"errors"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/internal/base/clock"
	"github.com/seqsvr/seqsvr/seq"
)

func TestANackRefusesAStepWhateverIsSaidAfterIt(t *testing.T) {
	e := epoch(5, me)
	ok := func(uuid string) answer {
		return answer{uuid: uuid, results: []Result{{Verdict: VerdictOK, Promised: e, Accepted: e, Max: 9}}}
	}
	nack := answer{uuid: "n", results: []Result{{Verdict: VerdictNack, Promised: epoch(6, other)}}}
	for i := range 3 {
		b := &batch{op: "step", n: 3, w: 2, length: 1, nackDecides: true, register: func(int) seq.Register { return section }}
		answers := []answer{ok("a"), ok("b")}
		b.answers = append(append(append(b.answers, answers[:i]...), nack), answers[i:]...)
		if o := b.outcomes(time.Now())[0]; o.State != Refused || !errors.Is(o.Err, ErrNack) {
			t.Errorf("a NACK as answer %d of 3: got %v, %v, want refused", i+1, o.State, o.Err)
		}
	}
}

func TestAReadByPrefixWaitsForAsManyAsAWriteNeeds(t *testing.T) {
	fakes, stores := fakeStores(3, true, section)
	g, err := NewGroup(Config{N: 3, R: 1, W: 3}, stores)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	for range 50 {
		got, err := g.ReadPrefix(t.Context(), me, string(section))
		if err != nil || got[section].State != Won || got[section].Acks != 3 {
			t.Fatalf("got %+v, %v, want all three", got, err)
		}
	}
	fakes[0].always(fault{before: errDropped})
	if got, err := g.ReadPrefix(t.Context(), me, string(section)); err != nil || got[section].State == Won {
		t.Errorf("with two of three: got %+v, %v, want it read and not won", got, err)
	}
}

func TestAnOnDemandRegisterOfOneStoreIsFreeAtTheOthersInAReadByPrefix(t *testing.T) {
	tag := seq.TagRegister("t")
	g, fakes := cluster(t, 3, true)
	for i, f := range fakes {
		f.set(tag, Result{Max: 7})
		got, err := g.ReadPrefix(t.Context(), me, string(tag))
		if err != nil || i > 0 && got[tag].State != Won || i == 2 && got[tag].Max != 7 {
			t.Errorf("at %d of three: got %+v, %v", i+1, got, err)
		}
	}
	a := []answer{{uuid: "a", results: []Result{{Register: tag, Verdict: VerdictOK, Max: 7}}}, {uuid: "b"}}
	regs := alignByRegister(a)
	if len(regs) != 1 || regs[0] != tag || a[0].results[0].Max != 7 || a[1].results[0].Verdict != VerdictUnknown {
		t.Errorf("aligned: %v, %+v", regs, a)
	}
}

func TestAStoreIsTheOneWithItsUUIDElseWithItsName(t *testing.T) {
	for _, row := range []struct {
		name                     string
		answered, told, wantUUID string
		sameName, want           bool
	}{
		{"answered under it", "u", "", "u", false, true},
		{"configured under it", "", "u", "u", false, true},
		{"answers under another, same name", "v", "", "u", true, false},
		{"configured under another, same name", "", "v", "u", true, false},
		{"no uuid asked, same name", "u", "u", "", true, true},
		{"no uuid asked, another name", "u", "u", "", false, false},
		{"no uuid known, same name", "", "", "u", true, true},
		{"no uuid known, another name", "", "", "u", false, false},
	} {
		s := newStoreLease(0, NamedStore{Name: "a", UUID: row.told})
		s.uuid = row.answered
		named := NamedStore{Name: "b", UUID: row.wantUUID}
		if row.sameName {
			named.Name = "a"
		}
		if got := s.is(named); got != row.want {
			t.Errorf("%s: got %v, want %v", row.name, got, row.want)
		}
	}
}

func TestAFreeSlotIsTheFirstThatNobodyHas(t *testing.T) {
	for taken, want := range map[uint64]int{0: 0, 0b1: 1, 0b101: 1, 0b1011: 2, 1<<(maxSlots-1) - 1: maxSlots - 1} {
		if got, err := freeSlot(taken); got != want || err != nil {
			t.Errorf("%b: got %d, %v, want %d", taken, got, err, want)
		}
	}
	if _, err := freeSlot(1<<maxSlots - 1); !errors.Is(err, ErrBadConfig) {
		t.Errorf("all taken: got %v, want ErrBadConfig", err)
	}
}

func TestAGroupIsOfStoresThatCanBeToldApart(t *testing.T) {
	_, stores := fakeStores(3, true, section)
	twice := append([]NamedStore{stores[0]}, stores[:2]...)
	nameless := append([]NamedStore{}, stores...)
	nameless[1].Name = ""
	cfg := Config{N: 3, R: 2, W: 2}
	g, _ := cluster(t, 3, true, section)
	before := g.Config()
	for name, s := range map[string][]NamedStore{"one twice": twice, "one without a name": nameless, "too few": stores[:2]} {
		if _, err := NewGroup(cfg, s); err == nil {
			t.Errorf("%s: a new group of it", name)
		}
		if err := g.Reconfigure(Config{Ref: Ref{Members: 9}, N: 3, R: 2, W: 2}, s); err == nil || g.Config().Ref != before.Ref {
			t.Errorf("%s: %v, the group goes by %+v", name, err, g.Config())
		}
	}
}

func TestANewerListIsAskedForOnlyIfAStoreSpeaksOfOne(t *testing.T) {
	fakes, stores := fakeStores(3, true, section)
	asked := 0
	g, err := NewGroup(Config{N: 3, R: 2, W: 2, OnStale: func() { asked++ }}, stores)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	for _, f := range fakes {
		f.always(fault{before: errDropped})
	}
	if out := g.Probe(t.Context(), me, []seq.Register{section})[0]; out.State != Unknown || asked != 0 {
		t.Errorf("got %v, asked %d times", out.State, asked)
	}
}

func TestNoStoreIsConnectedBeforeItsFirstAnswer(t *testing.T) {
	_, stores := fakeStores(3, true)
	ref := Ref{Cluster: "c", Era: 2, Members: 1, MembersHash: 5}
	l, err := NewLeases(LeaseConfig{Ref: ref, Session: me, Name: "a", Lease: lease, N: 3, W: 2, Clock: clock.NewManual(0)}, stores)
	if err != nil {
		t.Fatal(err)
	}
	h := l.Attach(section, 4)
	if l.Connected() != 0 || h.Until() != 0 || h.Register() != section || h.Round() != 4 {
		t.Errorf("%d connected, %s under round %d until %v", l.Connected(), h.Register(), h.Round(), h.Until())
	}
	if req, _, _ := l.prepareRenew(l.now.Load().stores[0]); req.Ref != ref {
		t.Errorf("a renewal under %+v, want %+v", req.Ref, ref)
	}
}

func TestAnOvertakenAnswerAttachesNothing(t *testing.T) {
	r := newRenewal(t, 1, true)
	h := r.Attach(section, 4)
	_, first := r.send(0)
	_, second := r.send(0)
	r.reply(0, second, RenewReply{Refused: []LeaseItem{{Register: section, Round: 4}}})
	r.reply(0, first, RenewReply{})
	r.until(h, 0)
}

// The place of a store that went is given away: nothing of it may count for the one that
// has it now.
func TestAStoreThatCameCountsForNothingThatItRefused(t *testing.T) {
	r := newRenewal(t, 3, true)
	h := r.Attach(section, 4)
	r.renew(RenewReply{}, 0, 1, 2)
	_, stores := fakeStores(4, true)
	for version, list := range [][]NamedStore{stores[:2], {stores[0], stores[1], stores[3]}} {
		if err := r.Reconfigure(Ref{Members: uint64(version) + 2}, 2, list); err != nil {
			t.Fatal(err)
		}
	}
	r.until(h, Term(lease))
	if got := r.Connected(); got != 2 {
		t.Errorf("%d connected before the new store has answered, want 2", got)
	}
	r.clock.Advance(lease / 4)
	r.renew(RenewReply{}, 0)
	_, sent := r.send(2)
	r.reply(2, sent, RenewReply{UUID: "uuid-3", Refused: []LeaseItem{{Register: section, Round: 4}}})
	r.until(h, Term(lease)-lease/4) // by the two that have it; one of them has not answered since
}
