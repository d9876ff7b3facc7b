package quorum

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/bubble"
)

// version is a store's state of a document, accepted under that round.
func version(round uint64, v byte) Result {
	return Result{Promised: epoch(round, other), Accepted: epoch(round, other), Max: uint64(v), Payload: documentOf(v, "x")}
}

// after has a store answer so much later.
func after(d time.Duration) fault {
	return fault{sleep: func(context.Context) { time.Sleep(d) }}
}

// The rows are three stores and when they answer. R and W are 2 unless the row says more.
func TestAReadWaitsForWhatItNeedsAndNoLonger(t *testing.T) {
	const soon, late = settleTime / 5, time.Hour
	three, four := version(3, 3), version(4, 4)
	for _, row := range []struct {
		name         string
		has          [3]Result
		at           [3]time.Duration
		r            int
		took         time.Duration
		version      uint64
		prepareCalls int
	}{
		{"the first two agree", [3]Result{three, three, four}, [3]time.Duration{0, soon, late}, 2, soon, 3, 0},
		{"the third decides", [3]Result{three, four, four}, [3]time.Duration{0, soon, 2 * soon}, 2, 2 * soon, 4, 0},
		{"the newest comes between", [3]Result{three, four, three}, [3]time.Duration{0, soon, 2 * soon}, 2, 3 * soon, 4, 1},
		{"the oldest comes last", [3]Result{four, three, three}, [3]time.Duration{0, soon, 2 * soon}, 2, 3 * soon, 4, 1},
		{"the third does not come", [3]Result{three, four, three}, [3]time.Duration{0, 0, late}, 2, settleTime, 4, 1},
		{"the second is slow", [3]Result{three, three, three}, [3]time.Duration{0, 2 * settleTime, late}, 2, 2 * settleTime, 3, 0},
		{"a read needs all", [3]Result{three, three, three}, [3]time.Duration{0, 0, soon}, 3, soon, 3, 0},
	} {
		bubble.Test(t, func(t *testing.T) {
			fakes, stores := fakeStores(3, true, routes)
			g, err := NewGroup(Config{N: 3, R: row.r, W: 2}, stores)
			if err != nil {
				t.Fatal(err)
			}
			for i, f := range fakes {
				f.set(routes, row.has[i])
				f.script(func(method string) fault {
					if d := row.at[i]; method == "read" && d > 0 && d < late {
						return after(d)
					} else if d == late {
						return fault{sleep: func(ctx context.Context) { <-ctx.Done() }, before: errDropped}
					} else if method != "read" && row.took == 3*soon {
						// Both rounds of the repair make up a third step, without the third store.
						return after(soon / 2 * time.Duration(1+i/2))
					}
					return fault{}
				})
			}
			start := time.Now()
			doc, err := g.LoadDocument(t.Context(), me, routes)
			took := time.Since(start)
			g.Close()
			if err != nil || doc.Version != row.version || fakes[0].count("prepare") != row.prepareCalls || fakes[0].count("read") != 1 {
				t.Errorf("%s: got version %d, %v after %d reads and %d prepares, want version %d, %d prepares", row.name,
					doc.Version, err, fakes[0].count("read"), fakes[0].count("prepare"), row.version, row.prepareCalls)
			}
			if took != row.took {
				t.Errorf("%s: took %v, want %v", row.name, took, row.took)
			}
		})
	}
}

func TestAStoreThatGivesNoVerdictDoesNotKnowTheDocument(t *testing.T) {
	g, fakes := cluster(t, 3, true, routes)
	for _, f := range fakes[1:] {
		f.always(fault{edit: func(r *Result) { r.Verdict = VerdictNone }})
	}
	if doc, err := g.LoadDocument(t.Context(), me, routes); !errors.Is(err, seq.ErrNoQuorum) || !errors.Is(err, ErrBadReply) {
		t.Errorf("got %v, %v, want no quorum and why", doc, err)
	}
	g.sent.Wait()
	if got := fakes[0].count("read"); got != quietRounds {
		t.Errorf("%d rounds, want %d", got, quietRounds)
	}
}

