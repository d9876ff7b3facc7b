package allocsvr

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/seqsvr/seqsvr/allocsvr/api"
	"github.com/seqsvr/seqsvr/allocsvr/documents"
	"github.com/seqsvr/seqsvr/allocsvr/globalid/namespaces"
	"github.com/seqsvr/seqsvr/allocsvr/owner"
	"github.com/seqsvr/seqsvr/internal/lab/history"
	"github.com/seqsvr/seqsvr/internal/ops/setadmin"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
	"github.com/seqsvr/seqsvr/tests/kit/waits"
)

// division is several fleets that are Sets of one map, the first of them the root.
type division struct {
	t      *testing.T
	fleets []*fleet
	root   *setadmin.Root
	calls  history.Recorder

	backups map[int][]state // of Sets
	deaf    atomic.Bool     // no other Set hears the map of the root
}

type state = quorum.RegisterState

// nodesOfASet is the number of nodes of each Set. Every address belongs to one Set.
const nodesOfASet = 2

func newDivision(t *testing.T, n int, spaces ...seq.Space) *division {
	t.Helper()
	d := &division{t: t}
	for i := range n {
		d.fleets = append(d.fleets, d.alone(i, fmt.Sprint("cluster-", i), spaces...))
	}
	t.Cleanup(func() {
		if err := history.Check(d.calls.Calls()).Err(); err != nil {
			t.Errorf("history over all Sets: %v", err)
		}
	})
	d.root = &setadmin.Root{Set: setadmin.NewSet(sets.RootName, d.addrs(0), d)}
	for i := 1; i < n; i++ {
		if _, err := d.root.Add(t.Context(), setadmin.NewSet(d.name(i), d.addrs(i), d), d.addrs(0)); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

// alone is a new cluster at the addresses of a Set.
func (d *division) alone(i int, cluster string, spaces ...seq.Space) *fleet {
	d.t.Helper()
	f := newFleet(d.t, spaces...)
	f.stores.Rename(cluster)
	f.root = d.rootMap
	var nodes []*node
	for k := range nodesOfASet {
		nodes = append(nodes, f.start(d.addr(i, k), nodesOfASet, ""))
	}
	f.serving(nodes...)
	return f
}

func (d *division) name(i int) string {
	if i == 0 {
		return sets.RootName
	}
	return fmt.Sprint("set-", i)
}

func (d *division) addr(i, k int) string { return fmt.Sprintf("%d%c", i, 'a'+k) }

func (d *division) addrs(i int) (out []string) {
	for k := range nodesOfASet {
		out = append(out, d.addr(i, k))
	}
	return out
}

// rootMap returns the map as a node of the root tells it.
func (d *division) rootMap(ctx context.Context, addr string, _ uint64) (sets.Map, error) {
	if d.deaf.Load() {
		return sets.Map{}, errStopped
	}
	return (&setadmin.Root{Set: setadmin.NewSet(sets.RootName, []string{addr}, d)}).Map(ctx)
}

// At implements setadmin.Conns.
func (d *division) At(addr string) (grpc.ClientConnInterface, error) {
	for _, f := range d.fleets {
		if n := f.at(addr); n != nil {
			ref := f.stores.Told()
			return direct{n, ref.Cluster, ref.Era, &f.ids}, nil
		}
	}
	return nil, fmt.Errorf("no node at %s", addr)
}

// noIDs is a cluster that makes no global IDs.
type noIDs struct {
	joined atomic.Bool
	gave   atomic.Bool // of the root: each other Set has worker ids
}

func (i *noIDs) Join(context.Context) error {
	i.joined.Store(true)
	return nil
}
func (i *noIDs) Gave(context.Context, string) (bool, error) { return i.gave.Load(), nil }
func (*noIDs) Settle(context.Context, [][]byte) error       { return nil }
func (*noIDs) Allot(context.Context, string, []string, namespaces.AllotmentRequest) ([]byte, error) {
	return nil, nil
}

// direct calls the services of a node, which has not been killed, without a network.
type direct struct {
	n       *node
	cluster string
	era     seq.Era
	ids     *noIDs
}

// Invoke implements grpc.ClientConnInterface.
func (c direct) Invoke(ctx context.Context, method string, req, reply any, _ ...grpc.CallOption) error {
	select {
	case <-c.n.done:
		return errors.New("the node is dead")
	default:
	}
	a, room := c.n.Alloc, owner.Room{}
	if r := c.n.room.Load(); r != nil {
		room = *r
	}
	services := map[*grpc.ServiceDesc]any{
		&pb.Sets_ServiceDesc: &api.Sets{Cluster: c.cluster, Era: c.era, Name: a.name, Docs: a.sets, Sections: a.sections, Moves: a.owner.Moves(), Room: room, Routes: a.routes,
			Keyhash: documents.NewKeys(ctx, c.n.group, a.session, *a.sections.Mapping()), Rehash: func(documents.KeyEntries) error { return nil }, IDs: c.ids},
		&pb.Admin_ServiceDesc:    c.n.admin(),
		&pb.Sequence_ServiceDesc: &api.Sequence{Cluster: c.cluster, Sections: a.sections, RouteTable: a.routes, Sets: a.sets, Limits: api.NewLimits(0, 0, 0)},
	}
	for desc, impl := range services {
		for _, m := range desc.Methods {
			if "/"+desc.ServiceName+"/"+m.MethodName != method {
				continue
			}
			out, err := m.Handler(impl, ctx, func(in any) error {
				proto.Merge(in.(proto.Message), req.(proto.Message))
				return nil
			}, nil)
			if err == nil {
				proto.Merge(reply.(proto.Message), out.(proto.Message))
			}
			return err
		}
	}
	return fmt.Errorf("no method %s", method)
}

// NewStream implements grpc.ClientConnInterface.
func (c direct) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, errors.New("no streams")
}

// try asks each node once for a number, beginning at one of them.
func (d *division) try(uid seq.UID, from int) (seq.Seq, bool) {
	var all []*node
	for _, f := range d.fleets {
		all = append(all, f.all()...)
	}
	for i := range all {
		n := all[(from+i)%len(all)]
		start := d.fleets[0].clock.Now()
		ctx, cancel := context.WithTimeout(d.t.Context(), 300*time.Millisecond)
		got := n.Take(ctx, &d.fleets[0].stores.Mapping.Spaces[0], seq.PlainAll(uid), nil)
		cancel()
		if len(got.Faults) == 0 {
			d.calls.Add(history.Call{Key: history.Key{UID: uint64(uid)}, First: got.First[0], Last: got.Last[0], Start: start, End: d.fleets[0].clock.Now()})
			return seq.Seq(got.First[0]), true
		}
	}
	return 0, false
}

func (d *division) next(uid seq.UID) (got seq.Seq) {
	d.t.Helper()
	d.until(fmt.Sprint("a number for uid ", uid), func() (ok bool) {
		got, ok = d.try(uid, 0)
		return ok
	})
	return got
}

// load takes numbers of all uids below n until the test says stop, which waits for it.
func (d *division) load(n int) (stop func() (taken int)) {
	end := make(chan struct{})
	var wg sync.WaitGroup
	var taken atomic.Int64
	for uid := range n {
		wg.Go(func() {
			for from := uid; ; from++ {
				select {
				case <-end:
					return
				default:
				}
				if _, ok := d.try(seq.UID(uid), from); ok {
					taken.Add(1)
				}
			}
		})
	}
	return sync.OnceValue(func() int { close(end); wg.Wait(); return int(taken.Load()) })
}

func (d *division) until(what string, ok func() bool) {
	d.t.Helper()
	waitUntil(d.t, waits.AtMost(d.t, patient), what, ok)
}

// begin notes a move in the map.
func (d *division) begin(to int, ranges ...sets.Range) *setadmin.Mover {
	d.t.Helper()
	move, err := d.root.Begin(d.t.Context(), d.name(to), ranges)
	if err != nil {
		d.t.Fatal(err)
	}
	return d.mover(move.ID)
}

// mover returns a mover of an open move of the map, or nil if the move is not open.
func (d *division) mover(id uint64) *setadmin.Mover {
	d.t.Helper()
	all, err := d.root.Map(d.t.Context())
	if err != nil {
		d.t.Fatal(err)
	}
	move, open := all.Open(id)
	if !open {
		return nil
	}
	m, err := d.root.Mover(all, move, d)
	if err != nil {
		d.t.Fatal(err)
	}
	m.Logger = slog.New(slog.DiscardHandler)
	return m
}

func (d *division) finish(m *setadmin.Mover) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), waits.AtMost(d.t, patient))
	defer cancel()
	if err := m.Finish(ctx); err != nil {
		d.t.Fatal(err)
	}
}

