package dev

import (
	"encoding/json"
	"errors"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/internal/ops/survey"
	"github.com/seqsvr/seqsvr/internal/process/daemon"
	"github.com/seqsvr/seqsvr/tests/kit/etcdtest"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
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

// TestSetsWithRolesAreOneSystem runs two Sets that require a certificate or token of every caller.
func TestSetsWithRolesAreOneSystem(t *testing.T) {
	dir := t.TempDir()
	flags := []string{"--sets", "2", "--stores", "1", "--allocs", "1", "--sections", "16", "--secure"}
	for range 2 { // what was made stays
		c := up(t, dir, flags...)
		inDir := func(name string) string { return filepath.Join(dir, "secure", name) }
		ops := []string{"--tls-ca", inDir("ca.pem"), "--token-file", inDir("ops.token")}
		var rows []setRow
		c.ask(t, &rows, append([]string{"set", "list"}, ops...)...)
		if len(rows) != 2 || rows[0].Sections != 8 || rows[1].Sections != 8 || !rows[0].Alive || !rows[1].Alive {
			t.Fatalf("got %+v", rows)
		}
		app, seen := []string{"--tls-ca", inDir("ca.pem"), "--tls-cert", inDir("caller-app.pem"), "--tls-key", inDir("caller-app-key.pem")}, map[string]bool{}
		for _, uid := range strings.Fields("1 1000003 2000003 3000017 4000037 5000011") {
			var got taken
			c.ask(t, &got, append([]string{"next", uid}, app...)...)
			var place survey.Place
			c.ask(t, &place, append([]string{"route", uid}, ops...)...)
			seen[place.Set] = true
		}
		if len(seen) != 2 {
			t.Errorf("6 uids are in Sets %v, want two", seen)
		}
		refused(t, c, "", "next", "1")
		c.down(t)
	}
}

func TestSetsOnEtcdHaveAPrefixEach(t *testing.T) {
	if testing.Short() {
		t.Skip("runs etcd")
	}
	etcd := etcdtest.Start(t, 1)
	dir, last := t.TempDir(), map[string]uint64{}
	for i := range 2 {
		c := up(t, dir, "--etcd", etcd.Endpoints()[0], "--etcd-prefix", "/dev/", "--etcd-min-version", "3.4.0", "--sets", "2", "--allocs", "1", "--sections", "16")
		var rows []setRow
		c.ask(t, &rows, "set", "list")
		if len(rows) != 2 || rows[0].Sections != 8 || rows[1].Sections != 8 || !rows[0].Alive || !rows[1].Alive {
			t.Fatalf("start %d: got %+v", i, rows)
		}
		for _, uid := range strings.Fields("1 1000003 2000003 3000017 4000037 5000011") {
			var got taken
			c.ask(t, &got, "next", uid)
			if got.First <= last[uid] {
				t.Errorf("start %d: uid %s: got %d after %d", i, uid, got.First, last[uid])
			}
			last[uid] = got.Last
		}
		c.down(t)
		if text := c.log.String(); !strings.Contains(text, "below /dev-set-2 in etcd") {
			t.Errorf("start %d says %s", i, text)
		}
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

// TestThePageOfASetThatDiedSaysWhatStatusSays kills all AllocSvr of one Set.
func TestThePageOfASetThatDiedSaysWhatStatusSays(t *testing.T) {
	c := up(t, t.TempDir(), "--processes", "--bin", built(t), "--lease", calm, "--sets", "2", "--stores", "1", "--allocs", "2", "--routers", "2", "--sections", "16")
	agree := func(what string, ok func(survey.Status) bool) (page struct {
		Status survey.Status
		Of     []string `json:"calls_of"`
	}) {
		t.Helper()
		var told survey.Status
		harness.Until(t, what, func() bool {
			told, page.Status = survey.Status{}, survey.Status{}
			out, _, _ := seqctl(t.Context(), "status", "--addr", c.GRPC, "-o", "json") // exit 1 while it is not well
			_ = json.Unmarshal([]byte(out), &told)                                     // nothing is printed if nothing answers
			reply, err := http.Get("http://" + c.Console + "/api/snapshot?topics=status")
			if err != nil {
				return false
			}
			defer reply.Body.Close()
			part := map[string]json.RawMessage{}
			_ = json.NewDecoder(reply.Body).Decode(&part)
			_ = json.Unmarshal(part["status"], &page)
			one, other := page.Status, told
			same := one.Health == other.Health && one.First == other.First && one.Why == other.Why && one.Unowned == other.Unowned &&
				slices.Equal(one.Problems, other.Problems) && slices.Equal(one.Sets, other.Sets) && len(one.Allocs) == len(other.Allocs)
			return same && ok(told)
		})
		return page
	}
	agree("both to be healthy, with the nodes of both Sets", func(s survey.Status) bool {
		return s.Health == survey.Healthy && len(s.Allocs) == 4 && len(s.Stores) == 2 && len(s.Routers) == 2
	})
	var sections struct {
		Sets []string
		Set  []int
		Left []int64 `json:"left_ms"`
	}
	harness.Until(t, "every section of both Sets to have its lease on the page", func() bool {
		reply, err := http.Get("http://" + c.Console + "/api/snapshot?topics=sections")
		if err != nil {
			return false
		}
		defer reply.Body.Close()
		part := map[string]json.RawMessage{}
		_ = json.NewDecoder(reply.Body).Decode(&part)
		_ = json.Unmarshal(part["sections"], &sections)
		return len(sections.Sets) == 2 && len(sections.Set) == 16 && len(sections.Left) == 16 && !slices.ContainsFunc(sections.Left, func(ms int64) bool { return ms < 0 })
	})
	if err := c.kill(func(p process) bool { return p.Role == "alloc" && strings.HasPrefix(p.Name, "set-2-") }); err != nil {
		t.Fatal(err)
	}
	page := agree("both to name the Set that died", func(s survey.Status) bool {
		return s.Health == survey.Failed && len(s.Problems) > 0 && s.Problems[0] == "Set set-2: none of 2 AllocSvr answers" && s.Unowned == 8
	})
	if !slices.Equal(page.Of, []string{"router-1", "router-2"}) {
		t.Errorf("the page counts the calls of %v, want both routers", page.Of)
	}
	c.down(t)
}