func TestADocumentIsUnknownOnlyIfSoManyLackItThatAReadCannotHaveIt(t *testing.T) {
	g, fakes := cluster(t, 3, true)
	fakes[0].always(fault{before: errDropped})
	fakes[1].set(routes, Result{})
	if _, err := g.LoadDocument(t.Context(), me, routes); !errors.Is(err, seq.ErrNoQuorum) || errors.Is(err, seq.ErrUnknownRegister) {
		t.Errorf("one lacks it and one is silent: got %v, want no quorum", err)
	}
	fakes[0].script(nil)
	if _, err := g.LoadDocument(t.Context(), me, routes); !errors.Is(err, seq.ErrUnknownRegister) {
		t.Errorf("two lack it: got %v", err)
	}
	g.sent.Wait()
	if n := fakes[0].count("prepare") + fakes[1].count("prepare"); n != 0 {
		t.Errorf("%d prepares of a register that there is not", n)
	}
}

// No call writes over a payload that cannot be read.
func TestAPayloadThatIsNoDocumentStays(t *testing.T) {
	short := Result{Promised: epoch(9, other), Accepted: epoch(9, other), Payload: []byte("short")}
	for name, do := range map[string]func(g *Group) error{
		"load": func(g *Group) error { _, err := g.LoadDocument(t.Context(), me, routes); return err },
		"swap": func(g *Group) error {
			_, err := g.SwapDocument(t.Context(), me, routes, 0, []byte("x"))
			return err
		},
		"repair": func(g *Group) error { return g.RepairDocument(t.Context(), me, routes) },
	} {
		for _, at := range []int{3, 1} {
			g, fakes := cluster(t, 3, true, routes)
			for _, f := range fakes[:at] {
				f.set(routes, short)
			}
			if at == 1 {
				fakes[2].always(fault{before: errDropped})
			}
			if err := do(g); !errors.Is(err, ErrBadDocument) {
				t.Errorf("%s at %d stores: got %v", name, at, err)
			}
			g.sent.Wait()
			if n := fakes[0].count("step"); n != 0 {
				t.Errorf("%s at %d stores: %d steps over it", name, at, n)
			}
			if n := fakes[0].count("prepare"); at == 3 && name != "repair" && n != 0 {
				t.Errorf("%s: %d prepares although the stores agree", name, n)
			}
		}
	}
	empty := Document{Version: 2}
	if got, err := parseDocument(empty.payload()); err != nil || got.Version != 2 || len(got.Body) != 0 {
		t.Errorf("a document without a body: got %v, %v", got, err)
	}
}

func TestARefusalEndsAnOperationAndIsNoRace(t *testing.T) {
	g, fakes := cluster(t, 3, true, routes)
	for _, f := range fakes {
		f.set(routes, version(3, 3))
		f.script(func(method string) fault {
			if method == "prepare" {
				return fault{verdict: VerdictRefused}
			}
			return fault{}
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := g.RepairDocument(ctx, me, routes); !errors.Is(err, ErrRefused) {
		t.Errorf("repair: got %v", err)
	}
	g.sent.Wait()
	if p, s := fakes[0].count("prepare"), fakes[0].count("step"); p != 1 || s != 0 {
		t.Errorf("%d prepares, %d steps, want 1 and none", p, s)
	}
}

func TestAnEndedContextAsksNobody(t *testing.T) {
	g, fakes := cluster(t, 3, true, routes)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if doc, err := g.LoadDocument(ctx, me, routes); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, %v", doc, err)
	}
	g.sent.Wait()
	if n := fakes[0].count("read"); n != 0 {
		t.Errorf("%d reads", n)
	}
}

func TestOnlyRoundsInARowThatFindNoQuorumEndAnOperation(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		g, _ := cluster(t, 3, true, routes)
		o := &docOp{g: g, session: me, register: routes}
		left := []error{seq.ErrNoQuorum, seq.ErrNoQuorum, errAgain, seq.ErrNoQuorum, seq.ErrNoQuorum, errAgain}
		last := time.Now()
		doc, err := o.loop(t.Context(), func(context.Context) (Document, error) {
			tries := 6 - len(left)
			if waited := time.Since(last); tries > 0 && waited > minBackoff<<(tries-1) {
				t.Errorf("waited %v before try %d", waited, tries+1)
			}
			if last = time.Now(); len(left) == 0 {
				return Document{Version: 7}, nil
			}
			err := left[0]
			left = left[1:]
			return Document{}, err
		})
		if err != nil || doc.Version != 7 {
			t.Errorf("got %v, %v", doc, err)
		}
		tries := 0
		last = time.Now()
		_, _ = o.loop(t.Context(), func(context.Context) (Document, error) {
			if waited := time.Since(last); waited > maxBackoff {
				t.Errorf("waited %v before try %d", waited, tries+1)
			}
			last = time.Now()
			if tries++; tries < 40 {
				return Document{}, errAgain
			}
			return Document{}, nil
		})
	})
}

