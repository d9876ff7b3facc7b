package globalid

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/globalid/audit"
	"github.com/seqsvr/seqsvr/allocsvr/globalid/workers"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

func TestNodesWithTheLongestWindowLiveBesideOthersAndOutlastTheQuorum(t *testing.T) {
	c := newCluster(t)
	long := func(cfg *Config) { cfg.Window = workers.MaxWindow }
	nodes := []*node{c.start("a", long), c.start("b", long), c.start("c")}
	c.add(nodes[0], "s", "time:41,worker:4,sequence:12;epoch=1700000000000;overflow=borrow;rollback=borrow")
	book := newLedger(t)
	take := func(n *node) error {
		ids, got, err := n.genWithin(time.Second, "s", 1000)
		book.add("s", got.Namespace+n.name, ids)
		return err
	}
	for _, n := range nodes {
		if err := take(n); err != nil {
			t.Fatalf("%s: %v", n.name, err)
		}
	}
	c.fail(failsNotApplied, 0, 1, 2)
	for range 9 { // no mark can be moved
		c.wall.Add(time.Minute.Milliseconds())
		for _, n := range nodes[:2] {
			if err := take(n); err != nil {
				t.Errorf("%s without the stores: %v", n.name, err)
			}
		}
	}
	if err := take(nodes[2]); !errors.Is(err, seq.ErrNoQuorum) {
		t.Errorf("a short window: got %v, want %v", err, seq.ErrNoQuorum)
	}
	c.wall.Add(2 * time.Minute.Milliseconds())
	if err := take(nodes[0]); !errors.Is(err, seq.ErrNoQuorum) {
		t.Errorf("the window is over: got %v, want %v", err, seq.ErrNoQuorum)
	}
}

func TestAWorkerIDFromOutsideThatIsHeldIsToldWithItsHolder(t *testing.T) {
	c := newCluster(t)
	fixed := func(w snowflake.Worker) func(*Config) { return func(cfg *Config) { cfg.Node.Worker = &w } }
	a, b := c.start("alloc-a", fixed(3)), c.start("alloc-b", fixed(3))
	c.start("other", fixed(4)).must("", 1) // left to chance it takes 3 in one run of 32
	a.must("", 1)
	_, _, err := b.gen("", 1)
	if !errors.Is(err, seq.ErrWorkersExhausted) || !strings.Contains(err.Error(), "worker id 3 is the only one to be used here") ||
		!strings.Contains(err.Error(), ": 3 by alloc-a") || strings.Contains(err.Error(), "by other") {
		t.Errorf("got %v", err)
	}
}

func TestWhatIsIssuedLentAndGivenBackIsWrittenDown(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ids.jsonl")
	log, err := audit.Open(audit.Config{Path: path}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	c := newCluster(t)
	n := c.start("a", func(cfg *Config) { cfg.Audit = log })
	srv := server{s: n.svc.Load()}
	got, err := srv.Generate(long(t), &pb.SnowflakeGenerateRequest{Count: 10, Agent: "mailer", AsRuns: true})
	if err != nil {
		t.Fatal(err)
	}
	k := &client{c: c, name: "web@host", book: newLedger(t)}
	k.must(n, "")
	k.drain(5)
	if err := k.giveBack(n); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	log.Run(ended)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	if len(lines) != 3 {
		t.Fatalf("got %s", text)
	}
	for i, want := range []string{`"kind":"issued","agent":"mailer","namespace":"default"`, `"kind":"lent","agent":"web@host","namespace":"default"`, `"kind":"returned","namespace":"default"`} {
		if !bytes.Contains(lines[i], []byte(want)) {
			t.Errorf("line %d: got %s, want %s", i, lines[i], want)
		}
	}
	if first := snowflake.ID(got.Runs[0].First); !bytes.Contains(lines[0], []byte(`"first":"`+text10(first)+`"`)) {
		t.Errorf("got %s, want it to begin at %d", lines[0], first)
	}
}

func text10(id snowflake.ID) string {
	text, _ := snowflake.Decimal.Format(id) // an ID that was issued
	return text
}
