package integration

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr"
	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/router"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

// part is one take of a drawn request. Each front has keys of its own.
type part struct {
	space string
	key   int
	named bool // a string key
	count uint32
	id    string // of the request, or empty
}

// kind is what parts of one batch have in common.
func (p part) kind() string { return fmt.Sprint(p.space, p.named, p.id != "") }

// outcome is what a front answers to a part.
type outcome struct {
	first, last uint64
	code        string // empty if there is no error
}

// skipped is the outcome of a part that a front has no words for.
var skipped = outcome{code: "skipped"}

// uid and name are the keys of a part at a front.
func (p part) uid(front int) uint64  { return uint64(front)<<32 | uint64(p.key)*3 }
func (p part) name(front int) string { return fmt.Sprintf("key %d of front %d", p.key, front) }

// runs are the parts that stand side by side and fit into one batch.
func runs(parts []part) (out [][]part) {
	for from := 0; from < len(parts); {
		to := from + 1
		for to < len(parts) && parts[to].kind() == parts[from].kind() {
			to++
		}
		out = append(out, parts[from:to])
		from = to
	}
	return out
}

// spent is the key that stands a few numbers before the end.
const spent, spentAt = 5, uint64(seq.MaxSeq) - 3000

// drawnRequest is up to 10 takes of few keys, under each text of their spaces. Some are to be refused.
func drawnRequest(draw *rand.Rand) (parts []part) {
	space := func() string {
		return []string{"", "", "", "user", "user", "user", "user", "strict", "strict", "unique", "unique", "orders", "orders", "orders", "orders", "none"}[draw.IntN(16)]
	}
	p := part{space: space()}
	for range 1 + draw.IntN(10) {
		if draw.IntN(3) == 0 {
			p = part{space: space(), named: draw.IntN(3) == 0}
		}
		p.key, p.count, p.id = draw.IntN(spent+1), 1+draw.Uint32N(3)*draw.Uint32N(2000), ""
		if p.space == "orders" && draw.IntN(3) > 0 || draw.IntN(40) == 0 {
			p.id = fmt.Sprint("id ", draw.IntN(12))
		}
		parts = append(parts, p)
	}
	return parts
}

// counters is what each key stands at, and what request ids have got: what all fronts must answer.
type counters struct {
	last map[string]uint64
	had  map[string]outcome
}

func (c counters) take(p part) outcome {
	space := p.space
	if space == "" {
		space = seq.DefaultSpace
	}
	key := fmt.Sprint(space, p.named, p.key)
	cur, known := c.last[key]
	if !known && p.key == spent && !p.named {
		cur = spentAt
	}
	id := key + p.id
	had, again := c.had[id]
	switch {
	case space == "none":
		return outcome{code: "UNKNOWN_SPACE"}
	case p.id != "" && space != "orders":
		return outcome{code: "ID_NOT_KEPT"}
	case again && p.id != "" && had.last-had.first+1 != uint64(p.count):
		return outcome{code: "ID_CONFLICT"}
	case again && p.id != "":
		return had
	case uint64(p.count) > uint64(seq.MaxSeq)-cur:
		return outcome{code: "OVERFLOW"}
	}
	c.last[key] = cur + uint64(p.count)
	c.had[id] = outcome{first: cur + 1, last: cur + uint64(p.count)}
	return c.had[id]
}

// oneAlloc is a cluster that no load makes ask twice: another attempt would take further numbers.
func oneAlloc(t *testing.T) (c *cluster, sdk *client.Client) {
	quiet := slog.New(slog.DiscardHandler)
	space := func(name string, mode seq.Mode) seq.Space {
		return seq.Space{Name: name, Sections: 8, Step: 500, Mode: mode}
	}
	c = &cluster{t: t, all: 32}
	cfg := allocsvr.DefaultConfig()
	cfg.Name, cfg.Listen, cfg.Lease, cfg.ExpectAllocs, cfg.Logger = "alloc-1", "127.0.0.1:0", 10*time.Second, 1, quiet
	cfg.Stores = harness.Stores(t, 1, space("", seq.Ordered), space("strict", seq.Strict), space("unique", seq.UniqueOnly), space("orders", seq.Exact))
	c.run(&alloc{}, cfg)
	var err error
	c.router, err = router.New(router.Config{Listen: "127.0.0.1:0", HTTPListen: "127.0.0.1:0", RESPListen: "127.0.0.1:0", Allocs: c.addrs(), AttemptTimeout: patience, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.router.Close() })
	harness.Inside(t, "router", c.router.Run)
	c.until("every section is served", func() bool { return c.served(0) == c.all })
	sdk, err = client.New(t.Context(), client.Config{Addrs: c.addrs(), AttemptTimeout: patience, Timeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sdk.Close() })
	return c, sdk
}

// One table of drawn requests is held against all fronts: equal numbers, equal codes, and for each key
// those that a counter in memory gives, by the order of the request.
func TestAllFrontsAnswerOneTableOfDrawnRequestsAlike(t *testing.T) {
	c, sdk := oneAlloc(t)
	all := fronts(t, c, sdk)
	for i := range all {
		for _, space := range []string{"", "strict", "unique", "orders"} {
			key := client.Key{Space: space, UID: seq.UID(part{key: spent}.uid(i))}
			if _, err := sdk.Raise(t.Context(), key, seq.Seq(spentAt), client.Forced); err != nil {
				t.Fatal(err)
			}
		}
	}
	model, draw := counters{map[string]uint64{}, map[string]outcome{}}, rand.New(rand.NewPCG(27, 10))
	for n := range 80 {
		parts := drawnRequest(draw)
		var want []outcome
		for _, p := range parts {
			want = append(want, model.take(p))
		}
		for i, f := range all {
			got := f.take(i, parts)
			for k := range got {
				if got[k] == skipped {
					got[k] = want[k]
				}
			}
			if !slices.Equal(got, want) {
				t.Fatalf("request %d, %s: got\n%v, want\n%v, of\n%+v", n, f.name, got, want, parts)
			}
		}
	}
}
