package dev

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/internal/daemon"
	"github.com/seqsvr/seqsvr/internal/survey"
)

// setRow is one line of set list.
type setRow struct {
	Set      string   `json:"set"`
	Sections int      `json:"sections"`
	Addrs    []string `json:"addrs"`
	Alive    bool     `json:"alive"`
}

func TestSetsDivideTheSectionsAndGoOnWhereTheyWereStopped(t *testing.T) {
	dir := t.TempDir()
	flags := []string{"--sets", "2", "--stores", "1", "--allocs", "1", "--sections", "16"}
	want, last := []int{8, 8}, map[string]uint64{}
	for range 2 {
		c := up(t, dir, flags...)
		var rows []setRow
		c.ask(t, &rows, "set", "list")
		if len(rows) != 2 || rows[0].Set != "main" || rows[1].Set != "set-2" || rows[0].Sections != want[0] || rows[1].Sections != want[1] || !rows[0].Alive || !rows[1].Alive {
			t.Fatalf("got %+v, want %d sections", rows, want)
		}
		for _, addr := range append(rows[1].Addrs, c.GRPC) {
			// Nodes and the router hear of the map within seconds.
			s, has := survey.Status{}, want[1]
			if addr == c.GRPC {
				has = want[0]
			}
			for deadline := time.Now().Add(patience); len(s.Sets) != 2 || s.Unowned != 0 || s.Here != has || s.Health != survey.Healthy; <-time.After(50 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatalf("status at %s: %+v, want 2 Sets and %d sections there", addr, s, has)
				}
				s = survey.Status{}
				out, _, _ := seqctl(t.Context(), "status", "--addr", addr, "-o", "json") // exit 1 while it is not well
				_ = json.Unmarshal([]byte(out), &s)                                      // nothing is printed if nothing answers
			}
		}
		seen := map[string]bool{}
		for _, uid := range strings.Fields("1 1000003 2000003 3000017 4000037 5000011 6000011 7000003 8000009 9000011 10000019 11000027") {
			var got taken
			c.ask(t, &got, "next", uid)
			if got.First <= last[uid] {
				t.Errorf("uid %s: got %d after %d", uid, got.First, last[uid])
			}
			last[uid] = got.Last
			var place survey.Place
			c.ask(t, &place, "route", uid)
			if seen[place.Set] = true; (place.Set == "set-2") != strings.HasPrefix(place.Owner, "set-2-") {
				t.Errorf("uid %s is with %s of Set %s", uid, place.Owner, place.Set)
			}
		}
		if len(seen) != 2 {
			t.Errorf("12 uids are in Sets %v, want two", seen)
		}
		if want[0] == 8 {
			var moved struct {
				Move  uint64 `json:"move"`
				State string `json:"state"`
			}
			c.ask(t, &moved, "set", "move", "--sections", "8-11", "--to", "main")
			if moved.Move == 0 || moved.State != "moved" {
				t.Errorf("got %+v", moved)
			}
			want = []int{12, 4}
			c.ask(t, &moved, "set", "move", "--sections", "0-11", "--to", "main")
			if moved.Move != 0 {
				t.Errorf("sections that are there already moved by %+v", moved)
			}
			refused(t, c, "seqctl set show", "set", "abort", "--id", "99")
			refused(t, c, "expected one of main, set-2", "set", "move", "--sections", "1", "--to", "nowhere")
			refused(t, c, "expected 0 to 15", "set", "move", "--sections", "16", "--to", "set-2")
		}
		c.down(t)
	}
	_, _, err := seqctl(t.Context(), "dev", "--data-dir", dir, "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--stores", "1", "--allocs", "1")
	if !errors.Is(err, daemon.ErrUsage) || !strings.Contains(err.Error(), "more than 1 Sets") {
		t.Errorf("a start with fewer Sets: got %v", err)
	}
}

// refused has a verb fail with a text, and not as wrongly called.
func refused(t *testing.T, c *cluster, want string, args ...string) {
	t.Helper()
	_, _, err := seqctl(t.Context(), append(args, "--addr", c.GRPC)...)
	if err == nil || errors.Is(err, daemon.ErrUsage) || !strings.Contains(err.Error(), want) {
		t.Errorf("%v: got %v, want an error with %q", args, err, want)
	}
}
