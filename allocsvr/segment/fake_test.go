package segment

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/ownership"
	"github.com/seqsvr/seqsvr/internal/base/clock"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// fault is the outcome of one write.
type fault uint8

const (
	none    fault = iota
	lost          // not applied, and the outcome is unknown to all
	applied       // applied, and the outcome is unknown to all
	late          // like lost; applied by the next flush
)

// register is one fenced register as the stores hold it together.
type register struct {
	promised, accepted seq.Epoch
	max                uint64
	holder             seq.Epoch // whose lease is attached; zero for none
}

// fakeStores are registers, leases and documents in memory, with faults on demand.
type fakeStores struct {
	clock clock.Clock

	mu       sync.Mutex // guards all below
	regs     map[seq.Register]*register
	leaseEnd map[seq.Session]time.Duration // never ends if missing
	docs     map[seq.Register]quorum.Document
	prepares []fault // of the next prepares, then draw
	steps    []fault // of the next steps, then draw
	swaps    []fault // of the next swaps
	draw     func() fault
	delayed  []func()
	unready  int           // of so many attaches, Ready is never closed
	stopped  chan struct{} // if not nil, steps wait until it is closed
	floor    uint64        // of an era that was restored
	nodes    map[seq.Session]*node
	loads    int
	stepped  int
	held     int // looks that met another's lease
}

func newStores(c clock.Clock) *fakeStores {
	return &fakeStores{
		clock: c, regs: map[seq.Register]*register{}, leaseEnd: map[seq.Session]time.Duration{},
		docs: map[seq.Register]quorum.Document{}, nodes: map[seq.Session]*node{}, draw: func() fault { return none },
	}
}

func (f *fakeStores) fault(queue *[]fault) fault {
	if len(*queue) == 0 {
		return f.draw()
	}
	next := (*queue)[0]
	*queue = (*queue)[1:]
	return next
}

var errSilent = fmt.Errorf("%w: 1 of 3 answered", seq.ErrNoQuorum)

// apply runs a write under its fault. Needs f.mu.
func (f *fakeStores) apply(how fault, write func() quorum.Outcome) quorum.Outcome {
	switch how {
	case applied:
		write()
	case late:
		f.delayed = append(f.delayed, func() { write() })
	case none:
		return write()
	}
	return quorum.Outcome{Err: errSilent}
}

// flush lets all late writes arrive.
func (f *fakeStores) flush() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, write := range f.delayed {
		write()
	}
	f.delayed = nil
}

func (f *fakeStores) end(s seq.Session) time.Duration {
	if end, ok := f.leaseEnd[s]; ok {
		return end
	}
	return math.MaxInt64
}

// expire ends the leases of a session after a time.
func (f *fakeStores) expire(s seq.Session, after time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.leaseEnd[s] = f.clock.Now() + after
}

func (f *fakeStores) state(tag string) register {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r := f.regs[seq.TagRegister(tag)]; r != nil {
		return *r
	}
	return register{}
}

// depose has another session promise a higher epoch, as one that found the lease ended.
func (f *fakeStores) depose(tag string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.regs[seq.TagRegister(tag)]
	r.promised, r.holder = seq.Epoch{Round: r.promised.Round + 1, Session: 99}, seq.Epoch{}
}

// barred returns the outcome for a session that another's lease keeps out. Needs f.mu.
func (f *fakeStores) barred(r *register, s seq.Session) (quorum.Outcome, bool) {
	left := f.end(r.holder.Session) - f.clock.Now()
	if r.holder.IsZero() || r.holder.Session == s || left <= 0 {
		return quorum.Outcome{}, false
	}
	f.held++
	return quorum.Outcome{State: quorum.Refused, Promised: r.promised, Holder: r.holder.Session, Remaining: left, Err: quorum.ErrHeld}, true
}

func (f *fakeStores) Probe(_ context.Context, s seq.Session, regs []seq.Register) []quorum.Outcome {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([]quorum.Outcome, len(regs))
	for i, name := range regs {
		r := f.regs[name]
		if r == nil {
			out[i].State = quorum.Won
			continue
		}
		if bar, ok := f.barred(r, s); ok {
			out[i] = bar
			continue
		}
		out[i] = quorum.Outcome{State: quorum.Won, Promised: r.promised, Accepted: r.accepted, Max: max(r.max, f.floor), Floor: f.floor}
	}
	return out
}

func (f *fakeStores) ReadPrefix(ctx context.Context, s seq.Session, prefix string) (map[seq.Register]quorum.Outcome, error) {
	f.mu.Lock()
	var regs []seq.Register
	for name := range f.regs {
		if strings.HasPrefix(string(name), prefix) {
			regs = append(regs, name)
		}
	}
	f.mu.Unlock()
	out := map[seq.Register]quorum.Outcome{}
	for i, o := range f.Probe(ctx, s, regs) {
		out[regs[i]] = o
	}
	return out, nil
}

// tell has the node of a session read the catalogue, if it can be reached.
func (f *fakeStores) tell(ctx context.Context, s seq.Session) (time.Duration, error) {
	f.mu.Lock()
	n := f.nodes[s]
	f.mu.Unlock()
	if n == nil || n.deaf.Load() {
		return 0, errSilent
	}
	return time.Duration(n.slow.Load()), n.Refresh(ctx)
}

