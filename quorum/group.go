package quorum

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seqsvr/seqsvr/internal/base/wake"
	"github.com/seqsvr/seqsvr/seq"
)

// Group sends the same request to all stores of a cluster and counts the
// answers. It is safe for concurrent use. One session writes documents through
// one Group, which is what keeps its rounds distinct.
type Group struct {
	now atomic.Pointer[view] // swapped by Reconfigure

	base   context.Context // ends with Close
	cancel context.CancelFunc
	sent   sync.WaitGroup // messages that are not answered yet

	mu     sync.Mutex // guards closed and rounds
	closed bool
	// rounds are the highest that a session asked for: of a document, and of any other
	// register if it did not win it.
	rounds map[proposer]uint64
	change chan struct{} // closed by the next Reconfigure
}

// view is the stores that a round asks. Each round takes one and keeps it to its end: acks
// of two member lists are never added up.
type view struct {
	cfg     Config
	stores  []NamedStore // immutable
	nearest *nearest
}

// within returns the view with another timeout of a round. If timeout is zero, it returns v.
func (v *view) within(timeout time.Duration) *view {
	if timeout == 0 {
		return v
	}
	other := *v
	other.cfg.Timeout = timeout
	return &other
}

type proposer struct {
	session  seq.Session
	register seq.Register
}

// NewGroup makes a group of cfg.N stores. It returns ErrBadConfig if the group cannot be safe.
func NewGroup(cfg Config, stores []NamedStore) (*Group, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if err := checkStores(stores, cfg.N); err != nil {
		return nil, err
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = DefaultTimeout
	}
	g := &Group{rounds: map[proposer]uint64{}, change: make(chan struct{})}
	g.now.Store(&view{cfg, slices.Clone(stores), newNearest(cfg.N)})
	g.base, g.cancel = context.WithCancel(context.Background())
	return g, nil
}

// Close ends the messages that are still under way and waits for them. Their outcome is
// then unknown. Later calls fail with ErrClosed.
func (g *Group) Close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.cancel()
	g.sent.Wait()
}

// answer is what one store made of one message. results are nil if err is not.
type answer struct {
	store   int
	uuid    string
	results []Result
	err     error
	at      time.Time
}

// message sends one request to one store.
type message func(ctx context.Context, s Store) (uuid string, results []Result, err error)

// anyLength stands for a reply whose number of results is not known beforehand.
const anyLength = -1

// round sends a message to all stores at once, or if few is set to W of them first, and hands each answer to
// take, one after the other, until take has enough. Each store's answer comes exactly
// once if take never has enough: stores that are silent when ctx or the timeout
// ends answer with that error. Answers that take does not wait for go on in the
// background, detached from ctx so that a caller's deferred cancel does not take
// a write back from the slow store, and bounded by the timeout.
func (g *Group) round(ctx context.Context, v *view, length int, few bool, send message, take func(answer) (enough bool)) {
	asked := g.begin(ctx, v, send)
	defer asked.end()
	var due <-chan time.Time // the others are asked then
	begun := time.Now()
	few = few && v.cfg.W < v.cfg.N
	if few {
		first, patience := v.nearest.first(v.cfg.W)
		asked.send(first)
		timer := time.NewTimer(patience)
		defer timer.Stop()
		due = timer.C
	} else {
		asked.send(asked.unsent())
	}
	var counted []string
	handle := func(a answer) bool {
		asked.silent[a.store] = false
		if a.err == nil {
			a.err = v.vet(a, length, counted)
		}
		if a.err != nil {
			a.results = nil
			a.err = fmt.Errorf("store %s: %w", v.stores[a.store].Name, a.err)
			g.outdated(v, a.err)
		} else {
			counted = append(counted, a.uuid)
		}
		return take(a)
	}
	for got := 1; got <= len(v.stores); {
		a, come, err := asked.receive(ctx, due)
		switch {
		case err != nil:
			for i := range asked.silent {
				if asked.silent[i] && handle(answer{store: i, err: err}) {
					return
				}
			}
			return
		case !come:
			v.nearest.later(func(i int) bool { return asked.sent[i] && asked.silent[i] })
		case handle(a):
			if few && a.err == nil {
				v.nearest.answered(a.at.Sub(begun))
			}
			return
		default:
			got++
			if few && a.err != nil {
				v.nearest.later(func(i int) bool { return i == a.store })
			}
		}
		if due != nil && (!come || a.err != nil || got > v.cfg.W) {
			due = nil
			asked.send(asked.unsent())
		}
	}
}

