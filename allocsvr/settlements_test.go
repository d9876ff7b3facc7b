package allocsvr

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/seqsvr/seqsvr/allocsvr/section"
	"github.com/seqsvr/seqsvr/internal/ops/setadmin"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
	"github.com/seqsvr/seqsvr/storesvr/backup"
)

// of returns the section of a uid.
func (d *division) of(uid seq.UID) sets.Range {
	return sets.Range{First: d.fleets[0].stores.Mapping.Spaces[0].SectionOf(uid), Sections: 1}
}

// places returns the place of a section in the record of each Set.
func (d *division) places(id seq.SectionID) (out []sets.Place) {
	d.t.Helper()
	for i := range d.fleets {
		r, _, _, err := setadmin.NewSet(d.name(i), d.addrs(i), d).Record(d.t.Context())
		if err != nil {
			d.t.Fatal(err)
		}
		out = append(out, r.At(id))
	}
	return out
}

// agree fails unless the Sets agree on which of them has each section.
func (d *division) agree() {
	d.t.Helper()
	if err := d.root.Check(d.t.Context(), d); err != nil {
		d.t.Error(err)
	}
}

// A move's coordinator ended after the section was served at its new Set. A third Set, which has
// nothing to do with it, is restored and settled.
func TestASettlementLeavesMovesOpenThatHaveArrived(t *testing.T) {
	for _, back := range []bool{false, true} {
		d := newDivision(t, 3, user16())
		const uid = seq.UID(0)
		d.finish(d.begin(1, d.of(uid)))
		d.next(uid)
		manifest := d.backup(2)
		move := d.stopped(0, "finish", d.of(uid))
		d.restore(2, manifest)
		d.settle(2)
		if d.mover(move) == nil {
			t.Fatalf("move %d is not open any more, and the Sets say %v", move, d.places(d.of(uid).First))
		}
		if back {
			d.takeBackAll() // finds that it is over
		} else {
			d.finishAll()
		}
		d.next(uid)
		if in := d.in(d.of(uid).First); in != 0 {
			t.Errorf("the section is in Set %d by the map", in)
		}
		d.agree()
	}
}

// hookConns tell of each message before it is sent.
type hookConns struct {
	*division
	before func(proto.Message)
}

// At implements setadmin.Conns.
func (d hookConns) At(addr string) (grpc.ClientConnInterface, error) {
	conn, err := d.division.At(addr)
	return cutConn{conn, func(m proto.Message) bool { d.before(m); return false }}, err
}

func TestAMoveThatEndsWhileAnotherSetIsSettledStaysInTheMap(t *testing.T) {
	d := newDivision(t, 3, user16())
	const uid = seq.UID(0)
	d.next(uid)
	d.restore(2, d.backup(2))
	m := d.begin(1, d.of(uid))
	conns := hookConns{d, func(req proto.Message) {
		if c, ok := req.(*pb.ChangeSetMapRequest); ok && c.GetNumber() != nil { // all Sets were asked
			d.finish(m)
		}
	}}
	s := &setadmin.Settlement{Root: &setadmin.Root{Set: setadmin.NewSet(sets.RootName, d.addrs(0), conns)}, Conns: conns, Set: d.name(2), Bump: restoreBump}
	if _, err := s.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.next(uid)
	d.agree()
	d.finish(d.begin(2, d.of(uid)))
	d.next(uid)
	d.agree()
}

// mistake notes in the map that a section is in a Set, wherever it is.
func (d *division) mistake(id seq.SectionID, in uint32) {
	d.t.Helper()
	conn, err := d.At(d.addr(0, 0))
	if err != nil {
		d.t.Fatal(err)
	}
	m, err := d.root.Map(d.t.Context())
	if err != nil {
		d.t.Fatal(err)
	}
	wrong := &pb.ChangeSetMapRequest_Settle{Number: m.Last, Seen: map[uint32]uint64{uint32(id): m.LastOf(id)},
		Runs: []*pb.SetRun{{Sections: &pb.SectionRange{First: uint32(id), Sections: 1}, Set: in}}}
	if _, err := pb.NewSetsClient(conn).ChangeMap(d.t.Context(), &pb.ChangeSetMapRequest{Change: &pb.ChangeSetMapRequest_Settle_{Settle: wrong}}); err != nil {
		d.t.Fatal(err)
	}
}