func (f *fakeStores) Prepare(_ context.Context, s seq.Session, items []quorum.PrepareItem) []quorum.Outcome {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([]quorum.Outcome, len(items))
	for i, item := range items {
		out[i] = f.apply(f.fault(&f.prepares), func() quorum.Outcome { return f.prepare(s, item) })
	}
	return out
}

func (f *fakeStores) prepare(s seq.Session, item quorum.PrepareItem) quorum.Outcome {
	r, e := f.regs[item.Register], seq.Epoch{Round: item.Round, Session: s}
	if r == nil {
		if !item.Create {
			return quorum.Outcome{State: quorum.Refused, Err: seq.ErrUnknownRegister}
		}
		r = &register{}
		f.regs[item.Register] = r
	}
	if e.Less(r.promised) {
		return quorum.Outcome{State: quorum.Refused, Promised: r.promised, Err: quorum.ErrNack}
	}
	if bar, ok := f.barred(r, s); ok {
		return bar
	}
	if e != r.promised {
		r.promised, r.holder = e, seq.Epoch{}
	}
	return quorum.Outcome{State: quorum.Won, Promised: e, Accepted: r.accepted, Max: max(r.max, f.floor), Floor: f.floor}
}

func (f *fakeStores) Step(_ context.Context, s seq.Session, items []quorum.StepItem) []quorum.Outcome {
	f.mu.Lock()
	stopped := f.stopped
	f.mu.Unlock()
	if stopped != nil {
		<-stopped
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stepped++
	out := make([]quorum.Outcome, len(items))
	for i, item := range items {
		out[i] = f.apply(f.fault(&f.steps), func() quorum.Outcome { return f.step(s, item) })
	}
	return out
}

func (f *fakeStores) step(s seq.Session, item quorum.StepItem) quorum.Outcome {
	r, e := f.regs[item.Register], seq.Epoch{Round: item.Round, Session: s}
	if e.Less(r.promised) {
		return quorum.Outcome{State: quorum.Refused, Promised: r.promised, Err: quorum.ErrNack}
	}
	if e != r.promised {
		r.holder = seq.Epoch{}
	}
	r.promised, r.accepted, r.max = e, e, max(r.max, item.Max)
	return quorum.Outcome{State: quorum.Won, Promised: e, Accepted: e, Max: r.max}
}

func (f *fakeStores) Release(_ context.Context, s seq.Session, items []quorum.LeaseItem, _ seq.Session) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, item := range items {
		if r, e := f.regs[item.Register], (seq.Epoch{Round: item.Round, Session: s}); r.promised == e && r.holder == e {
			r.holder = seq.Epoch{}
		}
	}
	return nil
}

// Copies implements ownership.Registers; segments have none.
func (f *fakeStores) Copies(context.Context, seq.Session, []seq.Register, []uint64) []quorum.Outcome {
	return nil
}

func (f *fakeStores) EndSession(context.Context, seq.Secret) error { return nil }

func (f *fakeStores) LoadDocument(ctx context.Context, _ seq.Session, reg seq.Register) (quorum.Document, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.loads++
	return f.docs[reg], ctx.Err()
}

func (f *fakeStores) SwapDocument(_ context.Context, _ seq.Session, reg seq.Register, old uint64, body []byte) (quorum.Document, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.docs[reg].Version != old {
		return f.docs[reg], seq.ErrConflict
	}
	how := none
	if len(f.swaps) > 0 {
		how, f.swaps = f.swaps[0], f.swaps[1:]
	}
	next := quorum.Document{Version: old + 1, Body: bytes.Clone(body)}
	if how != lost {
		f.docs[reg] = next
	}
	if how != none {
		return f.docs[reg], quorum.ErrUnknownOutcome
	}
	return next, nil
}

// fakeHold is a lease on one register.
type fakeHold struct {
	f     *fakeStores
	reg   seq.Register
	epoch seq.Epoch
	ready chan struct{}
	over  atomic.Bool
}

// fakeLeases are the leases of one session.
type fakeLeases struct {
	f       *fakeStores
	session seq.Session
}

// Attach implements ownership.Leases.
func (l fakeLeases) Attach(reg seq.Register, round uint64) ownership.Lease {
	f := l.f
	f.mu.Lock()
	defer f.mu.Unlock()
	h := &fakeHold{f: f, reg: reg, epoch: seq.Epoch{Round: round, Session: l.session}, ready: make(chan struct{})}
	if r := f.regs[reg]; r.promised != h.epoch || f.unready > 0 {
		f.unready = max(0, f.unready-1)
		h.over.Store(true)
		return h
	}
	f.regs[reg].holder = h.epoch
	close(h.ready)
	return h
}

// Until returns 0 once another epoch was promised, because a real holder learns of the loss before its
// lease would end. A test that wants a zombie uses depose, which leaves the lease standing.
func (h *fakeHold) Until() time.Duration {
	if h.over.Load() {
		return 0
	}
	h.f.mu.Lock()
	defer h.f.mu.Unlock()
	return h.f.end(h.epoch.Session)
}

// Drop reaches the stores with the next renewal only.
func (h *fakeHold) Drop() {
	if h.over.Swap(true) {
		return
	}
	time.AfterFunc(renewal, func() {
		h.f.mu.Lock()
		defer h.f.mu.Unlock()
		if r := h.f.regs[h.reg]; r.holder == h.epoch {
			r.holder = seq.Epoch{}
		}
	})
}

const renewal = 200 * time.Millisecond

func (h *fakeHold) Ready() <-chan struct{} { return h.ready }
