package storeadmin_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/seqsvr/seqsvr/internal/ops/storeadmin"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr"
)

// sized are n stores of cluster c1 of which a read needs r and a write w, bound.
func sized(t *testing.T, n, r, w int) []*store {
	t.Helper()
	names := []string{"a", "b", "c", "d"}[:n]
	stores := make([]*store, n)
	for i, name := range names {
		stores[i] = newStore(t, name, func(dir string) error {
			return storesvr.Init(storesvr.InitConfig{DataDir: dir, ClusterID: "c1", Name: name, MemberNames: names, R: r, W: w,
				Spaces: []seq.Space{{Name: "user", Sections: sections}}})
		})
	}
	if err := connect(t, stores...).Close(); err != nil {
		t.Fatal(err)
	}
	return stores
}

// Each order is carried out for any R and W that storesvr init was given, with R as small or as large as
// allowed. Each member list overlaps the list before. Any W stores know every earlier confirmed write after
// it.
func TestStoresAreAddedRemovedAndReplacedWhateverAReadNeeds(t *testing.T) {
	orders := map[string]func(c *storeadmin.Care, fresh *store) ([]storeadmin.Step, error){
		"add": func(c *storeadmin.Care, fresh *store) ([]storeadmin.Step, error) {
			return c.Add(t.Context(), fresh.addr)
		},
		"remove": func(c *storeadmin.Care, _ *store) ([]storeadmin.Step, error) { return c.Remove("a", "a test") },
		"replace": func(c *storeadmin.Care, fresh *store) ([]storeadmin.Step, error) {
			return c.Replace(t.Context(), "a", fresh.addr, "a test")
		},
	}
	for n := 1; n <= 4; n++ {
		for w := n/2 + 1; w <= n; w++ {
			for _, r := range slices.Compact([]int{n - w + 1, n}) {
				for order, plan := range orders {
					if n == 1 && order != "add" {
						continue // none would be left
					}
					t.Run(fmt.Sprintf("%s of N=%d R=%d W=%d", order, n, r, w), func(t *testing.T) {
						t.Parallel()
						s, reg := sized(t, n, r, w), seq.SectionRegister(1)
						prepareAndStep(t, reg, seq.Epoch{Round: 3, Session: alice}, 77, s[:w]...)
						c, fresh := open(t, s...), learner(t, "n")
						steps, err := plan(c, fresh)
						if err != nil {
							t.Fatal(err)
						}
						before := c.List()
						for _, step := range steps {
							run(t, []storeadmin.Step{step}, nil)
							if err := quorum.Overlap(before, c.List()); err != nil {
								t.Fatalf("%s: %v", step.Name, err)
							}
							before = c.List()
						}
						s = append(s, fresh)
						if order != "add" {
							s = s[1:]
						}
						if order == "remove" {
							s = s[:len(s)-1]
						}
						list := c.List()
						if _, busy := list.Learner(); list.N() != len(s) || busy {
							t.Errorf("list %+v", list)
						}
						for _, lost := range s[list.W:] {
							lost.stop()
						}
						wantBases(t, map[seq.Register]uint64{reg: 77}, group(t, s[:list.W]...))
					})
				}
			}
		}
	}
}

func TestTheOnlyStoreIsNotReplaced(t *testing.T) {
	c := open(t, sized(t, 1, 1, 1)...)
	_, err := c.Replace(within(t), "a", learner(t, "n").addr, "a test")
	wantErr(t, "replace the only store", err, storeadmin.ErrTooFew)
}

// A change stopped after any step of it is taken up by the same order, though a read came to
// need more stores meanwhile.
func TestAChangeOfFourStoresThatWasStoppedIsTakenUpByTheSameOrder(t *testing.T) {
	for _, order := range []string{"add", "remove"} {
		for killed := 0; ; killed++ {
			s, fresh := founders(t, 4), learner(t, "n")
			plan := func(c *storeadmin.Care) ([]storeadmin.Step, error) {
				if order == "add" {
					return c.Add(within(t), fresh.addr)
				}
				return c.Remove("d", "")
			}
			first := open(t, s...)
			steps, err := plan(first)
			if err != nil {
				t.Fatal(err)
			}
			if killed >= len(steps) {
				break
			}
			run(t, steps[:killed], nil)
			first.Close()
			second := open(t, s...)
			if steps, err = plan(second); order == "remove" && second.List().N() == 3 {
				wantErr(t, "once more", err, storeadmin.ErrNoMember)
				continue
			}
			run(t, steps, err)
			if l := second.List(); order == "add" && (l.N() != 5 || l.R != 3 || l.W != 3) || order == "remove" && (l.N() != 3 || l.R != 2 || l.W != 2) {
				t.Errorf("%s, stopped after step %d: list %+v", order, killed, l)
			}
		}
	}
}

// A build of before decided the list with the learner and could not end the change.
func TestAnAdditionThatGotStuckForItsReadsIsEnded(t *testing.T) {
	s, fresh := founders(t, 4), learner(t, "n")
	list := quorum.MemberList{Version: 2, R: 2, W: 3}
	for _, x := range append(s, fresh) {
		_, id := at(t, x)
		list.Members = append(list.Members, quorum.Member{UUID: id.UUID, Name: x.name, Addr: x.addr, Learner: x == fresh})
	}
	before := quorum.MemberList{Version: 1, R: 2, W: 3, Members: list.Voters()}
	body, err := json.Marshal(map[string]any{"list": list, "before": before, "r": 3, "w": 3, "why": "add n"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := group(t, s...).SwapDocument(within(t), alice, seq.MembersRegister, 0, body); err != nil {
		t.Fatal(err)
	}
	c := open(t, s...)
	steps, err := c.Add(within(t), fresh.addr)
	run(t, steps, err)
	if l := c.List(); l.N() != 5 || l.R != 3 || l.W != 3 {
		t.Errorf("list %+v", l)
	}
}