func TestASessionOutbidsAtOnceWhatItHasSeen(t *testing.T) {
	g, fakes := cluster(t, 3, true, routes)
	for _, f := range fakes {
		f.set(routes, version(50, 3))
	}
	o := &docOp{g: g, session: me, register: routes}
	if _, _, err := o.prepare(t.Context()); !errors.Is(err, errAgain) || o.promised != epoch(50, other) {
		t.Errorf("prepare under a low round: %v, seen %v", err, o.promised)
	}
	o = &docOp{g: g, session: me, register: routes}
	if _, err := o.step(t.Context(), epoch(2, me), Document{Version: 9}, false); !errors.Is(err, errAgain) || o.promised != epoch(50, other) {
		t.Errorf("step under a low round: %v, seen %v", err, o.promised)
	}
	if o.saw(epoch(9, me)); o.promised != epoch(50, other) {
		t.Errorf("seen %v after a lower one", o.promised)
	}
	g.sent.Wait()
	before := fakes[0].count("prepare")
	if err := g.RepairDocument(t.Context(), other, routes); err != nil {
		t.Fatal(err)
	}
	g.sent.Wait()
	if n := fakes[0].count("prepare") - before; n != 1 {
		t.Errorf("%d prepares above a round that the read shows, want 1", n)
	}
}

func TestASwapThatLostToAnOlderVersionIsAConflict(t *testing.T) {
	o := &docOp{want: Document{Version: 5, Body: []byte("mine")}, mine: []seq.Epoch{epoch(8, me)}}
	if doc, err := o.conclude(Document{Version: 3}, epoch(9, other)); !errors.Is(err, seq.ErrConflict) || doc.Version != 3 {
		t.Errorf("got %v, %v", doc, err)
	}
}

func TestARoundHasOneAnswerOfEachStore(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		g, fakes := cluster(t, 3, true, section)
		fakes[1].always(fault{sleep: func(ctx context.Context) { <-ctx.Done() }, before: errDropped})
		fakes[2].always(fault{sleep: func(ctx context.Context) { <-ctx.Done() }, before: errDropped})
		ask := func(most int) (from []int) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			v := g.now.Load()
			g.round(ctx, v, 1, false, func(ctx context.Context, s Store) (string, []Result, error) {
				reply, err := s.Read(ctx, ReadRequest{Registers: []seq.Register{section}})
				return reply.UUID, reply.Results, err
			}, func(a answer) bool {
				from = append(from, a.store)
				return len(from) == most
			})
			return from
		}
		if got := fmt.Sprint(ask(9)); got != "[0 1 2]" {
			t.Errorf("answers of %s, want of 0, 1 and 2", got)
		}
		if got := fmt.Sprint(ask(2)); got != "[0 1]" {
			t.Errorf("answers of %s after enough, want of 0 and 1", got)
		}
		start := time.Now()
		g.Close() // the dead stores hear of it
		if took := time.Since(start); took != 0 {
			t.Errorf("closing took %v", took)
		}
	})
}

func TestAnAnswerThatIsThereIsNeverPassedOver(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 {
		answers := make(chan answer, 1)
		answers <- answer{store: 2}
		if a, come, err := (&asked{late: ended, answers: answers}).receive(ended, nil); err != nil || !come || a.store != 2 {
			t.Fatalf("got %+v, %v, %v", a, come, err)
		}
	}
}

