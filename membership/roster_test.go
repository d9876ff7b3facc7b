package membership

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seqsvr/seqsvr/seq"
)

var t0 = time.Unix(1_000_000, 0)

func at(d time.Duration) time.Time { return t0.Add(d) }

func node(name string, session uint64) Meta {
	return Meta{Role: RoleStore, Name: name, Session: session}
}

func TestARosterTellsEachChangeOnce(t *testing.T) {
	r := newRoster("me", time.Minute)
	newer := node("a", 1)
	newer.TableVersion = 5
	steps := []struct {
		what string
		do   func() change
		want change
	}{
		{"appears", func() change { return r.alive(node("a", 1), "g:1", at(0)) }, joined},
		{"appears again", func() change { return r.alive(node("a", 1), "g:1", at(1)) }, ""},
		{"new metadata", func() change { return r.alive(newer, "g:1", at(2)) }, updated},
		{"new address", func() change { return r.alive(newer, "g:2", at(3)) }, updated},
		{"new session", func() change { return r.alive(node("a", 2), "g:2", at(4)) }, restarted},
		{"gone", func() change { return r.gone("a", at(5)) }, died},
		{"gone again", func() change { return r.gone("a", at(6)) }, ""},
		{"back", func() change { return r.alive(node("a", 2), "g:2", at(7)) }, joined},
		{"unknown gone", func() change { return r.gone("b", at(8)) }, ""},
	}
	for _, s := range steps {
		if got := s.do(); got != s.want {
			t.Errorf("%s: got %q, want %q", s.what, got, s.want)
		}
	}
}

func TestSinceMovesWithTheStateAndNotWithTheMetadata(t *testing.T) {
	r := newRoster("me", time.Hour)
	m := node("a", 1)
	r.alive(m, "g", at(0))
	m.TableVersion = 1
	r.alive(m, "g", at(time.Second))
	if got, want := r.members["a"].Since, at(0); !got.Equal(want) {
		t.Errorf("after an update: got since %v, want %v", got, want)
	}
	r.gone("a", at(2*time.Second))
	if got, want := r.members["a"].Since, at(2*time.Second); !got.Equal(want) {
		t.Errorf("after the death: got since %v, want %v", got, want)
	}
	r.notice(departure{"a", 1}, at(3*time.Second))
	if got, want := r.members["a"].Since, at(2*time.Second); !got.Equal(want) {
		t.Errorf("after a late notice: got since %v, want %v", got, want)
	}
}