// A map that is wrong about a section has it leave a Set that does not have it.
func TestAMoveFromWhereASectionIsNotIsTakenBack(t *testing.T) {
	d := newDivision(t, 3, user16())
	const uid = seq.UID(0)
	one := d.of(uid)
	d.finish(d.begin(1, one))
	d.next(uid)
	d.mistake(one.First, 0)
	move := d.begin(2, one)
	if err := move.Finish(t.Context()); !errors.Is(err, setadmin.ErrTakenBack) {
		t.Errorf("finished: %v", err)
	}
	if err := move.TakeBack(t.Context()); err != nil {
		t.Errorf("taken back: %v", err)
	}
	if d.mover(move.Move.ID) != nil {
		t.Error("it is open")
	}
	d.next(uid)
}

// All Sets are lost at once, and restored from backups that are older than moves in both directions and
// than settlements. Each section is served by one Set again, above every number that was handed out.
func TestSetsThatAreAllRestoredAreSettledInAnyOrder(t *testing.T) {
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}} {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			t.Parallel()
			d := newDivision(t, 3, user16())
			d.finish(d.begin(1, sets.Range{First: 0, Sections: 6}))
			d.finish(d.begin(2, sets.Range{First: 6, Sections: 4}))
			const uids = seq.UID(60 * 64)
			all := func() {
				for uid := seq.UID(0); uid < uids; uid += 61 {
					d.next(uid)
				}
			}
			all()
			manifests := []backup.Manifest{d.backup(0), d.backup(1), d.backup(2)}
			oldest := d.backups
			d.finish(d.begin(0, sets.Range{First: 0, Sections: 2})) // since the backups
			d.finish(d.begin(2, sets.Range{First: 2, Sections: 1}))
			d.stopped(0, "open", sets.Range{First: 3, Sections: 1})
			d.stopped(2, "finish", sets.Range{First: 12, Sections: 1})
			for _, i := range []int{1, 1, 2} { // which skips numbers that the backups do not know of
				d.restore(i, manifests[i])
				d.settle(i)
				all()
				d.backups = oldest
			}
			for i := range d.fleets {
				d.restore(i, manifests[i])
			}
			for _, i := range order {
				d.settle(i)
			}
			all()
			d.takeBackAll()
			d.agree()
			d.finish(d.begin(1, d.of(0)))
			all()
			for _, i := range order {
				if again := d.settle(i); len(again.Kept)+len(again.Given) > 0 {
					t.Errorf("settled again: %+v", again)
				}
			}
		})
	}
}

// Both coordinators see all in limbo in both Sets.
func TestSetsThatAreAllRestoredAreSettledAtOnce(t *testing.T) {
	d := newDivision(t, 2, user16())
	d.finish(d.begin(1, sets.Range{First: 0, Sections: 8}))
	const uids = seq.UID(30 * 64)
	all := func() {
		for uid := seq.UID(0); uid < uids; uid += 61 {
			d.next(uid)
		}
	}
	all()
	for i := range 2 {
		d.restore(i, d.backup(i))
	}
	var wg sync.WaitGroup
	for i := range 2 {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), patient)
			defer cancel()
			for {
				_, err := (&setadmin.Settlement{Root: d.root, Conns: d, Set: d.name(i), Bump: restoreBump}).Run(ctx)
				if err == nil {
					return
				}
				if ctx.Err() != nil {
					t.Errorf("Set %s: %v", d.name(i), err)
					return
				}
			}
		})
	}
	wg.Wait()
	for i := range 2 {
		d.settle(i)
	}
	all()
	d.agree()
	if in := d.in(0); in != 1 {
		t.Errorf("section 0 is in Set %d, and was in Set 1 by the map", in)
	}
}