// A look is the work of W stores, unless one of them says no, fails, or is later than usual; then it is the work of
// all, and the one that failed or was late is asked last from then on.
func TestALookAsksTheOthersOnlyIfItMust(t *testing.T) {
	for _, row := range []struct {
		name  string
		fault fault // of the first store
		took  time.Duration
		asked [3]int // by the first look
		next  [3]int // by the second
	}{
		{"the first two answer", after(hedge / 2), hedge / 2, [3]int{1, 1, 0}, [3]int{1, 1, 0}},
		{"one fails", fault{before: errDropped}, 0, [3]int{1, 1, 1}, [3]int{0, 1, 1}},
		{"one says no", fault{verdict: VerdictHeld}, 0, [3]int{1, 1, 1}, [3]int{1, 1, 1}},
		{"one is slow", after(10 * hedge), hedge, [3]int{1, 1, 1}, [3]int{0, 1, 1}},
		{"one is silent", fault{sleep: func(ctx context.Context) { <-ctx.Done() }, before: errDropped}, hedge, [3]int{1, 1, 1}, [3]int{0, 1, 1}},
	} {
		bubble.Test(t, func(t *testing.T) {
			g, fakes := cluster(t, 3, true, section)
			defer g.Close()
			fakes[0].always(row.fault)
			var before [3]int
			look := func(n string, want [3]int) {
				start := time.Now()
				if out := g.Probe(t.Context(), me, []seq.Register{section})[0]; out.State != Won {
					t.Errorf("%s, %s look: %+v", row.name, n, out)
				}
				if took := time.Since(start); n == "first" && took != row.took {
					t.Errorf("%s: took %v, want %v", row.name, took, row.took)
				}
				var got [3]int
				for i, f := range fakes {
					got[i] = f.count("read") - before[i]
					before[i] += got[i]
				}
				if got != want {
					t.Errorf("%s: the %s look asked %v, want %v", row.name, n, got, want)
				}
			}
			look("first", row.asked)
			look("second", row.next)
		})
	}
}

// Where all stores are far, their usual time is what a look waits before it asks the others.
func TestALookKnowsHowLongItsStoresTake(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		g, fakes := cluster(t, 3, true, section)
		defer g.Close()
		for _, f := range fakes {
			f.always(after(20 * hedge))
		}
		for range 10 {
			g.Probe(t.Context(), me, []seq.Register{section})
		}
		if sum := fakes[0].count("read") + fakes[1].count("read") + fakes[2].count("read"); sum != 21 {
			t.Errorf("ten looks asked %d times, want 21: all the first time, two of three after it", sum)
		}
	})
}

func TestARoundThatIsOverKeepsNothing(t *testing.T) {
	g, fakes := cluster(t, 3, true, section)
	given := make(chan context.Context, 3)
	for _, f := range fakes {
		f.always(fault{sleep: func(ctx context.Context) { given <- ctx }})
	}
	g.Probe(t.Context(), me, []seq.Register{section})
	g.sent.Wait()
	if ctx := <-given; ctx.Err() == nil {
		t.Error("its context goes on after the last answer")
	}
	g.Close()
	err := g.Probe(t.Context(), me, []seq.Register{section})[0].Err
	for i := range 2 { // after which nothing can change any more
		if want := fmt.Errorf("store store%d: %w", i, ErrClosed); err == nil || !contains(err, want.Error()) {
			t.Errorf("got %v, want also %v", err, want)
		}
	}
}

func TestAConflictIsToldOnlyOnceTheOtherVersionIsConfirmed(t *testing.T) {
	g, fakes := cluster(t, 3, true, routes)
	fakes[0].set(routes, version(8, 4))
	fakes[1].always(fault{before: errDropped})
	if doc, err := g.SwapDocument(t.Context(), me, routes, 1, []byte("x")); !errors.Is(err, seq.ErrConflict) || doc.Version != 4 {
		t.Errorf("got %v, %v", doc, err)
	}
	g.sent.Wait()
	if got := fakes[2].get(routes); got.Max != 4 || got.Accepted.Session != me {
		t.Errorf("the other store has %+v, want version 4", got)
	}
}
