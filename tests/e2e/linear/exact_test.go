package linear

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

// Shape of a run on an exact space.
const (
	exactSpace     = "orders"
	exactUIDs      = 4
	exactCalls     = 60 // of each client, at most
	exactFaults    = 5
	answersBetween = 20
	hurried        = 8 // requests of a client that it gives up soon and forgets: unknown for ever
)

// what a call asks for.
type what int

const (
	take what = iota
	lookup
	current
)

// ask is a call for one UID.
type ask struct {
	uid   seq.UID
	what  what
	id    byte // of the request
	count byte // of a take
}

// told is its answer: the first number of the id, 0 for none, or where the UID stands.
type told struct {
	unknown bool
	number  uint64
}

// exactModel is the log of each UID: an id and a count for each request, in order.
var exactModel = porcupine.NondeterministicModel{
	Init: func() []any { return []any{""} },
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		parts := make([][]porcupine.Operation, exactUIDs)
		for _, op := range history {
			uid := op.Input.(ask).uid
			parts[uid] = append(parts[uid], op)
		}
		return parts
	},
	Step: func(state, in, out any) []any {
		log, call, answer := state.(string), in.(ask), out.(told)
		first, last := uint64(0), uint64(0)
		for at := 0; at < len(log); at += 2 {
			if log[at] == call.id {
				first = last + 1
			}
			last += uint64(log[at+1])
		}
		taken := log + string([]byte{call.id, call.count})
		switch {
		case call.what == current:
			first = last
		case call.what == take && first == 0 && answer.unknown:
			return []any{log, taken}
		case call.what == take && first == 0:
			log, first = taken, last+1
		}
		if !answer.unknown && answer.number != first {
			return nil
		}
		return []any{log}
	},
	Equal: func(a, b any) bool { return a == b },
}

// ledger is a cluster with an exact space, and what its callers saw.
type ledger struct {
	t       *testing.T
	cluster *localcluster.Cluster
	sdk     []*client.Client // one of each client
	began   time.Time

	mu    sync.Mutex // guards all below
	ops   []porcupine.Operation
	given [exactUIDs]byte // ids that were made, from 1 on
}

func (l *ledger) now() int64 { return int64(time.Since(l.began)) }

func (l *ledger) add(client int, in ask, call int64, out told) {
	ret := l.now()
	if out.unknown {
		ret = forever
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ops = append(l.ops, porcupine.Operation{ClientId: client, Input: in, Call: call, Output: out, Return: ret})
}

// draw is a call: of a new id, of one of before, or no take at all.
func (l *ledger) draw(random *rand.Rand) ask {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := ask{uid: seq.UID(random.IntN(exactUIDs)), what: take}
	made := l.given[a.uid]
	switch n := random.IntN(10); {
	case n < 5 || made == 0:
		l.given[a.uid]++
		a.id = l.given[a.uid]
	case n < 9: // mostly one of the latest
		a.id = max(1, made-byte(random.IntN(min(int(made), 6))))
		if n > 6 {
			a.what = lookup
		}
	default:
		a.what = current
	}
	a.count = 1 + a.id%3 // of an id always the same
	return a
}

// call makes a call, again and again until it is answered: as long as its id is repeated it is
// one. A hurried one is given up, and may be done at any time or never.
func (l *ledger) call(client int, a ask, hurry time.Duration) {
	l.t.Helper()
	ctx, cancel := harness.Within(l.t), context.CancelFunc(func() {})
	if hurry > 0 {
		ctx, cancel = context.WithTimeout(ctx, hurry)
	}
	defer cancel()
	began := l.now()
	for {
		n, err := l.try(ctx, l.sdk[client], a)
		switch {
		case err == nil:
			l.add(client, a, began, told{number: n})
			return
		case ctx.Err() == nil:
			<-time.After(between)
			continue
		case a.what == take:
			l.add(client, a, began, told{unknown: true})
		}
		if hurry == 0 {
			l.t.Errorf("%+v: %v", a, err)
		}
		return
	}
}

func (l *ledger) try(ctx context.Context, sdk *client.Client, a ask) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	key, id := client.Key{Space: exactSpace, UID: a.uid}, fmt.Sprint(a.id)
	switch a.what {
	case lookup:
		r, _, err := sdk.Lookup(ctx, key, id)
		return uint64(r.First), err
	case current:
		values, err := sdk.Current(ctx, exactSpace, []seq.UID{a.uid})
		if err != nil {
			return 0, err
		}
		return uint64(values[0].Seq), values[0].Err
	}
	r, err := sdk.TakeIdempotent(ctx, key, uint32(a.count), client.Request{ID: id})
	return uint64(r.First), err
}