// asked is the sending of one round.
type asked struct {
	g       *Group
	v       *view
	message message
	late    context.Context // ends with the round's timeout, or after the round and its last answer
	cancel  context.CancelFunc
	answers chan answer
	left    atomic.Int32 // stores whose answer has not come; one is the round itself
	sent    []bool
	silent  []bool // the answers that were not handled
}

// begin begins a round that has sent nothing yet.
func (g *Group) begin(ctx context.Context, v *view, send message) *asked {
	r := &asked{g: g, v: v, message: send, answers: make(chan answer, len(v.stores)), sent: make([]bool, len(v.stores)), silent: make([]bool, len(v.stores))}
	for i := range r.silent {
		r.silent[i] = true
	}
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), v.cfg.Timeout)
	stop := context.AfterFunc(g.base, cancel)
	r.late, r.cancel = late, func() { stop(); cancel() }
	r.left.Store(1)
	return r
}

// end says that no further store will be asked.
func (r *asked) end() {
	if r.left.Add(-1) == 0 {
		r.cancel()
	}
}

// send starts one goroutine for each of the stores.
func (r *asked) send(stores []int) {
	r.g.mu.Lock()
	defer r.g.mu.Unlock()
	for _, i := range stores {
		r.sent[i] = true
		if r.g.closed {
			r.answers <- answer{store: i, err: ErrClosed}
			continue
		}
		r.left.Add(1)
		r.g.sent.Go(func() {
			uuid, results, err := r.message(r.late, r.v.stores[i].Store)
			r.answers <- answer{store: i, uuid: uuid, results: results, err: err, at: time.Now()}
			r.end()
		})
	}
}

// unsent returns the stores that were not asked.
func (r *asked) unsent() (stores []int) {
	for i, sent := range r.sent {
		if !sent {
			stores = append(stores, i)
		}
	}
	return stores
}

// receive gives the next answer, or why none will be waited for, or neither once due is over. An answer that has
// come by then is never passed over.
func (r *asked) receive(ctx context.Context, due <-chan time.Time) (a answer, come bool, err error) {
	select {
	case a := <-r.answers:
		return a, true, nil
	case <-due:
		return answer{}, false, nil
	case <-ctx.Done():
	case <-r.late.Done():
	}
	select {
	case a := <-r.answers:
		return a, true, nil
	default:
	}
	if err := context.Cause(ctx); err != nil {
		return answer{}, false, err
	}
	return answer{}, false, context.Cause(r.late)
}

// hedge is the least time that the stores that are asked first have alone.
const hedge = 2 * time.Millisecond

// nearest is the order in which stores are asked if not all need to be: W of them first, and the others once one
// of these says no, or is later than usual. Any W are enough for a look, so the others need not work for it.
type nearest struct {
	mu       sync.Mutex // guards all below
	order    []int
	patience wake.Patience // of W answers
}

func newNearest(n int) *nearest {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	return &nearest{order: order, patience: wake.Patience{Least: hedge}}
}

// first returns the w stores to ask first, and how long they have alone.
func (n *nearest) first(w int) ([]int, time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.order[:w]), n.patience.At(0)
}

// later puts stores behind the others.
func (n *nearest) later(is func(i int) bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	slices.SortStableFunc(n.order, func(i, j int) int {
		switch late := is(i); {
		case late == is(j):
			return 0
		case late:
			return 1
		}
		return -1
	})
}

// answered notes the time that W answers took.
func (n *nearest) answered(took time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.patience.Answered(took)
}

// claimed passes on what the reply says of the store's disk.
func (v *view) claimed(reply Reply, err error) {
	if err == nil && v.cfg.OnClaim != nil && reply.Claim.Commits > 0 {
		v.cfg.OnClaim(reply.Claim)
	}
}

// vet says why an answer must not count: mutation 4 is two answers of one store
// that count as two.
func (v *view) vet(a answer, length int, counted []string) error {
	if err := checkUUID(v.stores, a.store, a.uuid); err != nil {
		return err
	}
	for _, uuid := range counted {
		if uuid == a.uuid {
			return fmt.Errorf("%w: %q has been counted", ErrIdentity, uuid)
		}
	}
	if length != anyLength && len(a.results) != length {
		return fmt.Errorf("%w: %d results, expected %d", ErrBadReply, len(a.results), length)
	}
	return nil
}

// noQuorum wraps what the stores said when fewer than needed of them answered.
func noQuorum(what string, got, need int, causes []error) error {
	return fmt.Errorf("%s: %w: %d of %d needed: %w", what, seq.ErrNoQuorum, got, need, errors.Join(causes...))
}