// in returns the Set that the map says a section is in.
func (d *division) in(id seq.SectionID) int {
	d.t.Helper()
	all, err := d.root.Map(d.t.Context())
	if err != nil {
		d.t.Fatal(err)
	}
	return all.Index(id)
}

var all16 = sets.Range{First: 0, Sections: 16}

func user16() seq.Space { return seq.Space{Name: "user", Sections: 16, Step: 50} }

func TestSectionsMoveToAnotherSetAndBackWithoutAGap(t *testing.T) {
	d := newDivision(t, 2, user16())
	const uids = 40
	for uid := range seq.UID(uids) {
		if got := d.next(uid); got != 1 {
			t.Fatalf("uid %d began at %d", uid, got)
		}
	}
	for i, to := range []int{1, 0, 1} {
		d.finish(d.begin(to, all16))
		for uid := range seq.UID(uids) {
			if got := d.next(uid); got != seq.Seq(i+2) {
				t.Errorf("uid %d got %d after move %d, want %d", uid, got, i+1, i+2)
			}
		}
		if got := d.in(3); got != to {
			t.Errorf("section 3 is in Set %d by the map, want %d", got, to)
		}
	}
}

// extend adds a space of four sections to the cluster of one Set alone.
func (d *division) extend(set int, name string) {
	d.t.Helper()
	f := d.fleets[set]
	m, _, err := f.stores.Mapping.Add(seq.Space{Name: name, Sections: 4})
	if err != nil {
		d.t.Fatal(err)
	}
	for _, s := range f.stores.Stores {
		if err := s.Extend(16, 20); err != nil {
			d.t.Fatal(err)
		}
	}
	for _, n := range f.all() {
		n.cover(d.t, m)
		if err := n.extend(m, seq.KeyHashers{name: {Secret: seq.NewKeySecret()}}); err != nil {
			d.t.Fatal(err)
		}
	}
	f.stores.Mapping = m
	d.until("the new sections are in the table", func() bool {
		for _, n := range f.all() {
			if len(n.routes.Table().Sections) != 20 {
				return false
			}
		}
		return true
	})
}

