package quorum

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/bubble"
)

func TestADocumentIsSwappedFromVersionToVersion(t *testing.T) {
	for _, n := range []int{1, 3, 5} {
		g, fakes := cluster(t, n, true, routes)
		if doc, err := g.LoadDocument(t.Context(), me, routes); err != nil || doc.Version != 0 || doc.Body != nil {
			t.Fatalf("N=%d: fresh document: got %v, %v", n, doc, err)
		}
		for v := range uint64(3) {
			doc, err := g.SwapDocument(t.Context(), me, routes, v, fmt.Append(nil, "body ", v+1))
			if err != nil || doc.Version != v+1 {
				t.Fatalf("N=%d: swap from %d: got %v, %v", n, v, doc, err)
			}
		}
		doc, err := g.SwapDocument(t.Context(), other, routes, 1, []byte("late"))
		if !errors.Is(err, seq.ErrConflict) || doc.Version != 3 || string(doc.Body) != "body 3" {
			t.Errorf("N=%d: swap of an old version: got %v, %v, want a conflict with version 3", n, doc, err)
		}
		doc, err = g.LoadDocument(t.Context(), other, routes)
		if err != nil || doc.Version != 3 || string(doc.Body) != "body 3" {
			t.Errorf("N=%d: load: got %v, %v", n, doc, err)
		}
		if got := fakes[0].get(routes).Max; got != 3 {
			t.Errorf("N=%d: max %d, want the version 3", n, got)
		}
	}
}

func TestALoadOfAConfirmedDocumentWritesNothing(t *testing.T) {
	bubble.Test(t, func(t *testing.T) { // time stands, so that no store is slow
		g, fakes := cluster(t, 3, true, routes)
		if _, err := g.SwapDocument(t.Context(), me, routes, 0, []byte("x")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		fakes[1].set(routes, Result{}) // one store has missed it
		before := fakes[0].count("prepare")
		if doc, err := g.LoadDocument(t.Context(), other, routes); err != nil || doc.Version != 1 {
			t.Fatalf("got %v, %v", doc, err)
		}
		if got := fakes[0].count("prepare"); got != before {
			t.Errorf("%d prepares, want none", got-before)
		}
	})
}

func TestAValueThatOneStoreHasIsFinishedBeforeItIsReturned(t *testing.T) {
	g, fakes := cluster(t, 3, true, routes)
	newest := Document{Version: 4, Body: []byte("newest")}
	fakes[0].set(routes, Result{Promised: epoch(8, other), Accepted: epoch(8, other), Max: 4, Payload: newest.payload()})
	fakes[1].always(fault{before: errDropped})
	if doc, err := g.LoadDocument(t.Context(), me, routes); err != nil || doc.Version != 4 || string(doc.Body) != "newest" {
		t.Fatalf("got %v, %v", doc, err)
	}
	fakes[1].script(nil)
	fakes[0].always(fault{before: errDropped}) // gone; the value must be at the other two by then or be found at one
	if doc, err := g.LoadDocument(t.Context(), other, routes); err != nil || doc.Version != 4 {
		t.Errorf("after the loss of its store: got %v, %v, want version 4", doc, err)
	}
}

// Where R is below W, R stores that agree do not make a value W stores'.
func TestAValueThatFewerThanWStoresHaveIsFinishedBeforeItIsReturned(t *testing.T) {
	fakes, stores := fakeStores(4, true, routes)
	g, err := NewGroup(Config{N: 4, R: 2, W: 3}, stores)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	newest := Document{Version: 4, Body: []byte("newest")}
	for _, f := range fakes[:2] {
		f.set(routes, Result{Promised: epoch(8, other), Accepted: epoch(8, other), Max: 4, Payload: newest.payload()})
	}
	fakes[3].always(fault{before: errDropped})
	if doc, err := g.LoadDocument(t.Context(), me, routes); err != nil || doc.Version != 4 || string(doc.Body) != "newest" {
		t.Fatalf("got %v, %v", doc, err)
	}
	if got := fakes[2].get(routes); got.Max != 4 {
		t.Errorf("version 4 was returned while two of four stores had it: the third has %d", got.Max)
	}
}

// The rows are what happens to the first STEP of a swap from version 0 at stores
// 1 and 2; store 0 takes it in.
func TestAnUnknownOutcomeIsResolvedByReadingAgain(t *testing.T) {
	for name, x := range map[string]fault{
		"failed, not applied": {before: errDropped},
		"failed, but applied": {after: errDropped},
	} {
		t.Run(name, func(t *testing.T) {
			g, fakes := cluster(t, 3, true, routes)
			for _, f := range fakes[1:] {
				f.script(onceOn("step", x))
			}
			doc, err := g.SwapDocument(t.Context(), me, routes, 0, []byte("mine"))
			if err != nil || doc.Version != 1 || string(doc.Body) != "mine" {
				t.Fatalf("got %v, %v", doc, err)
			}
			if doc, err := g.LoadDocument(t.Context(), other, routes); err != nil || doc.Version != 1 {
				t.Errorf("load: got %v, %v, want version 1", doc, err)
			}
		})
	}
}

func onceOn(method string, x fault) func(string) fault {
	done := false
	return func(m string) fault {
		if m != method || done {
			return fault{}
		}
		done = true
		return x
	}
}

func TestASwapThatSomebodyElseMayHaveFinishedIsUnknown(t *testing.T) {
	for _, c := range []struct {
		name    string
		theirs  Document
		want    error
		version uint64
	}{
		{"the same body", Document{1, []byte("mine")}, ErrUnknownOutcome, 1},
		{"another body", Document{1, []byte("theirs")}, seq.ErrConflict, 1},
		{"built upon", Document{2, []byte("next")}, ErrUnknownOutcome, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, fakes := cluster(t, 3, true, routes)
			state := Result{Promised: epoch(50, other), Accepted: epoch(50, other), Max: c.theirs.Version, Payload: c.theirs.payload()}
			for _, f := range fakes {
				f.script(func(method string) fault {
					if method != "step" {
						return fault{}
					}
					// The step is lost, and another process has written by then.
					return fault{before: errDropped, sleep: func(context.Context) { f.set(routes, state) }}
				})
			}
			doc, err := g.SwapDocument(t.Context(), me, routes, 0, []byte("mine"))
			if !errors.Is(err, c.want) || doc.Version != c.version {
				t.Errorf("got %v, %v, want %v", doc, err, c.want)
			}
			if unknown := strings.Count(err.Error(), ErrUnknownOutcome.Error()); unknown > 1 || (unknown == 1) != (c.want == ErrUnknownOutcome) {
				t.Errorf("got %q, which must say once that the outcome is unknown, or not at all", err)
			}
		})
	}
}