func TestADepartureNoticeTurnsDeadIntoLeftInEitherOrder(t *testing.T) {
	for _, noticeFirst := range []bool{true, false} {
		t.Run(fmt.Sprint("noticeFirst=", noticeFirst), func(t *testing.T) {
			r := newRoster("me", time.Hour)
			r.alive(node("a", 1), "g", at(0))
			var got, want []change
			note := func() { what, _ := r.notice(departure{"a", 1}, at(1)); got = append(got, what) }
			if noticeFirst {
				note()
				got, want = append(got, r.gone("a", at(2))), []change{"", left}
			} else {
				got, want = append(got, r.gone("a", at(1))), []change{died, left}
				note()
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			if got := r.snapshot(at(3))[0].State; got != StateLeft {
				t.Errorf("got %v, want left", got)
			}
			if _, fresh := r.notice(departure{"a", 1}, at(4)); fresh {
				t.Error("a notice heard twice was news twice")
			}
		})
	}
}

func TestANoticeOfAnEarlierIncarnationDoesNotExcuseADeath(t *testing.T) {
	r := newRoster("me", time.Hour)
	r.alive(node("a", 2), "g", at(0))
	r.notice(departure{"a", 1}, at(1))
	if got := r.gone("a", at(2)); got != died {
		t.Errorf("got %v, want died", got)
	}
	if what, _ := r.notice(departure{"a", 3}, at(3)); what != "" {
		t.Error("a notice of another session changed a dead member")
	}
}

func TestTheGoneAreForgottenAfterATimeAndInNumber(t *testing.T) {
	r := newRoster("me", time.Minute)
	r.alive(node("me", 9), "g", at(0))
	r.alive(node("a", 1), "g", at(0))
	r.gone("a", at(0))
	if got, want := len(r.snapshot(at(time.Minute))), 2; got != want {
		t.Errorf("after a minute: got %d members, want %d", got, want)
	}
	if got, want := len(r.snapshot(at(time.Minute+1))), 1; got != want {
		t.Errorf("later: got %d members, want %d", got, want)
	}
	for i := range maxGone + 10 {
		name := fmt.Sprintf("n%04d", i)
		r.alive(node(name, 1), "g", at(time.Hour+time.Duration(i)))
		r.gone(name, at(time.Hour+time.Duration(i)))
		r.notice(departure{name, uint64(i)}, at(time.Hour))
	}
	for i := range maxDepartures {
		r.notice(departure{"x", uint64(i)}, at(time.Hour+1))
	}
	left := r.snapshot(at(time.Hour + 1))
	if got, want := len(left), maxGone+1; got != want {
		t.Errorf("got %d members, want %d", got, want)
	}
	if got, want := left[1].Meta.Name, "n0010"; got != want {
		t.Errorf("oldest gone member kept: got %s, want %s", got, want)
	}
	if got, want := len(r.departed), maxDepartures; got != want {
		t.Errorf("got %d notices, want %d", got, want)
	}
}

func TestAConflictIsTwoSessionsOfOneNameAndReportedOnceAMinute(t *testing.T) {
	r := newRoster("me", time.Hour)
	kept, refused := Member{Meta: node("a", 1), Gossip: "g:1"}, Member{Meta: node("a", 2), Gossip: "g:2"}
	if err := r.conflict(kept, refused, at(0)); err == nil || !strings.Contains(err.Error(), "g:2") {
		t.Errorf("got %v, want a name conflict with g:2", err)
	}
	if r.conflict(kept, refused, at(conflictRepeat-1)) != nil {
		t.Error("the same pair was reported again within the minute")
	}
	if r.conflict(kept, refused, at(conflictRepeat)) == nil {
		t.Error("the same pair was not reported again after the minute")
	}
	refused.Meta.Session = 1
	if r.conflict(kept, refused, at(0)) != nil {
		t.Error("one process under two addresses was reported as a conflict")
	}
}

func TestTheHighestTableVersionIsThatOfTheLiving(t *testing.T) {
	r := newRoster("me", time.Hour)
	for i, name := range []string{"a", "b"} {
		m := node(name, 1)
		m.TableVersion = uint64(i + 1)
		r.alive(m, "g", at(0))
	}
	if got := r.highest(seq.Incarnation{}); got != 2 {
		t.Errorf("got %d, want 2", got)
	}
	r.gone("b", at(1))
	if got := r.highest(seq.Incarnation{}); got != 1 {
		t.Errorf("after the death: got %d, want 1", got)
	}
}

func TestALaterEraIsToldByALiveAllocSvrOfTheSameClusterAlone(t *testing.T) {
	life := func(cluster byte, era seq.Era) seq.Incarnation {
		return seq.Incarnation{Cluster: seq.ClusterID{cluster}, Era: era, Binding: seq.ClusterID{byte(era) + 1}}
	}
	for name, row := range map[string]struct {
		role Role
		life seq.Incarnation
		dead bool
		want bool
	}{
		"later":           {RoleAlloc, life(1, 2), false, true},
		"a store":         {RoleStore, life(1, 2), false, false},
		"dead":            {RoleAlloc, life(1, 2), true, false},
		"the same":        {RoleAlloc, life(1, 1), false, false},
		"earlier":         {RoleAlloc, life(1, 0), false, false},
		"another cluster": {RoleAlloc, life(2, 2), false, false},
		"tells none":      {RoleAlloc, seq.Incarnation{}, false, false},
	} {
		r := newRoster("me", time.Hour)
		m := node("a", 1)
		m.Role, m.Incarnation = row.role, row.life
		if r.alive(m, "g", at(0)); row.dead {
			r.gone("a", at(1))
		}
		if got := r.laterEra(life(1, 1)); got != row.want {
			t.Errorf("%s: got %v, want %v", name, got, row.want)
		}
	}
}

func TestWhomANodeTriesToJoin(t *testing.T) {
	live := Member{State: StateAlive, Gossip: "live:1"}
	dead := Member{State: StateDead, Gossip: "dead:1"}
	left := Member{State: StateLeft, Gossip: "left:1"}
	self := Member{State: StateAlive, Gossip: "own:1", Self: true}
	seeds := []string{"own:1", "seed:1", "live:1"}
	const heal = time.Minute
	settled := t0.Add(-settleTime)
	for _, c := range []struct {
		what    string
		state   rejoinState
		members []Member
		want    []string
	}{
		{"alone", rejoinState{started: settled, lastHeal: t0}, []Member{self, dead, left}, []string{"seed:1", "live:1", "dead:1"}},
		{"with company", rejoinState{started: settled, lastHeal: t0}, []Member{self, live, dead}, nil},
		{"with company, healing", rejoinState{started: settled, lastHeal: t0.Add(-heal)}, []Member{self, live, dead}, []string{"seed:1", "dead:1"}},
		{"settling", rejoinState{started: t0, lastHeal: t0}, []Member{self, live, dead}, []string{"live:1"}},
		{"refused", rejoinState{started: settled, lastHeal: t0, refused: true}, []Member{self, live}, []string{"live:1"}},
	} {
		c.state.seeds = seeds
		if diff := cmp.Diff(c.want, c.state.due(c.members, "own:1", t0, heal)); diff != "" {
			t.Errorf("%s: %s", c.what, diff)
		}
	}
}
