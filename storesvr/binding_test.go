package storesvr

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/seqsvr/seqsvr/internal/wire/storeclient"
	"github.com/seqsvr/seqsvr/internal/wire/storewire"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr/acceptor"
	"github.com/seqsvr/seqsvr/storesvr/disk"
	"github.com/seqsvr/seqsvr/tests/kit/bubble"
)

// listDisk keeps the member list, and nothing else.
type listDisk struct {
	noExact
	meta disk.Meta
}

func (d *listDisk) Commit(u disk.Update) (uint64, error) {
	if u.Members != nil {
		d.meta.Members = *u.Members
	}
	if u.Incarnation != nil {
		d.meta.Incarnation = *u.Incarnation
	}
	d.meta.Commits++
	return d.meta.Commits, nil
}

func (d *listDisk) Free() (uint64, error) { return 1 << 40, nil }
func (d *listDisk) Close() error          { return nil }

// bindings is stores that binders reach over a network that loses requests and answers.
type bindings struct {
	t       *testing.T
	clock   bubble.Clock
	rand    *rand.Rand
	stores  map[string]*bindable // by address
	pending []*bindCall
	arrived chan *bindCall
	faults  int      // of 100 calls and answers are lost, and stores restart
	steps   []string // what was done to binds
}

// bindable is one store of bindings.
type bindable struct {
	disk   *listDisk
	server *server
}

// bindCall is a call on its way.
type bindCall struct {
	ctx    context.Context
	addr   string
	method string
	args   any
	reply  any
	done   chan error
}

// line is a connection of a binder to a store.
type line struct {
	w    *bindings
	addr string
}

// Invoke implements grpc.ClientConnInterface.
func (l line) Invoke(ctx context.Context, method string, args, reply any, _ ...grpc.CallOption) error {
	c := &bindCall{ctx: ctx, addr: l.addr, method: method[strings.LastIndex(method, "/")+1:], args: args, reply: reply, done: make(chan error, 1)}
	l.w.arrived <- c
	select {
	case err := <-c.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// NewStream implements grpc.ClientConnInterface.
func (line) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, errors.ErrUnsupported
}

func (w *bindings) start(s *bindable) {
	s.disk.meta.BootCount++
	s.disk.meta.Commits++
	cfg := Config{MaxLease: time.Second, Clock: w.clock, Logger: slog.New(slog.DiscardHandler), Wall: time.Now}
	r, err := newReplica(cfg, s.disk, s.disk.meta, map[seq.Register]acceptor.State{section: {}})
	if err != nil {
		w.t.Fatal(err)
	}
	s.server = &server{replica: r, health: health.NewServer()}
}

// do carries a call to its store.
func (w *bindings) do(c *bindCall) error {
	s := w.stores[c.addr].server
	md, _ := metadata.FromOutgoingContext(c.ctx)
	for _, meant := range md.Get(storewire.StoreHeader) {
		if meant != s.replica.core.identity.UUID {
			return seq.ErrStaleEra
		}
	}
	var reply proto.Message
	var err error
	switch args := c.args.(type) {
	case *pb.DescribeRequest:
		reply, err = s.Describe(c.ctx, args)
	case *pb.BindRequest:
		reply, err = s.Bind(c.ctx, args)
	case *pb.VouchRequest:
		reply, err = s.Vouch(c.ctx, args)
	default:
		err = errors.ErrUnsupported
	}
	if err == nil {
		proto.Merge(c.reply.(proto.Message), reply)
	}
	return err
}

var errLost = errors.New("lost")

// one draws a call that is under way and what becomes of it. It reports whether there was one.
func (w *bindings) one() bool {
	synctest.Wait()
	for len(w.arrived) > 0 {
		w.pending = append(w.pending, <-w.arrived)
	}
	w.pending = slices.DeleteFunc(w.pending, func(c *bindCall) bool { return c.ctx.Err() != nil })
	if len(w.pending) == 0 {
		return false
	}
	i := w.rand.IntN(len(w.pending))
	c := w.pending[i]
	w.pending = slices.Delete(w.pending, i, i+1)
	lost := w.rand.IntN(100) < w.faults
	var err error = errLost
	if !lost || w.rand.IntN(2) == 0 {
		if err = w.do(c); lost {
			err = errLost
		}
	}
	if w.rand.IntN(200) < w.faults {
		s := w.stores[c.addr]
		_ = s.server.replica.close()
		w.start(s)
	}
	if _, bind := c.args.(*pb.BindRequest); bind {
		w.steps = append(w.steps, fmt.Sprint(c.addr, " ", c.args.(*pb.BindRequest).GetStep(), " ", err))
	}
	c.done <- err
	w.check()
	return true
}

// check fails if two complete lists share a store, or a store votes though a member of its list is
// not bound to it.
func (w *bindings) check() {
	var complete []disk.Members
	for addr, s := range w.stores {
		m := s.disk.meta.Members
		if m.Version == 0 || m.Pending {
			if s.server.replica.describe().Voting {
				w.t.Fatalf("%s votes with the list %+v after %q", addr, m, w.steps)
			}
			continue
		}
		complete = append(complete, m)
		for _, member := range m.List {
			for other, o := range w.stores {
				if has := o.disk.meta.Members; o.disk.meta.UUID == member.UUID && quorum.MembersHash(has.List) != quorum.MembersHash(m.List) {
					w.t.Fatalf("%s is complete with %v, and its member %s is bound to %v after %q", addr, m.List, other, has.List, w.steps)
				}
			}
		}
	}
	for i, a := range complete {
		for _, b := range complete[:i] {
			shares := slices.ContainsFunc(a.List, func(m quorum.Member) bool {
				return slices.ContainsFunc(b.List, func(o quorum.Member) bool { return o.UUID == m.UUID })
			})
			if shares && quorum.MembersHash(a.List) != quorum.MembersHash(b.List) {
				w.t.Fatalf("two complete lists share a store: %v and %v after %q", a.List, b.List, w.steps)
			}
		}
	}
}

// connect has each binder connect to its stores for at most that time, all at once, and returns
// what they found.
func (w *bindings) connect(within time.Duration, binders ...string) []error {
	found := make([]error, len(binders))
	left := len(binders)
	ended := make(chan struct{}, left)
	for i, b := range binders {
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), within)
			defer cancel()
			c, err := storeclient.Connect(ctx, strings.Fields(b), storeclient.Through(func(addr string) grpc.ClientConnInterface { return line{w, addr} }))
			if err == nil {
				err = c.Close()
			}
			found[i] = err
			ended <- struct{}{}
		}()
	}
	for left > 0 {
		if w.one() {
			continue
		}
		select {
		case <-ended:
			left--
		case <-time.After(10 * time.Millisecond):
		}
	}
	return found
}