// Each Set has the mapping of its own stores: a section that is of another space there, or of none,
// would be counted on by other keys.
func TestSectionsMoveOnlyToASetThatHasTheirSpace(t *testing.T) {
	d := newDivision(t, 2, user16())
	d.extend(0, "orders")
	move := d.begin(1, sets.Range{First: 17, Sections: 1})
	refused := func(what string) {
		t.Helper()
		if err := d.mover(move.Move.ID).Finish(t.Context()); !errors.Is(err, seq.ErrBadMapping) {
			t.Errorf("%s: %v", what, err)
		}
		if record, _, _, err := d.root.Record(t.Context()); err != nil || record.At(17).State != sets.Active {
			t.Errorf("%s: section 17 is %v, %v", what, record.At(17), err)
		}
	}
	refused("the other Set has no such section")
	d.extend(1, "rooms")
	refused("it is of another space there")
}

// moveSteps are the steps of a Mover, each of which calls Before.
var moveSteps = []string{"seal", "stop", "open", "finish", "arrive"}

var errStopped = errors.New("the coordinator was stopped")

func TestAMoveIsFinishedByAnotherWhereverItsCoordinatorEnded(t *testing.T) {
	for _, end := range moveSteps {
		for _, back := range []bool{false, true} {
			t.Run(fmt.Sprintf("before %s back %v", end, back), func(t *testing.T) {
				t.Parallel()
				d := newDivision(t, 2, user16())
				stop := d.load(20)
				m := d.begin(1, all16)
				m.Before = func(step string) error {
					if step == end {
						return errStopped
					}
					return nil
				}
				if err := m.Finish(t.Context()); !errors.Is(err, errStopped) {
					t.Fatalf("got %v", err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), patient)
				defer cancel()
				want, second := 1, d.mover(m.Move.ID)
				if back {
					if end != "finish" && end != "arrive" {
						want = 0
					}
					if err := second.TakeBack(ctx); err != nil {
						t.Fatal(err)
					}
				} else if err := second.Finish(ctx); err != nil {
					t.Fatal(err)
				}
				// The first one wakes up, and goes on from where it was.
				m.Before = nil
				if err := m.Finish(ctx); (err != nil) != (want == 0) {
					t.Errorf("the first coordinator went on with %v", err)
				}
				if got := d.in(5); got != want {
					t.Errorf("section 5 is in Set %d, want %d", got, want)
				}
				for uid := range seq.UID(20) {
					d.next(uid)
				}
				stop()
				if d.mover(m.Move.ID) != nil {
					t.Error("the move is still open")
				}
			})
		}
	}
}

