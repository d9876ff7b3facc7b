package etcdstore_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/internal/base/clock"
	"github.com/seqsvr/seqsvr/internal/etcd/etcdstore"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/etcdmodel"
	"github.com/seqsvr/seqsvr/tests/kit/sessiontest"
)

// allocs are processes with wall clocks of their own, the oldest first.
type allocs struct {
	*testing.T
	nodes []*node
	walls []time.Time
}

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// allocsAt starts processes, each with a clock that is so far ahead.
func allocsAt(t *testing.T, ahead ...time.Duration) *allocs {
	t.Helper()
	c := &allocs{T: t}
	etcd := initRig(t, 1)
	for i, d := range ahead {
		c.start(etcd, noon.Add(d))
		c.renew(i)
	}
	for i := range ahead {
		c.renew(i)
	}
	return c
}

func (c *allocs) start(etcd *etcdmodel.Etcd, at time.Time) {
	c.Helper()
	n, k := &node{T: c.T, kv: &line{etcd: etcd}, clock: clock.NewManual(time.Hour)}, len(c.walls)
	c.walls = append(c.walls, at)
	var err error
	n.Store, err = etcdstore.Open(c.Context(), etcdstore.Config{KV: n.kv, Prefix: rigPrefix, Clock: n.clock, Wall: func() time.Time { return c.walls[k] }})
	if err != nil {
		c.Fatal(err)
	}
	c.nodes = append(c.nodes, n)
}

func (c *allocs) session(i int) seq.Session { return sessiontest.Session(uint64(i + 1)) }

func (c *allocs) renew(i int) quorum.RenewReply {
	c.Helper()
	return c.nodes[i].renew(c.session(i), 0)
}

// mark has a process raise a worker id of its own to a window beyond its clock.
func (c *allocs) mark(i int) quorum.Result {
	c.Helper()
	n, reg := c.nodes[i], seq.WorkerRegister("ids", 0, uint64(i))
	round := uint64(c.walls[i].UnixMilli()) // higher each time
	_, err := n.Prepare(n.Context(), quorum.PrepareRequest{Ref: n.ref(), Session: c.session(i), Secret: sessiontest.SecretOf(c.session(i)),
		Items: []quorum.PrepareItem{{Register: reg, Round: round, Create: true}}})
	if err != nil {
		c.Fatal(err)
	}
	return n.step(c.session(i), round, reg, uint64(c.walls[i].Add(3*time.Second).UnixMilli()))
}

const year = 365 * 24 * time.Hour

func TestAMarkOfAWorkerIDIsHeldAgainstTheClocksOfTheOthers(t *testing.T) {
	ok, refused := quorum.VerdictOK, quorum.VerdictRefused
	for _, row := range []struct {
		name  string
		ahead []time.Duration // at the start
		jump  time.Duration   // of the first one, later
		want  []quorum.Verdict
	}{
		{"right clocks", []time.Duration{0, time.Minute, -time.Minute}, 0, []quorum.Verdict{ok, ok, ok}},
		{"within the bound", []time.Duration{0, 0, 59 * time.Minute}, 0, []quorum.Verdict{ok, ok, ok}},
		{"one of three started wrong", []time.Duration{year, 0, 0}, 0, []quorum.Verdict{refused, ok, ok}},
		{"one of three behind", []time.Duration{-year, 0, 0}, 0, []quorum.Verdict{ok, ok, ok}},
		{"one of three jumped", []time.Duration{0, 0, 0}, year, []quorum.Verdict{refused, ok, ok}},
		{"the younger of two started wrong", []time.Duration{0, year}, 0, []quorum.Verdict{ok, refused}},
		{"the older of two jumped", []time.Duration{0, 0}, year, []quorum.Verdict{refused, ok}},
		{"the younger of two is behind", []time.Duration{0, -year}, 0, []quorum.Verdict{ok, ok}},
		{"one alone", []time.Duration{0}, 0, []quorum.Verdict{ok}},
		{"one alone jumped", []time.Duration{0}, year, []quorum.Verdict{refused}},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := allocsAt(t, row.ahead...)
			c.walls[0] = c.walls[0].Add(row.jump)
			for range 2 {
				for i := range c.nodes {
					c.renew(i)
				}
			}
			for i, want := range row.want {
				if got := c.mark(i); got.Verdict != want || want == refused && !strings.Contains(got.Message, "high-water mark") {
					t.Errorf("process %d: got %s %q, want %s", i, got.Verdict, got.Message, want)
				}
			}
		})
	}
}

func TestAnAllocSvrIsToldHowFarItsClockIsFromTheOthers(t *testing.T) {
	for _, row := range []struct{ ahead, want []time.Duration }{
		{[]time.Duration{0, 0, 2 * time.Hour}, []time.Duration{0, 0, 2 * time.Hour}},
		{[]time.Duration{-time.Hour, 0, time.Minute}, []time.Duration{-time.Hour, 0, time.Minute}},
		{[]time.Duration{0, year}, []time.Duration{0, 0}}, // of two nobody knows
	} {
		t.Run(fmt.Sprint(row.ahead), func(t *testing.T) {
			c := allocsAt(t, row.ahead...)
			for i, want := range row.want {
				if got := c.walls[i].Sub(time.UnixMilli(c.renew(i).Time)); got != want {
					t.Errorf("process %d: got %v, want %v", i, got, want)
				}
			}
		})
	}
	if got := allocsAt(t, 0).renew(0).Time; got != 0 {
		t.Errorf("one alone: got %d", got)
	}
}