// Each restore and each settlement skips numbers. When all disks are lost no Set knows how many.
func TestWhatSettlementsSkippedIsNotHandedOutWhenAllSetsAreLost(t *testing.T) {
	d := newDivision(t, 2, user16())
	const uid = seq.UID(0)
	d.finish(d.begin(1, d.of(uid)))
	d.next(uid)
	manifests := []backup.Manifest{d.backup(0), d.backup(1)}
	for i := range 2 {
		in := 1 - i
		for range 3 {
			d.restore(in, manifests[in])
			d.settle(in)
			d.next(uid)
		}
		d.finish(d.begin(i, d.of(uid)))
		d.next(uid)
	}
	for i := range 2 {
		d.restore(i, manifests[i])
	}
	for i := range 2 {
		d.settle(i)
	}
	d.next(uid)
	d.agree()
}

// A coordinator has asked all Sets, and by the map that it knows the section is to stay in Set 1.
// Meanwhile another settles it as the root's, by a newer one.
func TestASettlementThatIsLateKeepsNothingThatAnotherHas(t *testing.T) {
	d := newDivision(t, 2, user16())
	const uid = seq.UID(0)
	one := d.of(uid)
	d.finish(d.begin(1, one))
	d.next(uid)
	for i := range 2 {
		d.restore(i, d.backup(i))
	}
	var once sync.Once
	conns := hookConns{d, func(req proto.Message) {
		if c, ok := req.(*pb.ChangeSetMapRequest); ok && c.GetNumber() != nil { // all Sets were asked
			once.Do(func() {
				d.mistake(one.First, 0)
				d.settle(0)
			})
		}
	}}
	s := &setadmin.Settlement{Root: &setadmin.Root{Set: setadmin.NewSet(sets.RootName, d.addrs(0), conns)}, Conns: conns, Set: d.name(1), Bump: restoreBump}
	if _, err := s.Run(t.Context()); !errors.Is(err, seq.ErrMoveOver) {
		t.Errorf("it ends with %v", err)
	}
	d.settle(1)
	d.next(uid)
	d.agree()
	if in := d.in(one.First); in != 0 {
		t.Errorf("the section is in Set %d by the map", in)
	}
}

// The root is restored while a section is on its way from it, and settled. The coordinator of the move goes on
// when the settlement has its number and has asked no Set to refuse the section: the section is served where it
// arrived.
func TestASectionThatArrivesWhileItsSetIsSettledStaysThere(t *testing.T) {
	d := newDivision(t, 2, user16())
	const uid = seq.UID(0)
	one := d.of(uid)
	d.next(uid)
	manifest := d.backup(0)
	goOn := d.late("open", 1, one)
	d.restore(0, manifest)
	var once sync.Once
	conns := hookConns{d, func(req proto.Message) {
		if c, ok := req.(*pb.ChangeSetMapRequest); ok && c.GetNumber() != nil {
			once.Do(func() { _ = goOn() }) // the map is of before the move, so its last step fails
		}
	}}
	s := &setadmin.Settlement{Root: &setadmin.Root{Set: setadmin.NewSet(sets.RootName, d.addrs(0), conns)}, Conns: conns, Set: d.name(0), Bump: restoreBump}
	if _, err := s.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p := d.place(1, one.First); p.State != sets.Active {
		t.Errorf("the other Set has the section as %v", p)
	}
	d.next(uid)
	if in := d.in(one.First); in != 1 {
		t.Errorf("the section is in Set %d", in)
	}
	d.agree()
}

// A Set gave a section to another that never took it.
func TestASectionThatNoSetHasIsTakenBySettling(t *testing.T) {
	for i := range 2 {
		d := newDivision(t, 2, user16())
		const uid = seq.UID(0)
		one := d.of(uid)
		d.finish(d.begin(1, one))
		d.next(uid)
		d.limbo(1)
		conn, err := d.At(d.addr(1, 0))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := pb.NewSetsClient(conn).Step(t.Context(), &pb.SetStepRequest{Op: pb.SetOp_SET_OP_GIVE, Move: 1 << 20, To: sets.RootName,
			Sections: []*pb.SectionRange{{First: uint32(one.First), Sections: 1}}}); err != nil {
			t.Fatal(err)
		}
		if got := d.settle(i); len(got.Kept) == 0 {
			t.Errorf("settled %+v", got)
		}
		d.next(uid)
		d.settle(1)
		if in := d.in(one.First); in != i {
			t.Errorf("the section is in Set %d by the map, want %d", in, i)
		}
		d.agree()
	}
}

