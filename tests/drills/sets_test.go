package drills

import "testing"

// setFelt is what callers of one Set saw.
type setFelt struct {
	Set      string `json:"set"`
	Dead     bool   `json:"dead"`
	Requests int    `json:"requests"`
	Errors   int    `json:"errors"`
	Unnamed  int    `json:"unnamed"`
}

// A Set that is killed is felt by its own callers, by name; that others see no error, and its own no
// other one, the drill checks itself.
func TestAKilledSetIsFeltByItsOwnCallersOnly(t *testing.T) {
	for _, set := range []string{"main", "set-2"} {
		t.Run(set, func(t *testing.T) {
			r := run(t, "kill-set", "--set", set, "--allocs", "2", "--routers", "1")
			r.wants(t, "new caller", "mended", "first answer", "all served")
			if set == "main" {
				r.wants(t, "refused")
			}
			if len(r.Sets) != 2 {
				t.Fatalf("got %+v, want two Sets", r.Sets)
			}
			for _, s := range r.Sets {
				if s.Dead != (s.Set == set) || s.Dead != (s.Errors > 0) || s.Unnamed > 0 || s.Requests == 0 {
					t.Errorf("Set %s: %+v, while %s was killed", s.Set, s, set)
				}
			}
		})
	}
}

func TestSectionsMoveBetweenSetsUnderLoad(t *testing.T) {
	r := run(t, "move-set", "--allocs", "2", "--routers", "1")
	if a := r.Account; a == nil || a.Answered == 0 || a.Skipped > 0 && a.Lapses == 0 {
		t.Errorf("got %+v, want every number that no caller got to have been handed out all the same", a)
	}
	if m := r.Moves; m == nil || m.Moves != 40 || m.Sections != 40*64 || m.Calls == 0 {
		t.Errorf("got %+v, want 40 moves of 64 sections that callers met", m)
	}
}
