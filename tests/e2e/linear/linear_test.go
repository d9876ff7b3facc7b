package linear

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/seqsvr/seqsvr/internal/base/clock"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/memstore"
	"github.com/seqsvr/seqsvr/tests/kit/sessiontest"
)

const (
	clients  = 5
	calls    = 150             // of each client
	attempt  = 2 * time.Second // of one call
	patience = time.Minute     // of porcupine
	forever  = int64(1) << 62  // the return of a call whose outcome is unknown
)

// document is the state of a register, and what a call saw of it.
type document struct {
	version uint64
	body    string
}

// input is a call: a load, or a swap of a version.
type input struct {
	register seq.Register
	swap     bool
	old      uint64
	body     string
}

type verdict int

const (
	done     verdict = iota // saw: the document loaded, or made
	conflict                // saw: the document as it is
	unknown
)

// output is the answer.
type output struct {
	verdict verdict
	saw     document
}

// model is a compare-and-swap document for each register.
var model = porcupine.NondeterministicModel{
	Init: func() []any { return []any{document{}} },
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		byRegister := map[seq.Register][]porcupine.Operation{}
		for _, op := range history {
			r := op.Input.(input).register
			byRegister[r] = append(byRegister[r], op)
		}
		var parts [][]porcupine.Operation
		for _, part := range byRegister {
			parts = append(parts, part)
		}
		return parts
	},
	Step: func(state, in, out any) []any {
		now, call, answer := state.(document), in.(input), out.(output)
		made := document{call.old + 1, call.body}
		switch {
		case !call.swap:
			if answer.saw == now {
				return []any{now}
			}
		case answer.verdict == unknown:
			if now.version == call.old {
				return []any{now, made}
			}
			return []any{now}
		case answer.verdict == conflict:
			if answer.saw == now && now.version != call.old {
				return []any{now}
			}
		case now.version == call.old && answer.saw == made:
			return []any{made}
		}
		return nil
	},
	Equal: func(a, b any) bool { return a.(document) == b.(document) },
}

// recorder collects the operations of all clients on one clock.
type recorder struct {
	began time.Time

	mu  sync.Mutex // guards ops
	ops []porcupine.Operation
}

func (r *recorder) now() int64 { return int64(time.Since(r.began)) }

// add records an answer; ok false means that nothing was done and nothing seen.
func (r *recorder) add(client int, in input, call int64, doc quorum.Document, err error) {
	answer, ret := output{saw: document{doc.Version, string(doc.Body)}}, r.now()
	switch {
	case err == nil:
	case errors.Is(err, seq.ErrConflict):
		answer.verdict = conflict
	case errors.Is(err, quorum.ErrUnknownOutcome):
		answer, ret = output{verdict: unknown}, forever
	default:
		return // by the contract nothing was changed: if it was, later answers tell
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ops = append(r.ops, porcupine.Operation{ClientId: client, Input: in, Call: call, Output: answer, Return: ret})
}

// kinds counts the answers.
func (r *recorder) kinds() (count [3]int, swaps int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, op := range r.ops {
		count[op.Output.(output).verdict]++
		if op.Input.(input).swap && op.Output.(output).verdict == done {
			swaps++
		}
	}
	return count, swaps
}

// registers are the route table and the namespaces.
var registers = []seq.Register{seq.RoutesRegister, seq.NamespacesRegister}

func TestDocumentsAreLinearizableWhileStoresFail(t *testing.T) {
	var all [3]int
	for seed := range uint64(6) {
		r := run(t, seed)
		count, swaps := r.kinds()
		for i, n := range count {
			all[i] += n
		}
		if swaps == 0 {
			t.Errorf("seed %d: no swap was made: the run shows nothing", seed)
		}
		switch result := porcupine.CheckOperationsTimeout(model.ToModel(), r.ops, patience); result {
		case porcupine.Ok:
		case porcupine.Unknown:
			t.Errorf("seed %d: no verdict in %v", seed, patience)
		default:
			t.Errorf("seed %d: no order of the %d calls explains their answers", seed, len(r.ops))
		}
	}
	t.Logf("%d done, %d conflicts, %d unknown", all[done], all[conflict], all[unknown])
	if all[conflict] == 0 || all[unknown] == 0 {
		t.Errorf("%d conflicts, %d unknown outcomes: want some of both", all[conflict], all[unknown])
	}
}

func run(t *testing.T, seed uint64) *recorder {
	t.Helper()
	mapping, err := seq.NewMapping(seq.Space{Name: "user", Sections: 4})
	if err != nil {
		t.Fatal(err)
	}
	cluster := memstore.New(3, mapping, clock.Boot(), 10*time.Second)
	r := &recorder{began: time.Now()}
	var callers, faults sync.WaitGroup
	stop := make(chan struct{})
	faults.Go(func() { harm(cluster, rand.New(rand.NewPCG(seed, 1)), stop) })
	for i := range clients {
		group, err := cluster.Group() // each has its own view of the stores
		if err != nil {
			t.Fatal(err)
		}
		c := newCaller(group, r, i, seed)
		callers.Go(func() {
			for range calls {
				c.call()
			}
		})
	}
	callers.Wait()
	close(stop)
	faults.Wait()
	return r
}

// caller is one client.
type caller struct {
	group  *quorum.Group
	r      *recorder
	id     int
	random *rand.Rand
	seen   map[seq.Register]uint64
	calls  int
}

func newCaller(group *quorum.Group, r *recorder, id int, seed uint64) *caller {
	return &caller{group: group, r: r, id: id, random: rand.New(rand.NewPCG(seed, uint64(10+id))), seen: map[seq.Register]uint64{}}
}

// call makes one call: mostly a swap upon what the client saw last.
func (c *caller) call() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(1+c.random.Int64N(int64(attempt))))
	defer cancel()
	session, reg := sessiontest.Session(uint64(c.id+1)), registers[c.random.IntN(len(registers))]
	in, began := input{register: reg}, c.r.now()
	var doc quorum.Document
	var err error
	if c.random.IntN(3) == 0 {
		doc, err = c.group.LoadDocument(ctx, session, reg)
	} else {
		in.swap, in.old, in.body = true, c.seen[reg], fmt.Sprintf("%d of client %d", c.calls, c.id)
		doc, err = c.group.SwapDocument(ctx, session, reg, in.old, []byte(in.body))
	}
	c.calls++
	c.r.add(c.id, in, began, doc, err)
	if err == nil || errors.Is(err, seq.ErrConflict) {
		c.seen[reg] = doc.Version
	}
}