// One section is near the end of its numbers. Its Set is restored twice.
func TestASectionNearItsEndSparesItsNeighbours(t *testing.T) {
	d := newDivision(t, 2, user16())
	d.finish(d.begin(1, all16))
	const near, far = seq.UID(0), seq.UID(64 * 7)
	if d.of(near) == d.of(far) {
		t.Fatal("one section")
	}
	d.next(near)
	d.next(far)
	d.until("raised", func() bool {
		for _, n := range d.fleets[1].all() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			_, err := n.Table.Raise(ctx, &d.fleets[0].stores.Mapping.Spaces[0], seq.PlainAll(near).At(0), uint64(seq.MaxSeq)-1000, section.Reach{Force: true})
			cancel()
			if err == nil {
				return true
			}
		}
		return false
	})
	d.finish(d.begin(0, all16)) // so that the other Set has something to say
	manifest := d.backup(0)
	for range 2 {
		d.restore(0, manifest)
		d.settle(0)
		if got := d.next(far); got > 20*restoreBump {
			t.Errorf("the neighbour goes on at %d", got)
		}
	}
}

// A restored Set is settled, and a space is added.
func TestASpaceThatIsAddedAfterASettlementIsServed(t *testing.T) {
	d := newDivision(t, 2, user16())
	d.restore(0, d.backup(0))
	d.settle(0)
	d.extend(0, "orders")
	owned := func(i int) (n int) {
		for _, n1 := range d.fleets[i].all() {
			for _, id := range n1.Owned() {
				if id >= 16 {
					n++
				}
			}
		}
		return n
	}
	d.until("the root serves it", func() bool { return owned(0) == 4 })
	d.restore(1, d.backup(1))
	d.settle(1) // before it knows of the space
	if r, _, _, err := setadmin.NewSet(d.name(1), d.addrs(1), d).Record(t.Context()); err != nil || r.At(16).State != sets.Limbo {
		t.Errorf("a space that others know: %v, %v", r.At(16), err)
	}
	d.extend(1, "orders")
	d.settle(1)
	if got := d.places(16); got[0].State != sets.Active || got[1].State != sets.Moved {
		t.Errorf("the Sets say %v", got)
	}
	if got := d.places(20); got[0].State != sets.Active || got[1].State != sets.Inactive {
		t.Errorf("of what is added next the Sets say %v", got)
	}
	d.agree()
}

// A space was added after the backup and has handed out numbers. Once it is added again, before the
// restored Set is settled or after it, it goes on above them.
func TestASpaceThatTheBackupOfASetLacksGoesOnAboveItsNumbers(t *testing.T) {
	for _, settledFirst := range []bool{true, false} {
		d := newDivision(t, 2, user16())
		manifest := d.backup(0)
		take := func() (got uint64) {
			t.Helper()
			d.until("a number of the space", func() bool {
				for _, n := range d.fleets[0].all() {
					ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
					taken := n.Take(ctx, &d.fleets[0].stores.Mapping.Spaces[1], seq.PlainAll(7), nil)
					cancel()
					if len(taken.Faults) == 0 {
						got = taken.First[0]
						return true
					}
				}
				return false
			})
			return got
		}
		d.extend(0, "orders")
		if got := take(); got != 1 {
			t.Errorf("the space begins at %d", got)
		}
		last := take()
		d.restore(0, manifest)
		if settledFirst {
			d.settle(0)
		}
		d.extend(0, "orders")
		d.settle(0)
		if got := take(); got <= last || got <= restoreBump {
			t.Errorf("settled first: %t: the space goes on at %d, after %d and a bump of %d", settledFirst, got, last, restoreBump)
		}
		d.agree()
	}
}
