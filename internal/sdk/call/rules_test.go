package call

import (
	"context"
	"log/slog"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seqsvr/seqsvr/internal/sdk/route"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
)

// bare is a Client that takes a wish for a newer table, and nothing else.
func bare(addrs ...string) *Caller {
	c := &Caller{ctx: context.Background(), cfg: Config{Addrs: addrs, Logger: slog.New(slog.DiscardHandler)}}
	routing := c.routing()
	routing.Dial = func(to *route.Server) (route.Peer, error) { return &Server{Server: to, c: c}, nil }
	c.table, _ = route.New(routing)
	return c
}

// round is the servers that one round asks for one key, in order: a to e are of the table,
// where c owns section 0 and d and e are its standbys, and s is the one address of Config.
// Those in doubt are silent for all kinds of calls; those being probed are asked by another
// call already.
func round(t *testing.T, r *rules, doubted, probed string) (asked string, held map[string]bool) {
	t.Helper()
	k, v := inRound(r, doubted, probed)
	held = map[string]bool{}
	for len(asked) < 20 {
		a := k.pick(v, 0, nil)
		if a == nil {
			return asked, held
		}
		asked += a.Server.Addr
		if a.probe != nil {
			held[a.Server.Addr] = true
		}
	}
	t.Fatalf("a round has no end: %s", asked)
	return "", nil
}

// inRound is a call as in round, and its view.
func inRound(r *rules, doubted, probed string) (*call, *route.View) {
	c := bare("s")
	one := route.Part{Of: c.table.First(), Routes: &seq.RouteTable{Version: 7, Sections: []seq.Placement{{Owner: 2, Standby: 3, Standby2: 4}}}}
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		at, _ := c.table.At(name, nil)
		one.Nodes = append(one.Nodes, at)
	}
	v := route.NewView(1, seq.Mapping{}, sets.Map{}, []route.Part{one})
	for range 4 {
		c.table.Turn() // so that the next round in turn begins at a
	}
	for _, s := range slices.Concat(v.Nodes, c.table.Seeds()) {
		for _, h := range []*health{&peer(s).health, &peer(s).idsHealth} {
			for _, name := range doubted + probed {
				if string(name) == s.Addr {
					h.silent.Store(true)
				}
			}
			for _, name := range probed {
				if string(name) == s.Addr {
					h.probing.Store(true)
				}
			}
		}
	}
	return &call{c: c, rules: r}, v
}

// Of servers that are silent one that has said something comes first, and the others keep nobody
// for longer in a later round.
func TestOfSilentServersOneThatHasSaidSomethingIsAskedForIDsFirst(t *testing.T) {
	k, v := inRound(&forAny, "abcdes", "")
	k.start.round = 3
	asked := ""
	for range 6 {
		a := k.pick(v, 0, nil)
		if a == nil {
			break
		}
		if asked += a.Server.Addr; (a.round == 3) != (a.Server == peer(v.Nodes[3])) {
			t.Errorf("%s was asked as in round %d", a.Server.Addr, a.round)
		}
		peer(v.Nodes[3]).idsHealth.spoke.Store(true)
	}
	if asked != "adbces" {
		t.Errorf("asked %s, want adbces", asked)
	}
}

func TestEachKindOfCallAsksInItsOrder(t *testing.T) {
	for _, row := range []struct {
		name            string
		rules           *rules
		doubted, probed string
		want            string
		held            map[string]bool
	}{
		{"a key", &forKeys, "", "", "cdes", nil},
		{"a key, and the owner is in doubt", &forKeys, "c", "", "cdes", map[string]bool{"c": true}},
		{"a key, and another call is there to see", &forKeys, "", "c", "des", nil},
		{"a tag", &forTag, "", "", "cdes", nil},
		{"what all answer", &forAny, "", "", "abcdes", nil},
		{"what all answer, and one in doubt comes last", &forAny, "b", "", "acdesb", nil},
		{"what all answer, where others are there to see", &forAny, "", "ab", "cdesab", nil},
		{"once, and those in doubt come last", &forOnce, "a", "b", "cdesab", nil},
	} {
		asked, held := round(t, row.rules, row.doubted, row.probed)
		if row.held == nil {
			row.held = map[string]bool{}
		}
		if asked != row.want || !cmp.Equal(held, row.held) {
			t.Errorf("%s: asked %s as the one that sees %v, want %s and %v", row.name, asked, held, row.want, row.held)
		}
	}
}