// newBindings makes the stores that the binders name: "2a" and "2b" are two disks of one name.
func newBindings(t *testing.T, seed uint64, binders []string) *bindings {
	w := &bindings{t: t, clock: bubble.NewClock(), rand: rand.New(rand.NewPCG(seed, 59)), stores: map[string]*bindable{}, arrived: make(chan *bindCall, 1000)}
	mapping, err := seq.NewMapping(seq.Space{Name: "user", Sections: 4})
	if err != nil {
		t.Fatal(err)
	}
	for _, addr := range strings.Fields(strings.Join(binders, " ")) {
		if w.stores[addr] == nil {
			s := &bindable{disk: &listDisk{meta: disk.Meta{Key: []byte("key"), Identity: disk.Identity{Cluster: "c1", UUID: fmt.Sprintf("%016x", w.rand.Uint64()),
				Name: addr[:1], N: 3, R: 2, W: 2, Names: []string{"1", "2", "3"}, Mapping: mapping}}}}
			w.stores[addr] = s
			w.start(s)
		}
	}
	return w
}

// stop closes all stores.
func (w *bindings) stop() {
	for _, s := range w.stores {
		_ = s.server.replica.close()
	}
}

func TestTwoListsThatShareAStoreAreNeverBothComplete(t *testing.T) {
	seeds := uint64(60)
	if testing.Short() {
		seeds = 10
	}
	for _, binders := range [][]string{
		{"1 2a 3", "1 2b 3"},
		{"1 2a 3", "3 1 2b", "2c 1 3"},
		{"1 2a 3a", "1 2b 3b"},
		{"1a 2 3a", "1b 2 3a", "1a 2 3b"},
	} {
		for seed := range seeds {
			bubble.Test(t, func(t *testing.T) {
				w := newBindings(t, seed, binders)
				defer w.stop()
				w.faults = 30
				w.connect(3*time.Second, binders...)
				// All answer now: one list gets complete, unless a store of each is bound to another.
				w.faults = 0
				found := w.connect(20*time.Second, binders...)
				if !slices.Contains(found, nil) {
					t.Fatalf("seed %d of %q: nobody serves after %q: %v", seed, binders, w.steps, errors.Join(found...))
				}
			})
		}
	}
}

func TestOneBinderAloneAlwaysCompletesItsList(t *testing.T) {
	seeds := uint64(60)
	if testing.Short() {
		seeds = 10
	}
	for seed := range seeds {
		bubble.Test(t, func(t *testing.T) {
			w := newBindings(t, seed, []string{"1 2 3"})
			defer w.stop()
			w.faults = 40
			w.connect(3*time.Second, "1 2 3")
			w.faults = 0
			if err := errors.Join(w.connect(20*time.Second, "1 2 3")...); err != nil {
				t.Fatalf("seed %d: after %q: %v", seed, w.steps, err)
			}
			for addr, s := range w.stores {
				if m := s.disk.meta.Members; m.Version != 1 || m.Pending {
					t.Errorf("seed %d: %s has the list %+v after %q", seed, addr, m, w.steps)
				}
			}
		})
	}
}

func TestStoresAreBoundInTheOrderOfTheirUUIDs(t *testing.T) {
	for seed := range uint64(5) {
		bubble.Test(t, func(t *testing.T) {
			w := newBindings(t, seed, []string{"1 2 3"})
			defer w.stop()
			if err := errors.Join(w.connect(20*time.Second, "1 2 3")...); err != nil {
				t.Fatal(err)
			}
			var bound []string
			for _, step := range w.steps {
				addr, what, _ := strings.Cut(step, " ")
				if !strings.HasPrefix(what, pb.BindStep_BIND_STEP_COMPLETE.String()) {
					bound = append(bound, w.stores[addr].disk.meta.UUID)
				}
			}
			if len(bound) != 3 || !slices.IsSorted(bound) {
				t.Errorf("seed %d: bound %q by the steps %q", seed, bound, w.steps)
			}
		})
	}
}