func TestASwapWithoutAQuorumSaysWhetherItMayHaveHappened(t *testing.T) {
	g, fakes := cluster(t, 3, true, routes)
	for _, f := range fakes[1:] {
		f.always(fault{before: errDropped})
	}
	_, err := g.SwapDocument(t.Context(), me, routes, 0, []byte("x"))
	if !errors.Is(err, seq.ErrNoQuorum) || errors.Is(err, ErrUnknownOutcome) {
		t.Errorf("before any step: got %v, want no quorum", err)
	}
	for _, f := range fakes[1:] {
		f.script(func(method string) fault {
			if method == "step" {
				return fault{before: errDropped, sleep: func(context.Context) { f.always(fault{before: errDropped}) }}
			}
			return fault{}
		})
	}
	_, err = g.SwapDocument(t.Context(), me, routes, 0, []byte("x"))
	if !errors.Is(err, seq.ErrNoQuorum) || !errors.Is(err, ErrUnknownOutcome) {
		t.Errorf("after a step: got %v, want no quorum and unknown", err)
	}
}

func TestTwoChangesOfOneSessionNeverShareAnEpoch(t *testing.T) {
	g, _ := cluster(t, 3, true, routes)
	var wg sync.WaitGroup
	var mu sync.Mutex // guards seen
	seen := map[uint64]bool{}
	for range 8 {
		wg.Go(func() {
			for range 50 {
				round := g.nextRound(me, routes, epoch(7, other))
				mu.Lock()
				if seen[round] || round <= 7 {
					t.Errorf("round %d twice, or not above what was seen", round)
				}
				seen[round] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
}

func TestAPayloadThatIsNoDocumentIsAnError(t *testing.T) {
	g, fakes := cluster(t, 3, true, routes)
	for _, f := range fakes {
		f.set(routes, Result{Promised: epoch(1, me), Accepted: epoch(1, me), Payload: []byte("short")})
	}
	if _, err := g.LoadDocument(t.Context(), me, routes); !errors.Is(err, ErrBadDocument) {
		t.Errorf("got %v", err)
	}
}

func TestAnEndedContextEndsARace(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		g, fakes := cluster(t, 3, true, routes)
		for _, f := range fakes {
			f.script(func(method string) fault {
				if method == "prepare" {
					return fault{verdict: VerdictNack}
				}
				return fault{}
			})
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := g.SwapDocument(ctx, me, routes, 0, nil)
		if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrUnknownOutcome) {
			t.Errorf("got %v", err)
		}
	})
}

// history is what the writers of one run came to know.
type history struct {
	mu      sync.Mutex // guards all below
	won     map[string]uint64
	lost    map[string]bool
	unknown map[string]bool
	floor   uint64 // highest version known to be confirmed
	reads   []string
	faults  []string
}

func (h *history) do(f func()) { h.mu.Lock(); defer h.mu.Unlock(); f() }

func (h *history) saw(d Document, floor uint64) {
	h.do(func() {
		if d.Version < floor {
			h.faults = append(h.faults, fmt.Sprintf("read version %d after %d was confirmed", d.Version, floor))
		}
		if n := strings.Count(string(d.Body), ";"); n != int(d.Version) {
			h.faults = append(h.faults, fmt.Sprintf("version %d has %d changes: %q", d.Version, n, d.Body))
		}
		h.floor = max(h.floor, d.Version)
		h.reads = append(h.reads, string(d.Body))
	})
}

// write appends its own tokens to the document, so that the final body is the list
// of all changes that took effect, in order.
func (h *history) write(g *Group, session seq.Session, changes int) {
	ctx := context.Background()
	for i := range changes {
		var floor uint64
		h.do(func() { floor = h.floor })
		doc, err := g.LoadDocument(ctx, session, routes)
		if err != nil {
			continue
		}
		h.saw(doc, floor)
		token := fmt.Sprintf("%d/%d;", session, i)
		next, err := g.SwapDocument(ctx, session, routes, doc.Version, append([]byte(string(doc.Body)), token...))
		switch {
		case err == nil:
			h.saw(next, doc.Version+1)
			h.do(func() { h.won[token] = next.Version })
		case errors.Is(err, ErrUnknownOutcome):
			h.do(func() { h.unknown[token] = true })
		default:
			h.do(func() { h.lost[token] = true })
		}
	}
}

// check compares what was said with what is: no lost update, nothing twice, nothing
// that was said not to be, and all reads prefixes of the one history.
func (h *history) check(final Document) error {
	body := string(final.Body)
	faults := h.faults
	for token, version := range h.won {
		if n := strings.Count(body, token); n != 1 {
			faults = append(faults, fmt.Sprintf("change %s, confirmed as version %d, is there %d times", token, version, n))
		} else if at := strings.Count(body[:strings.Index(body, token)], ";") + 1; at != int(version) {
			faults = append(faults, fmt.Sprintf("change %s, confirmed as version %d, is number %d", token, version, at))
		}
	}
	for token := range h.lost {
		if strings.Contains(body, token) {
			faults = append(faults, "change "+token+" is there, though it was refused")
		}
	}
	extra := 0
	for token := range h.unknown {
		extra += strings.Count(body, token)
	}
	if got, want := int(final.Version), len(h.won)+extra; got != want {
		faults = append(faults, fmt.Sprintf("version %d, want %d successful swaps", got, want))
	}
	for _, read := range h.reads {
		if !strings.HasPrefix(body, read) {
			faults = append(faults, fmt.Sprintf("%q was read, which is no prefix of %q", read, body))
		}
	}
	if len(faults) > 0 {
		return errors.New(strings.Join(faults, "\n"))
	}
	return nil
}

// flaky loses, delays and repeats late, each by its share in percent.
type flaky struct{ Lose, Forget, Delay int }

func (x flaky) script(rng *rand.Rand) func(string) fault {
	return func(string) fault { // called under the store's mutex
		var f fault
		delay := time.Duration(rng.IntN(3)) * time.Millisecond
		if rng.IntN(100) < x.Delay {
			delay = time.Duration(rng.IntN(3000)) * time.Millisecond // often beyond the timeout, and applied then
		}
		f.sleep = func(context.Context) { time.Sleep(delay) }
		if rng.IntN(100) < x.Lose {
			f.before = errDropped
		}
		if rng.IntN(100) < x.Forget {
			f.after = errDropped
		}
		return f
	}
}

func TestSwapsAreLinearizableOverFaultyStores(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.SampledFrom([]int{1, 3, 3, 4, 5}).Draw(rt, "stores")
		w := rapid.IntRange(n/2+1, max(n/2+1, n-1)).Draw(rt, "W")
		cfg := Config{N: n, R: rapid.IntRange(n-w+1, w).Draw(rt, "R"), W: w}
		writers := rapid.IntRange(1, 4).Draw(rt, "writers")
		faults := make([]flaky, n)
		for i := range faults {
			faults[i] = flaky{
				Lose:   rapid.SampledFrom([]int{0, 10, 30}).Draw(rt, "lose"),
				Forget: rapid.SampledFrom([]int{0, 10, 30}).Draw(rt, "forget"),
				Delay:  rapid.SampledFrom([]int{0, 5, 30}).Draw(rt, "delay"),
			}
		}
		seed := rapid.Uint64().Draw(rt, "seed")
		var err error
		bubble.Test(t, func(t *testing.T) { err = runWriters(t, cfg, faults, writers, seed) })
		if err != nil {
			rt.Fatal(err)
		}
	})
}

func runWriters(t *testing.T, cfg Config, faults []flaky, writers int, seed uint64) error {
	fakes, stores := fakeStores(cfg.N, true, routes)
	for i, f := range fakes {
		f.script(faults[i].script(rand.New(rand.NewPCG(seed, uint64(i)))))
	}
	h := &history{won: map[string]uint64{}, lost: map[string]bool{}, unknown: map[string]bool{}}
	var wg sync.WaitGroup
	group := func() *Group {
		g, err := NewGroup(cfg, stores)
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	for w := range writers {
		wg.Go(func() {
			g := group()
			defer g.sent.Wait()
			h.write(g, seq.Session(w+1), 6)
		})
	}
	wg.Wait()
	for _, f := range fakes {
		f.script(nil)
	}
	g := group()
	defer g.Close()
	final, err := g.LoadDocument(context.Background(), other, routes)
	if err != nil {
		return err
	}
	return h.check(final)
}
