package secure

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seqsvr/seqsvr/allocsvr"
	"github.com/seqsvr/seqsvr/internal/process/telemetry"
	"github.com/seqsvr/seqsvr/membership"
	"github.com/seqsvr/seqsvr/router"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

// gossipers is a cluster of one of each kind, each with a keys file of its own.
type gossipers struct {
	t     *testing.T
	files []string
	keys  []*membership.Keys
	all   []prometheus.Collector // store, allocator, router
}

func startGossip(t *testing.T, lines ...string) *gossipers {
	t.Helper()
	g := &gossipers{t: t}
	for range 3 {
		g.files = append(g.files, filepath.Join(t.TempDir(), "gossip.keys"))
	}
	g.write(lines...)
	for _, file := range g.files {
		g.keys = append(g.keys, mustKeys(t, file))
	}
	log := slog.New(slog.DiscardHandler)
	sc := harness.StoreConfig(t, "store-1", []string{"store-1"}, seq.Space{Sections: 8, Step: 100})
	sc.GossipListen, sc.GossipKeys, sc.GossipProfile = "127.0.0.1:0", g.keys[0], "lan"
	s, err := storesvr.New(sc)
	if err != nil {
		t.Fatal(err)
	}
	harness.Inside(t, "store", s.Run)
	seeds := []string{s.GossipAddr()}
	ac := allocsvr.DefaultConfig()
	ac.Name, ac.Listen, ac.Stores, ac.Logger = "alloc-1", "127.0.0.1:0", []string{s.Addr()}, log
	ac.GossipListen, ac.GossipJoin, ac.GossipKeys, ac.GossipProfile = "127.0.0.1:0", seeds, g.keys[1], "lan"
	a, err := allocsvr.New(ac)
	if err != nil {
		t.Fatal(err)
	}
	harness.Inside(t, "allocsvr", a.Run)
	r, err := router.New(router.Config{Listen: "127.0.0.1:0", Allocs: []string{a.Addr()}, Logger: log,
		GossipListen: "127.0.0.1:0", GossipJoin: seeds, GossipKeys: g.keys[2], GossipProfile: "lan"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	harness.Inside(t, "router", r.Run)
	serves(t, a, r)
	g.all = []prometheus.Collector{s, a, r}
	return g
}

func mustKeys(t *testing.T, file string) *membership.Keys {
	t.Helper()
	keys, err := membership.LoadKeys(file)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// write puts the lines into every file.
func (g *gossipers) write(lines ...string) {
	g.t.Helper()
	for _, file := range g.files {
		if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
			g.t.Fatal(err)
		}
	}
}

// shows is what a daemon's metrics say of members.
func shows(t *testing.T, c prometheus.Collector) (alive, gone, faults int) {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(telemetry.Func(c.Collect))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			switch f.GetName() {
			case "seq_members_key_faults_total":
				faults += int(m.GetCounter().GetValue())
			case "seq_members":
				for _, l := range m.GetLabel() {
					if l.GetName() == "state" && l.GetValue() == membership.StateAlive.String() {
						alive += int(m.GetGauge().GetValue())
					} else if l.GetName() == "state" {
						gone += int(m.GetGauge().GetValue())
					}
				}
			}
		}
	}
	return alive, gone, faults
}

// await waits until every daemon shows what it should.
func (g *gossipers) await(what string, good func(alive, gone, faults int) bool) {
	g.t.Helper()
	deadline := time.Now().Add(patient)
	for {
		var seen []string
		ok := true
		for _, c := range g.all {
			alive, gone, faults := shows(g.t, c)
			ok = ok && good(alive, gone, faults)
			seen = append(seen, fmt.Sprintf("%d alive, %d gone, %d faults", alive, gone, faults))
		}
		if ok {
			return
		}
		if time.Now().After(deadline) {
			g.t.Fatalf("%s: %q", what, seen)
		}
		<-time.After(20 * time.Millisecond)
	}
}

// together leaves faults aside: a packet that was under way may be read after its key is gone.
func together(alive, gone, _ int) bool { return alive == 3 && gone == 0 }

func TestDaemonsWithTheSameKeysMeetAndStayTogetherThroughARotation(t *testing.T) {
	line := func() string {
		key, err := membership.NewKey(32)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	old, fresh := line(), line()
	g := startGossip(t, old)
	g.await("at the start", together)
	for _, phase := range [][]string{{old, fresh}, {fresh, old}, {fresh}} {
		g.write(phase...)
		for i, file := range g.files { // as each does at SIGHUP
			if !g.keys[i].Replace(mustKeys(t, file)) {
				t.Error("the keys did not change")
			}
		}
		g.await("after a change", together)
	}
}

func TestADaemonWithoutTheKeyOfTheOthersIsCounted(t *testing.T) {
	key, err := membership.NewKey(32)
	if err != nil {
		t.Fatal(err)
	}
	other, err := membership.NewKey(16)
	if err != nil {
		t.Fatal(err)
	}
	g := startGossip(t, key)
	g.await("at the start", together)
	stray := filepath.Join(t.TempDir(), "gossip.keys")
	if err := os.WriteFile(stray, []byte(other+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	g.keys[0].Replace(mustKeys(t, stray))
	g.await("with another key", func(_, _, faults int) bool { return faults > 0 })
}