// harm kills some processes of a kind, or all of every kind, and starts them again. The next
// fault comes when the cluster has answered again.
func (l *ledger) harm(random *rand.Rand) {
	for n := range exactFaults {
		rest(random, longest)
		victims := l.cluster.Processes([]localcluster.Role{localcluster.RoleAlloc, localcluster.RoleStore}[n%2])
		random.Shuffle(len(victims), func(i, j int) { victims[i], victims[j] = victims[j], victims[i] })
		victims = victims[:1+random.IntN(len(victims))]
		if n == exactFaults-1 {
			victims = l.cluster.Processes()
		}
		for _, p := range victims {
			if err := p.Kill(); err != nil {
				l.t.Errorf("kill: %v", err)
			}
		}
		rest(random, longest)
		for _, p := range victims {
			if err := p.Start(); err != nil {
				l.t.Errorf("start: %v", err)
			}
		}
		for range answersBetween {
			l.call(0, l.draw(random), 0)
		}
	}
}

func TestAnExactSpaceIsALogOfEachUIDOnProcessesThatAreKilled(t *testing.T) {
	l := &ledger{t: t, began: time.Now()}
	l.cluster = harness.Start(t, func(cfg *localcluster.Config) {
		cfg.Sections, cfg.Lease, cfg.Spaces = 4, time.Second, []string{exactSpace + ":mode=exact,sections=4"}
	})
	var addrs []string
	for _, p := range l.cluster.Processes(localcluster.RoleAlloc) {
		addrs = append(addrs, p.Addr)
	}
	for range clients {
		sdk, err := client.New(harness.Within(t), client.Config{Addrs: addrs})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = sdk.Close() })
		l.sdk = append(l.sdk, sdk)
	}
	seed := uint64(time.Now().UnixNano())
	var callers, harmed sync.WaitGroup
	var over atomic.Bool
	harmed.Go(func() { defer over.Store(true); l.harm(rand.New(rand.NewPCG(seed, 1))) })
	for i := range l.sdk {
		random := rand.New(rand.NewPCG(seed, uint64(10+i)))
		callers.Go(func() {
			for n, gave := 0, 0; n < exactCalls && !over.Load(); n++ {
				hurry := time.Duration(0)
				if gave < hurried && random.IntN(4) == 0 {
					gave, hurry = gave+1, time.Duration(1+random.Int64N(int64(between)))
				}
				l.call(i, l.draw(random), hurry)
				rest(random, 3*between)
			}
		})
	}
	callers.Wait()
	harmed.Wait()
	for uid := range seq.UID(exactUIDs) { // what the cluster holds in the end is part of the history
		for id := byte(1); id <= l.given[uid]; id++ {
			l.call(0, ask{uid: uid, what: lookup, id: id}, 0)
		}
		l.call(0, ask{uid: uid, what: current}, 0)
	}
	l.judge()
}

func (l *ledger) judge() {
	l.t.Helper()
	kinds := map[string]int{}
	for _, op := range l.ops {
		kinds[fmt.Sprintf("%d unknown=%t", op.Input.(ask).what, op.Output.(told).unknown)]++
	}
	l.t.Logf("%d calls by kind (0: take, 1: lookup, 2: current) in %v: %v", len(l.ops), time.Since(l.began).Round(time.Second), kinds)
	switch result := porcupine.CheckOperationsTimeout(exactModel.ToModel(), l.ops, patience); result {
	case porcupine.Ok:
	case porcupine.Unknown:
		l.t.Fatalf("no verdict in %v", patience)
	default:
		l.t.Fatalf("no order of the %d calls explains their answers", len(l.ops))
	}
	for name, forge := range exactForgeries {
		forged := slices.Clone(l.ops)
		at := slices.IndexFunc(forged, func(op porcupine.Operation) bool { return l.answered(op) && forge(&op) })
		if at < 0 {
			l.t.Errorf("%s: nothing in the history to forge", name)
			continue
		}
		forge(&forged[at])
		if result := porcupine.CheckOperationsTimeout(exactModel.ToModel(), forged, patience); result != porcupine.Illegal {
			l.t.Errorf("%s was put into the history, and the verdict is %v, want %v", name, result, porcupine.Illegal)
		}
	}
}

