package quorum

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

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
	cfg    Config
	stores []NamedStore // immutable
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
	g.now.Store(&view{cfg: cfg, stores: append([]NamedStore(nil), stores...)})
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

// round sends a message to all stores at once and hands each answer to take,
// one after the other, until take has enough. Each store's answer comes exactly
// once if take never has enough: stores that are silent when ctx or the timeout
// ends answer with that error. Answers that take does not wait for go on in the
// background, detached from ctx so that a caller's deferred cancel does not take
// a write back from the slow store, and bounded by the timeout.
func (g *Group) round(ctx context.Context, v *view, length int, send message, take func(answer) (enough bool)) {
	answers, late := g.send(ctx, v, send)
	silent := make([]bool, len(v.stores))
	for i := range silent {
		silent[i] = true
	}
	var counted []string
	handle := func(a answer) bool {
		silent[a.store] = false
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
	for range v.stores {
		a, err := receive(ctx, late, answers)
		if err != nil {
			for i := range silent {
				if silent[i] && handle(answer{store: i, err: err}) {
					return
				}
			}
			return
		}
		if handle(a) {
			return
		}
	}
}

// receive gives the next answer, or why none will be waited for. An answer that has
// come by then is never passed over: late also ends when all have answered.
func receive(ctx, late context.Context, answers <-chan answer) (answer, error) {
	select {
	case a := <-answers:
		return a, nil
	case <-ctx.Done():
	case <-late.Done():
	}
	select {
	case a := <-answers:
		return a, nil
	default:
	}
	if err := context.Cause(ctx); err != nil {
		return answer{}, err
	}
	return answer{}, context.Cause(late)
}

// send starts one goroutine a store. The context it returns ends with the
// round's timeout, or after the last answer is in the channel.
func (g *Group) send(ctx context.Context, v *view, send message) (<-chan answer, context.Context) {
	answers := make(chan answer, len(v.stores))
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), v.cfg.Timeout)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		for i := range v.stores {
			answers <- answer{store: i, err: ErrClosed}
		}
		cancel()
		return answers, late
	}
	stop := context.AfterFunc(g.base, cancel)
	left := new(atomic.Int32)
	left.Store(int32(len(v.stores)))
	for i := range v.stores {
		g.sent.Go(func() {
			uuid, results, err := send(late, v.stores[i].Store)
			answers <- answer{store: i, uuid: uuid, results: results, err: err, at: time.Now()}
			if left.Add(-1) == 0 {
				stop()
				cancel()
			}
		})
	}
	return answers, late
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