// Several coordinators move sections between three Sets, end anywhere, and finish or take back each other's
// moves. Meanwhile nodes die and others start. No number is handed out twice, and in the end every section
// is served.
func TestMovesByManyCoordinatorsWithNodesThatDie(t *testing.T) {
	d := newDivision(t, 3, user16())
	stop := d.load(12)
	const coordinators, moves = 3, 6
	var wg sync.WaitGroup
	for c := range coordinators {
		r := rand.New(rand.NewPCG(uint64(c), 7))
		wg.Go(func() {
			for range moves {
				d.once(r)
			}
		})
	}
	wg.Go(func() {
		r := rand.New(rand.NewPCG(99, 7))
		for range 4 {
			f := r.IntN(len(d.fleets))
			n := d.fleets[f].at(d.addr(f, r.IntN(nodesOfASet)))
			n.kill()
			n = d.fleets[f].start(n.name, nodesOfASet, "")
			d.fleets[f].until("a killed node is ready again", func() bool { return n.Ready() == nil })
		}
	})
	wg.Wait()
	d.takeBackAll()
	for uid := range seq.UID(12) {
		d.next(uid)
	}
	if taken := stop(); taken == 0 {
		t.Error("nothing was taken")
	}
}

// once begins a move, or goes on with an open one, and may stop in its midst.
func (d *division) once(r *rand.Rand) {
	ctx, cancel := context.WithTimeout(d.t.Context(), waits.AtMost(d.t, patient))
	defer cancel()
	all, err := d.root.Map(ctx)
	if err != nil {
		d.t.Error(err)
		return
	}
	if len(all.Moves) == 0 || r.IntN(2) == 0 {
		first := seq.SectionID(r.IntN(13))
		to := r.IntN(len(d.fleets))
		move, err := d.root.Begin(ctx, d.name(to), []sets.Range{{First: first, Sections: uint32(1 + r.IntN(3))}})
		if err != nil {
			return // they are in several Sets, or there, or move already
		}
		all.Moves = append(all.Moves, move)
	}
	m := d.mover(all.Moves[r.IntN(len(all.Moves))].ID)
	if m == nil {
		return // it has ended
	}
	left := r.IntN(12)
	m.Before = func(string) error {
		if left--; left < 0 {
			return errStopped
		}
		return nil
	}
	if r.IntN(3) == 0 {
		err = m.TakeBack(ctx)
	} else {
		err = m.Finish(ctx)
	}
	for _, fine := range []error{nil, errStopped, setadmin.ErrRefused, setadmin.ErrTakenBack, setadmin.ErrSetDown} {
		if errors.Is(err, fine) {
			return
		}
	}
	d.t.Errorf("move %d: %v", m.Move.ID, err)
}