// harm breaks stores until it is told to stop: never for good, and often a quorum.
func harm(cluster *memstore.Cluster, random *rand.Rand, stop <-chan struct{}) {
	for {
		s := cluster.Stores[random.IntN(len(cluster.Stores))]
		switch random.IntN(5) {
		case 0:
			s.SetDown(true)
		case 1:
			s.SetDeaf(true) // what it is asked is done, its answers are lost
		case 2:
			s.LoseSteps(1 + random.IntN(3))
		case 3:
			s.Restart()
		}
		select {
		case <-time.After(time.Duration(random.Int64N(int64(time.Millisecond)))):
		case <-stop:
			return
		}
		for _, s := range cluster.Stores {
			if random.IntN(2) == 0 {
				s.SetDown(false)
				s.SetDeaf(false)
			}
		}
	}
}

// TestTheModelRefusesWhatCannotBe: histories that no order explains.
func TestTheModelRefusesWhatCannotBe(t *testing.T) {
	swap := func(old uint64, body string, v verdict, saw document, call, ret int64) porcupine.Operation {
		return porcupine.Operation{Input: input{register: "r", swap: true, old: old, body: body}, Output: output{v, saw}, Call: call, Return: ret}
	}
	load := func(saw document, call, ret int64) porcupine.Operation {
		return porcupine.Operation{Input: input{register: "r"}, Output: output{saw: saw}, Call: call, Return: ret}
	}
	a, b := document{1, "a"}, document{1, "b"}
	tests := []struct {
		name string
		ops  []porcupine.Operation
		want bool
	}{
		{"a swap, and a load that sees it", []porcupine.Operation{swap(0, "a", done, a, 0, 1), load(a, 2, 3)}, true},
		{"a load that sees less than was there", []porcupine.Operation{swap(0, "a", done, a, 0, 1), load(document{}, 2, 3)}, false},
		{"two swaps of one version", []porcupine.Operation{swap(0, "a", done, a, 0, 5), swap(0, "b", done, b, 0, 5)}, false},
		{"one of them a conflict", []porcupine.Operation{swap(0, "a", done, a, 0, 5), swap(0, "b", conflict, a, 0, 5)}, true},
		{"a conflict with nothing", []porcupine.Operation{swap(0, "b", conflict, document{}, 0, 5)}, false},
		{"an unknown one that comes late", []porcupine.Operation{swap(0, "a", unknown, document{}, 0, forever), load(document{}, 1, 2), load(a, 3, 4)}, true},
		{"an unknown one that never comes", []porcupine.Operation{swap(0, "a", unknown, document{}, 0, forever), load(document{}, 1, 2), swap(0, "b", done, b, 3, 4)}, true},
		{"an unknown one that comes and goes", []porcupine.Operation{swap(0, "a", unknown, document{}, 0, forever), load(a, 1, 2), load(document{}, 3, 4)}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := porcupine.CheckOperations(model.ToModel(), test.ops); got != test.want {
				t.Errorf("explained: %t, want %t", got, test.want)
			}
		})
	}
}
