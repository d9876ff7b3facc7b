package quorum

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/seqsvr/seqsvr/seq"
)

var errDropped = errors.New("dropped")

// fault is what a fake store does to one call instead of the right thing.
type fault struct {
	before   error                     // fails, not applied
	after    error                     // fails, but applied
	hold     <-chan struct{}           // applied and answered only once this is closed
	uuid     string                    // answers under this uuid
	nameless bool                      // answers without a uuid
	verdict  Verdict                   // says this on all items, applies nothing
	edit     func(r *Result)           // changes each result of the reply
	cut      bool                      // leaves the last result out
	sleep    func(ctx context.Context) // before anything else
}

// fakeStore is a store in memory: the registers of the protocol without leases,
// and whatever a test scripts.
type fakeStore struct {
	mu    sync.Mutex // guards all below
	uuid  string
	regs  map[seq.Register]Result
	calls map[string]int
	fault func(method string) fault
	renew func(ctx context.Context, req RenewRequest) (RenewReply, error)
}

func newFake(uuid string, regs ...seq.Register) *fakeStore {
	f := &fakeStore{uuid: uuid, regs: map[seq.Register]Result{}, calls: map[string]int{}}
	for _, r := range regs {
		f.regs[r] = Result{}
	}
	return f
}

func (f *fakeStore) script(fault func(method string) fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault = fault
}

// always scripts one fault for every call.
func (f *fakeStore) always(x fault) { f.script(func(string) fault { return x }) }

// onRenew scripts what the store makes of renews.
func (f *fakeStore) onRenew(renew func(context.Context, RenewRequest) (RenewReply, error)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.renew = renew
}

func (f *fakeStore) count(method string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[method]
}

func (f *fakeStore) get(r seq.Register) Result {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.regs[r]
}

func (f *fakeStore) set(r seq.Register, state Result) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.regs[r] = state
}

func (f *fakeStore) do(ctx context.Context, method string, n int, apply func(i int) Result) (Reply, error) {
	f.mu.Lock()
	f.calls[method]++
	var x fault
	if f.fault != nil {
		x = f.fault(method)
	}
	f.mu.Unlock()
	if x.sleep != nil {
		x.sleep(ctx)
	}
	if x.hold != nil {
		<-x.hold
	}
	if x.before != nil {
		return Reply{}, x.before
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	reply := Reply{UUID: f.uuid, Results: make([]Result, n)}
	if x.uuid != "" || x.nameless {
		reply.UUID = x.uuid
	}
	for i := range reply.Results {
		r := &reply.Results[i]
		if x.verdict != VerdictNone {
			*r = Result{Verdict: x.verdict}
		} else {
			*r = apply(i)
		}
		if x.edit != nil {
			x.edit(r)
		}
	}
	if x.cut {
		reply.Results = reply.Results[:n-1]
	}
	if x.after != nil {
		return Reply{}, x.after
	}
	return reply, ctx.Err()
}

func (f *fakeStore) Read(ctx context.Context, req ReadRequest) (Reply, error) {
	regs := req.Registers
	if req.Prefix != "" {
		f.mu.Lock()
		for r := range f.regs {
			if strings.HasPrefix(string(r), req.Prefix) {
				regs = append(regs, r)
			}
		}
		f.mu.Unlock()
	}
	return f.do(ctx, "read", len(regs), func(i int) Result {
		r, ok := f.regs[regs[i]]
		if !ok {
			return Result{Verdict: VerdictUnknown}
		}
		r.Register, r.Verdict = regs[i], VerdictOK
		return r
	})
}

func (f *fakeStore) Prepare(ctx context.Context, req PrepareRequest) (Reply, error) {
	return f.do(ctx, "prepare", len(req.Items), func(i int) Result {
		item, e := req.Items[i], seq.Epoch{Round: req.Items[i].Round, Session: req.Session}
		r, ok := f.regs[item.Register]
		if !ok && !(item.Create && item.Register.OnDemand()) {
			return Result{Verdict: VerdictUnknown}
		}
		if e.Less(r.Promised) {
			r.Verdict = VerdictNack
			return r
		}
		r.Promised = e
		f.regs[item.Register] = r
		r.Verdict = VerdictOK
		return r
	})
}

func (f *fakeStore) Step(ctx context.Context, req StepRequest) (Reply, error) {
	return f.do(ctx, "step", len(req.Items), func(i int) Result {
		item, e := req.Items[i], seq.Epoch{Round: req.Items[i].Round, Session: req.Session}
		r, ok := f.regs[item.Register]
		if !ok {
			return Result{Verdict: VerdictUnknown}
		}
		if e.Less(r.Promised) {
			r.Verdict = VerdictNack
			return r
		}
		r.Promised, r.Accepted, r.Max, r.Payload = e, e, max(r.Max, item.Max), item.Payload
		f.regs[item.Register] = r
		r.Verdict = VerdictOK
		return r
	})
}

func (f *fakeStore) Renew(ctx context.Context, req RenewRequest) (RenewReply, error) {
	f.mu.Lock()
	f.calls["renew"]++
	renew, uuid := f.renew, f.uuid
	f.mu.Unlock()
	if renew == nil {
		return RenewReply{UUID: uuid, BootCount: 1}, nil
	}
	reply, err := renew(ctx, req)
	if reply.UUID == "" {
		reply.UUID = uuid
	}
	return reply, err
}

func (f *fakeStore) Release(ctx context.Context, _ ReleaseRequest) (string, error) {
	reply, err := f.do(ctx, "release", 0, nil)
	return reply.UUID, err
}

const (
	me    seq.Session = 0x11
	other seq.Session = 0x22
)

var (
	section = seq.SectionRegister(7)
	routes  = seq.RoutesRegister
)

// cluster makes n fake stores that have the registers, and a majority group. known
// says whether the group knows their uuids beforehand.
func cluster(t *testing.T, n int, known bool, regs ...seq.Register) (*Group, []*fakeStore) {
	t.Helper()
	fakes, stores := fakeStores(n, known, regs...)
	g, err := NewGroup(Config{N: n, R: n/2 + 1, W: n/2 + 1}, stores)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return g, fakes
}

func fakeStores(n int, known bool, regs ...seq.Register) (fakes []*fakeStore, stores []NamedStore) {
	for i := range n {
		f := newFake(fmt.Sprintf("uuid-%d", i), regs...)
		s := NamedStore{Name: fmt.Sprintf("store%d", i), Store: f}
		if known {
			s.UUID = f.uuid
		}
		fakes, stores = append(fakes, f), append(stores, s)
	}
	return fakes, stores
}

func epoch(round uint64, s seq.Session) seq.Epoch { return seq.Epoch{Round: round, Session: s} }