// Where a section goes on is known before its former Set has written down that it went.
func TestCallersAreSentOnBeforeTheRecordSaysThatTheSectionHasGone(t *testing.T) {
	d := newDivision(t, 2, user16())
	const uid = seq.UID(0)
	space := &d.fleets[0].stores.Mapping.Spaces[0]
	id := space.SectionOf(uid)
	d.next(uid)
	move := d.stopped(1, "finish", sets.Range{First: id, Sections: 1})
	owner := d.addr(1, 0)
	sent := 0
	for _, n := range d.fleets[0].all() {
		n.owner.Moves().SendOn(move, map[seq.SectionID]string{id: owner})
		got := n.Take(t.Context(), space, seq.PlainAll(uid), nil)
		var to *rpc.NotOwnerError
		if len(got.Faults) == 1 && errors.As(got.Faults[0].Err, &to) && to.Set == d.name(1) && to.Addr == owner {
			sent++
		} else if len(got.Faults) == 0 {
			t.Errorf("%s serves what it has sealed", n.name)
		}
	}
	if sent != 1 { // the one that stopped it
		t.Errorf("%d nodes send callers to %q", sent, owner)
	}
	d.next(uid)
	d.takeBackAll() // finds that it is over
	if in := d.in(id); in != 1 {
		t.Errorf("section %d is in Set %d", id, in)
	}
}

// All nodes of a Set start while the root is dead: they know of all Sets, and serve their own sections.
func TestASetThatStartsWhileTheRootIsDeadKnowsOfAllSets(t *testing.T) {
	d := newDivision(t, 2, user16())
	d.finish(d.begin(1, sets.Range{First: 4, Sections: 4}))
	newest := d.fleets[0].all()[0].sets.Map().Version
	d.until("the Set to have heard of the newest map, and to keep it", func() bool {
		for _, n := range d.fleets[1].all() {
			n.sets.Look()
		}
		group, err := d.fleets[1].stores.Group()
		if err != nil {
			t.Fatal(err)
		}
		first, err := documents.ReadSets(t.Context(), group, seq.NewSecret("").Session())
		return err == nil && first.Map.Version >= newest
	})
	for _, f := range d.fleets {
		for _, n := range f.all() {
			n.kill()
		}
	}
	var nodes []*node
	for k := range nodesOfASet {
		n := d.fleets[1].start(d.addr(1, k), nodesOfASet, "")
		if m := n.sets.Map(); m.Version < newest || len(m.Sets) != 2 || m.Sets[0].Name != sets.RootName || m.Index(0) != 0 || m.Index(4) != 1 {
			t.Errorf("%s begins with map %d of %v", n.name, m.Version, m.Sets)
		}
		nodes = append(nodes, n)
	}
	d.until("its sections to be served", func() bool {
		for _, n := range nodes {
			space := &d.fleets[1].stores.Mapping.Spaces[0]
			for uid := seq.UID(0); ; uid += 1 << seq.BlockBits {
				if space.SectionOf(uid) == 4 {
					if got := n.Take(t.Context(), space, seq.PlainAll(uid), nil); len(got.Faults) == 0 {
						return true
					}
					break
				}
			}
		}
		return false
	})
}
