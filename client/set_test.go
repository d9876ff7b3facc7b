package client

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
)

// aView has Set 0 with nodes a, b and Set 1 with c, d; of the latter's table section 3 is not
// known yet. Set 2 is not known at all.
func aView() *view {
	tables := []*seq.RouteTable{
		{Version: 1, Sections: []seq.Placement{{Owner: 0, Standby: 1, Standby2: -1}, {Owner: 0, Standby: 1, Standby2: -1}, {Owner: 1, Standby: -1, Standby2: 0}, {Owner: 1, Standby: -1, Standby2: -1}}},
		{Version: 9, Sections: []seq.Placement{{Owner: 1, Standby: 0, Standby2: -1}, {Owner: 1, Standby: 0, Standby2: -1}, {Owner: 0, Standby: -1, Standby2: -1}}},
		nil,
	}
	v := &view{sets: sets.Map{Version: 1, Sets: make([]sets.Set, 3), In: []uint16{1, 2, 0, 1}}}
	for i, names := range []string{"ab", "cd", ""} {
		p := part{of: &set{}, routes: tables[i]}
		for _, name := range names {
			p.nodes = append(p.nodes, &server{addr: string(name)})
		}
		v.parts = append(v.parts, p)
	}
	v.merge()
	return v
}

func TestSectionsHaveTheirServersFromTheTableOfTheirSet(t *testing.T) {
	v := aView()
	show := func(all [1 + standbys]*server) (text string) {
		for _, s := range all {
			if s == nil {
				text += "-"
			} else {
				text += s.addr
			}
		}
		return text
	}
	for id, want := range []string{"dc-", "---", "b-a", "---", "---"} {
		if got := show(v.candidates(seq.SectionID(id))); got != want {
			t.Errorf("section %d: got %s, want %s", id, got, want)
		}
		if s := v.owner(seq.SectionID(id)); s != v.candidates(seq.SectionID(id))[0] {
			t.Errorf("section %d: owner %v", id, s)
		}
	}
	if got := show(v.root().candidates(0)); got != "ab-" {
		t.Errorf("section 0 in the root: got %s", got)
	}
}

func TestTheMapOnlyRisesAndKeepsTheSetsThatAreKnown(t *testing.T) {
	c := bare()
	c.ctx, c.cancel = t.Context(), func() {}
	c.cfg.Indirect = true // no connections are made
	c.cfg.Logger = slog.New(slog.DiscardHandler)
	c.table.home.is.Store(&sets.Set{Cluster: "one"})
	m := func(version uint64, clusters ...string) (m sets.Map) {
		m.Version = version
		for _, one := range clusters {
			m.Sets = append(m.Sets, sets.Set{Name: one, Cluster: one})
		}
		return m
	}
	for _, row := range []struct {
		m     sets.Map
		taken bool
	}{{m(4, "two", "three"), false}, {m(2, "two", "one"), true}, {m(2, "one"), false}, {m(1, "one"), false}, {m(3, "two", "one", "three"), true}, {m(2, "two", "one"), false}} {
		before := c.table.sets.Version
		if got := c.table.adoptMap(row.m); got != row.taken || (c.table.sets.Version == row.m.Version) != (row.taken || before == row.m.Version) {
			t.Errorf("map %d: taken %v, then at %d", row.m.Version, got, c.table.sets.Version)
		}
	}
}

func TestSearchesForAMapGrowRarerUntilOneIsFound(t *testing.T) {
	var s search
	begun := time.Now()
	times := func(from, to time.Duration) (all []time.Duration) {
		for at := from; at < to; at += 10 * time.Millisecond {
			if s.due(begun.Add(at)) {
				all = append(all, at/time.Millisecond)
			}
		}
		return all
	}
	if got, want := times(0, 4*time.Second), []time.Duration{0, 50, 150, 350, 750, 1550, 2550, 3550}; !slices.Equal(got, want) {
		t.Errorf("searches at %d, want %d", got, want)
	}
	s.found()
	if got, want := times(4*time.Second, 5*time.Second), []time.Duration{4550, 4600, 4700, 4900}; !slices.Equal(got, want) {
		t.Errorf("after one was found: %d, want %d", got, want)
	}
	if got, want := times(20*time.Second, 20*time.Second+200*time.Millisecond), []time.Duration{20000, 20050, 20150}; !slices.Equal(got, want) {
		t.Errorf("another time: %d, want %d", got, want)
	}
}

func TestCallsThatBringNoMapHaveItLookedForNowAndThen(t *testing.T) {
	now := time.Now()
	c := &Client{}
	c.table.open(c)
	poked := func() bool {
		select {
		case <-c.table.home.stale:
			return true
		default:
			return false
		}
	}
	c.table.looked.Store(now.UnixNano())
	if c.table.glance(now.Add(glanceEvery)); poked() {
		t.Error("looked for too early")
	}
	c.table.glance(now.Add(glanceEvery + time.Second))
	c.table.glance(now.Add(glanceEvery + 2*time.Second))
	if !poked() || poked() {
		t.Error("not looked for, or twice")
	}
}