// answered says whether a call is about a request whose number a caller knows, or about a UID.
func (l *ledger) answered(op porcupine.Operation) bool {
	in := op.Input.(ask)
	return in.what == current || slices.ContainsFunc(l.ops, func(o porcupine.Operation) bool {
		a := o.Input.(ask)
		return a.what == take && a.uid == in.uid && a.id == in.id && !o.Output.(told).unknown
	})
}

// exactForgeries change an answer to one that cannot be, and say whether they could.
var exactForgeries = map[string]func(op *porcupine.Operation) bool{
	"another number of an id": func(op *porcupine.Operation) bool {
		in, out := op.Input.(ask), op.Output.(told)
		op.Output = told{number: out.number + 1}
		return in.what == take && !out.unknown
	},
	"an id that is forgotten": func(op *porcupine.Operation) bool {
		in, out := op.Input.(ask), op.Output.(told)
		op.Output = told{}
		return in.what == lookup && out.number != 0 && in.count == 0 // of the end
	},
	"a UID that stands below its numbers": func(op *porcupine.Operation) bool {
		in, out := op.Input.(ask), op.Output.(told)
		op.Output = told{}
		return in.what == current && in.count == 0 && out.number != 0 // of the end
	},
}

// TestTheExactModelRefusesWhatCannotBe: histories that no order explains.
func TestTheExactModelRefusesWhatCannotBe(t *testing.T) {
	op := func(what what, id byte, out told, call, ret int64) porcupine.Operation {
		return porcupine.Operation{Input: ask{what: what, id: id, count: 2}, Output: out, Call: call, Return: ret}
	}
	n := func(number uint64) told { return told{number: number} }
	lost := told{unknown: true}
	tests := []struct {
		name string
		ops  []porcupine.Operation
		want bool
	}{
		{"two requests", []porcupine.Operation{op(take, 1, n(1), 0, 1), op(take, 2, n(3), 2, 3), op(current, 0, n(4), 4, 5)}, true},
		{"a hole", []porcupine.Operation{op(take, 1, n(1), 0, 1), op(take, 2, n(4), 2, 3)}, false},
		{"one number of two ids", []porcupine.Operation{op(take, 1, n(1), 0, 9), op(take, 2, n(1), 0, 9)}, false},
		{"a repeated request", []porcupine.Operation{op(take, 1, n(1), 0, 1), op(take, 2, n(3), 2, 3), op(take, 1, n(1), 4, 5)}, true},
		{"two numbers of one id", []porcupine.Operation{op(take, 1, n(1), 0, 1), op(take, 1, n(3), 2, 3)}, false},
		{"an id that is found", []porcupine.Operation{op(take, 1, n(1), 0, 1), op(lookup, 1, n(1), 2, 3)}, true},
		{"an id that is not found", []porcupine.Operation{op(take, 1, n(1), 0, 1), op(lookup, 1, n(0), 2, 3)}, false},
		{"an id that is found later only", []porcupine.Operation{op(take, 1, lost, 0, forever), op(lookup, 1, n(0), 1, 2), op(lookup, 1, n(1), 3, 4)}, true},
		{"an id that is found and lost", []porcupine.Operation{op(take, 1, lost, 0, forever), op(lookup, 1, n(1), 1, 2), op(lookup, 1, n(0), 3, 4)}, false},
		{"a lost answer below an answer", []porcupine.Operation{op(take, 1, lost, 0, forever), op(take, 2, n(3), 1, 2), op(lookup, 1, n(1), 3, 4)}, true},
		{"a lost answer, and a number after it that is not there", []porcupine.Operation{op(take, 1, lost, 0, forever), op(take, 2, n(3), 1, 2), op(lookup, 1, n(0), 3, 4)}, false},
		{"a UID that stands below", []porcupine.Operation{op(take, 1, n(1), 0, 1), op(current, 0, n(1), 2, 3)}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := porcupine.CheckOperations(exactModel.ToModel(), test.ops); got != test.want {
				t.Errorf("explained: %t, want %t", got, test.want)
			}
		})
	}
}
