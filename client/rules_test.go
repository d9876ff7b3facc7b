package client

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seqsvr/seqsvr/seq"
)

// bare is a Client that takes a wish for a newer table, and nothing else.
func bare() *Client {
	c := &Client{}
	c.table.open(c)
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
		asked += a.server.addr
		if a.probe != nil {
			held[a.server.addr] = true
		}
	}
	t.Fatalf("a round has no end: %s", asked)
	return "", nil
}

// inRound is a call as in round, and its view.
func inRound(r *rules, doubted, probed string) (*call, *view) {
	c := bare()
	c.servers.c = c
	c.servers.seeds = []*server{{c: c, addr: "s", seed: true}}
	c.servers.order.Store(&order{far: c.servers.seeds})
	one := part{of: c.table.home, routes: &seq.RouteTable{Version: 7, Sections: []seq.Placement{{Owner: 2, Standby: 3, Standby2: 4}}}}
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		one.nodes = append(one.nodes, &server{c: c, addr: name})
	}
	v := &view{gen: 1, parts: []part{one}}
	v.merge()
	c.table.view.Store(v)
	c.turn.Store(4) // the next round in turn begins at a
	for _, s := range slices.Concat(v.nodes, c.servers.seeds) {
		for _, h := range []*health{&s.health, &s.idsHealth} {
			for _, name := range doubted + probed {
				if string(name) == s.addr {
					h.silent.Store(true)
				}
			}
			for _, name := range probed {
				if string(name) == s.addr {
					h.probing.Store(true)
				}
			}
		}
	}
	return &call{c: c, rules: r, listed: slices.Concat(c.servers.seeds, v.nodes)}, v
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
		if asked += a.server.addr; (a.round == 3) != (a.server == v.nodes[3]) {
			t.Errorf("%s was asked as in round %d", a.server.addr, a.round)
		}
		v.nodes[3].idsHealth.spoke.Store(true)
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
		{"the table", &forTable, "", "", "sabcde", nil},
		{"the table, whose fetch is no call that sees", &forTable, "sa", "", "bcdesa", nil},
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

func TestAddressesOfTheOwnZoneComeFirstInEachPassOverAll(t *testing.T) {
	at := func(addrs string) (out []*server) {
		for _, a := range addrs {
			out = append(out, &server{addr: string(a)})
		}
		return out
	}
	for _, row := range []struct {
		near, far string
		indirect  bool
		want      []string // by round: what the passes of three rounds ask
	}{
		{"", "xyz", true, []string{"xyz", "yzx", "zxy"}},
		{"z", "xy", true, []string{"zxy", "zyx", "zxy"}},
		{"yz", "x", true, []string{"yzx", "zyx", "yzx"}},
		{"xyz", "", true, []string{"xyz", "yzx", "zxy"}},
		{"", "xyz", false, []string{"x", "y", "z"}}, // one a round, so that all have their turn
		{"z", "xy", false, []string{"z", "x", "y"}},
	} {
		c := bare()
		c.cfg.Indirect = row.indirect
		c.servers.c, c.servers.seeds = c, at(row.near+row.far)
		c.servers.order.Store(&order{near: at(row.near), far: at(row.far)})
		for round, want := range row.want {
			asked := ""
			for step := range c.servers.perRound() {
				asked += c.servers.last(0, round, step).addr
			}
			if asked != want {
				t.Errorf("near %q, far %q, round %d: asked %q, want %q", row.near, row.far, round, asked, want)
			}
		}
	}
}
