package allocsvr

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/seqsvr/seqsvr/internal/ops/setadmin"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
	"github.com/seqsvr/seqsvr/storesvr/backup"
	"github.com/seqsvr/seqsvr/tests/kit/waits"
)

// restoreBump is above what the tests hand out after a backup.
const restoreBump = 1 << 20

// restore ends all nodes of a Set, puts its stores back to a backup in a new era, and starts the
// nodes again.
func (d *division) restore(i int, m backup.Manifest, change ...func(*backup.Restore)) {
	d.t.Helper()
	f := d.fleets[i]
	for _, n := range f.all() {
		n.kill()
	}
	order := backup.Restore{DataDir: d.t.TempDir(), Name: "a", Names: []string{"a", "b", "c"}, Cluster: m.Cluster, Era: f.stores.Ref.Era + 1, Bump: restoreBump}
	for _, f := range change {
		f(&order)
	}
	content, err := order.Content(m, d.backups[i])
	if err != nil {
		d.t.Fatal(err)
	}
	f.stores.Mapping = m.Mapping
	f.stores.Restore(order.Era, content.Registers, quorum.Floors{Section: content.Floors.Section})
	for k := range nodesOfASet {
		f.start(d.addr(i, k), nodesOfASet, "")
	}
	for k := range nodesOfASet {
		n := f.at(d.addr(i, k))
		d.until("a restored node is ready", func() bool { return n.Ready() == nil })
	}
}

// backup keeps what the stores of a Set have now.
func (d *division) backup(i int) backup.Manifest {
	if d.backups == nil {
		d.backups = map[int][]state{}
	}
	d.backups[i] = d.fleets[i].stores.Registers()
	return backup.Manifest{Cluster: d.fleets[i].stores.Ref.Cluster, Era: d.fleets[i].stores.Ref.Era, Mapping: d.fleets[i].stores.Mapping,
		Taken: time.Now(), LeaseBound: d.fleets[i].lease}
}

func (d *division) settle(i int) setadmin.Settled {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), waits.AtMost(d.t, patient))
	defer cancel()
	s := &setadmin.Settlement{Root: d.root, Conns: d, Set: d.name(i), Bump: restoreBump}
	got, err := s.Run(ctx)
	if err != nil {
		d.t.Fatal(err)
	}
	return got
}

// A Set is restored from a backup that is older than moves from it and to it, some of them under way. The
// other Sets' records settle which sections it has, and no number is handed out twice.
func TestARestoredSetServesOnlyWhatItIsSettledToHave(t *testing.T) {
	for restored := range 3 {
		t.Run(fmt.Sprint("Set ", restored), func(t *testing.T) {
			t.Parallel()
			d := newDivision(t, 3, user16())
			at := func(first, n int) sets.Range { return sets.Range{First: seq.SectionID(first), Sections: uint32(n)} }
			other, third := (restored+1)%3, (restored+2)%3
			// Of sections 0-9 the Set to be restored has all; of 10-15 the other.
			if restored != 0 {
				d.finish(d.begin(restored, at(0, 10)))
			}
			if other != 0 {
				d.finish(d.begin(other, at(10, 6)))
			}
			uids := seq.UID(60)
			for uid := range uids {
				d.next(uid)
			}
			manifest := d.backup(restored)
			d.finish(d.begin(other, at(0, 2)))     // gone since the backup
			d.finish(d.begin(third, at(2, 1)))     //
			d.finish(d.begin(restored, at(10, 2))) // come since the backup
			d.stopped(other, "open", at(3, 2))     // on their way, sealed there
			d.stopped(third, "finish", at(5, 1))   // on its way, and active there
			d.stopped(restored, "open", at(12, 1)) // on its way to it
			d.stopped(restored, "finish", at(13, 1))
			d.stopped(third, "seal", at(6, 1))      // noted alone
			goOn := d.late("open", other, at(7, 1)) // stopped here, and about to be opened there
			noted := d.begin(restored, at(14, 1))
			for uid := range uids {
				d.try(uid, 0)
			}
			d.restore(restored, manifest)
			served := 0
			for _, n := range d.fleets[restored].all() {
				s, _ := n.Census()
				served += s
			}
			if served > 0 {
				t.Errorf("%d sections are served before they were settled", served)
			}
			got := d.settle(restored)
			for id, want := range map[seq.SectionID]int{0: other, 1: other, 2: third, 3: restored, 5: third, 6: restored, 9: restored, 10: restored, 12: restored, 13: restored, 15: other} {
				if in := d.in(id); in != want {
					t.Errorf("section %d is in Set %d by the map, want %d (%+v)", id, in, want, got)
				}
			}
			for i, p := range d.places(9) {
				if i != restored && p.State != sets.Refused {
					t.Errorf("Set %d may still take section 9, which was settled elsewhere: it is %v", i, p)
				}
			}
			if err := goOn(); !errors.Is(err, setadmin.ErrRefused) {
				t.Errorf("a coordinator that is late opened a section that was settled since: %v", err)
			}
			// The noted move seals the section, which then has to stay where it is. If the map itself was
			// restored, the move cannot seal.
			want := setadmin.ErrRefused
			if restored == 0 {
				want = setadmin.ErrTakenBack
			}
			if err := noted.Finish(t.Context()); !errors.Is(err, want) {
				t.Errorf("a move to the restored Set, noted before that was settled: %v, want %v", err, want)
			}
			d.takeBackAll()
			if in := d.in(14); in != other {
				t.Errorf("section 14 is in Set %d by the map, want %d", in, other)
			}
			for uid := range uids {
				d.next(uid)
			}
			if again := d.settle(restored); len(again.Kept)+len(again.Given) > 0 {
				t.Errorf("settled again: %+v", again)
			}
			d.finish(d.begin(third, at(8, 1)))
			for uid := range uids {
				d.next(uid)
			}
		})
	}
}

// The root is lost twice, and restored both times from one backup. Its map has forgotten how far the
// section went in the other Set, and the settlement in between. The other Set remembers both, wherever the
// coordinator of that settlement ended.
func TestWhatASettledSetBeginsAboveIsKnownWithoutItsDisksAndItsMap(t *testing.T) {
	for _, at := range []func(proto.Message) bool{
		nil, // it comes to its end
		func(m proto.Message) bool { step, ok := m.(*pb.SetStepRequest); return ok && len(step.GetAbove()) > 0 },
		func(m proto.Message) bool {
			change, ok := m.(*pb.ChangeSetMapRequest)
			return ok && change.GetSettle() != nil
		},
	} {
		d := newDivision(t, 2, user16())
		const uid = seq.UID(0)
		section := d.fleets[0].stores.Mapping.Spaces[0].SectionOf(uid)
		one := sets.Range{First: section, Sections: 1}
		manifest := d.backup(0)
		d.finish(d.begin(1, one))
		d.next(uid)
		other := d.backup(1)
		d.restore(1, other) // and so it goes up by the bump there
		d.settle(1)
		d.next(uid)
		d.finish(d.begin(0, one))
		for range 3 {
			d.restore(0, manifest)
			if at != nil { // before it is noted where the section begins
				conns := cutConns{d, at}
				s := &setadmin.Settlement{Root: &setadmin.Root{Set: setadmin.NewSet(sets.RootName, d.addrs(0), conns)}, Conns: conns, Set: d.name(0), Bump: restoreBump}
				if _, err := s.Run(t.Context()); !errors.Is(err, errStopped) {
					t.Fatalf("cut off: %v", err)
				}
			}
			d.settle(0)
			d.next(uid) // the history shows that it rises
			d.stopped(1, "open", one)
			d.takeBackAll() // after which the other Set has refused once more
			d.next(uid)
		}
	}
}

// The root is restored from a backup that does not know of a move between two other Sets, which
// ended somewhere on its way. Once it is settled the move is finished, or taken back, by the map.
func TestASettledRootKnowsOfMovesBetweenOtherSets(t *testing.T) {
	for _, at := range []string{"seal", "stop", "open", "finish", "arrive"} {
		for _, back := range []bool{false, true} {
			t.Run(fmt.Sprintf("before %s, back %v", at, back), func(t *testing.T) {
				t.Parallel()
				d := newDivision(t, 3, user16())
				const uid = seq.UID(0)
				one := sets.Range{First: d.fleets[0].stores.Mapping.Spaces[0].SectionOf(uid), Sections: 1}
				d.finish(d.begin(1, one))
				d.next(uid)
				manifest := d.backup(0)
				d.stopped(2, at, one)
				d.restore(0, manifest)
				d.settle(0)
				if back {
					d.takeBackAll()
				} else {
					d.finishAll()
				}
				d.next(uid)
				want := 2
				if at == "seal" || back && (at == "stop" || at == "open") {
					want = 1
				}
				if in := d.in(one.First); in != want {
					t.Errorf("section %d is in Set %d, want %d", one.First, in, want)
				}
				to := 3 - want
				d.finish(d.begin(to, one)) // and may move once more
				d.next(uid)
			})
		}
	}
}

// A move's coordinator comes late to a section of another Set, after the root was restored and settled
// without the move. It never seals that section, because no other coordinator could finish the move.
func TestAMoveThatASettledRootDoesNotKnowSealsNothing(t *testing.T) {
	d := newDivision(t, 3, user16())
	const uid = seq.UID(0)
	one := sets.Range{First: d.fleets[0].stores.Mapping.Spaces[0].SectionOf(uid), Sections: 1}
	d.finish(d.begin(1, one))
	d.next(uid)
	manifest := d.backup(0)
	goOn := d.late("seal", 2, one)
	d.restore(0, manifest)
	d.settle(0)
	if err := goOn(); !errors.Is(err, setadmin.ErrTakenBack) {
		t.Errorf("the late move ends with %v, want %v", err, setadmin.ErrTakenBack)
	}
	d.next(uid)
	if in := d.in(one.First); in != 1 {
		t.Errorf("the section is in Set %d", in)
	}
}

// Two Sets are restored in turn, each from a backup that is older than the settlements. The settlements
// raise a section more often than each Set alone was restored, because each Set learns the other's numbers
// again each time.
func TestSetsThatAreRestoredInTurnDoNotForgetHowFarTheOthersWent(t *testing.T) {
	for last := range 2 { // that has the section in the end
		t.Run(fmt.Sprint("Set ", last), func(t *testing.T) {
			t.Parallel()
			d := newDivision(t, 2, user16())
			const uid = seq.UID(0)
			one := sets.Range{First: d.fleets[0].stores.Mapping.Spaces[0].SectionOf(uid), Sections: 1}
			if last == 1 {
				d.finish(d.begin(1, one))
			}
			d.next(uid)
			old := []backup.Manifest{d.backup(0), d.backup(1)}
			restored := func(i int) {
				d.restore(i, old[i])
				d.settle(i)
				d.next(uid) // the history shows that it rises
			}
			for range 2 {
				restored(last)
			}
			d.finish(d.begin(1-last, one))
			for range 3 {
				restored(1 - last)
			}
			d.finish(d.begin(last, one))
			restored(1 - last)
			restored(last)
		})
	}
}

// cutConns reach nodes until there is a message of that kind to be sent.
type cutConns struct {
	*division
	at func(proto.Message) bool
}

// At implements setadmin.Conns.
func (d cutConns) At(addr string) (grpc.ClientConnInterface, error) {
	conn, err := d.division.At(addr)
	return cutConn{conn, d.at}, err
}

type cutConn struct {
	grpc.ClientConnInterface
	at func(proto.Message) bool
}

// Invoke implements grpc.ClientConnInterface.
func (c cutConn) Invoke(ctx context.Context, method string, req, reply any, opts ...grpc.CallOption) error {
	if c.at(req.(proto.Message)) {
		return errors.Join(seq.ErrBadArgument, errStopped)
	}
	return c.ClientConnInterface.Invoke(ctx, method, req, reply, opts...)
}

// late begins a move whose coordinator pauses before a step, until it is told to go on.
func (d *division) late(before string, to int, r sets.Range) (goOn func() error) {
	d.t.Helper()
	m := d.begin(to, r)
	there, wake, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	m.Before = func(step string) error {
		if step == before {
			close(there)
			<-wake
		}
		return nil
	}
	ctx, cancel := context.WithTimeout(d.t.Context(), waits.AtMost(d.t, patient))
	d.t.Cleanup(cancel)
	go func() { done <- m.Finish(ctx) }()
	<-there
	return func() error { close(wake); return <-done }
}

// stopped begins a move whose coordinator ends before a step.
func (d *division) stopped(to int, before string, r sets.Range) (move uint64) {
	d.t.Helper()
	m := d.begin(to, r)
	m.Before = func(step string) error {
		if step == before {
			return errStopped
		}
		return nil
	}
	if err := m.Finish(d.t.Context()); err == nil {
		d.t.Fatalf("the move was not stopped before %s", before)
	}
	return m.Move.ID
}

// takeBackAll takes back all moves that are open.
func (d *division) takeBackAll() {
	d.t.Helper()
	d.endAll("taken back", (*setadmin.Mover).TakeBack)
}

// finishAll finishes all moves that are open.
func (d *division) finishAll() {
	d.t.Helper()
	d.endAll("finished", (*setadmin.Mover).Finish)
}

func (d *division) endAll(what string, end func(*setadmin.Mover, context.Context) error) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), waits.AtMost(d.t, patient))
	defer cancel()
	all, err := d.root.Map(ctx)
	if err != nil {
		d.t.Fatal(err)
	}
	for _, open := range all.Moves {
		if m := d.mover(open.ID); m != nil {
			d.until(fmt.Sprintf("move %d is %s", open.ID, what), func() bool { return end(m, ctx) == nil })
		}
	}
}

// limbo has a Set know of its sections what it does after a restore, and nothing else.
func (d *division) limbo(i int) {
	d.t.Helper()
	f := d.fleets[i]
	for _, n := range f.all() {
		n.kill()
	}
	g, err := f.stores.Group()
	if err != nil {
		d.t.Fatal(err)
	}
	defer g.Close()
	session := seq.NewSecret("").Session()
	doc, err := g.LoadDocument(d.t.Context(), session, seq.RecordRegister)
	if err != nil {
		d.t.Fatal(err)
	}
	record, err := sets.ParseRecord(doc.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	body, err := record.Restored().Encode()
	if err != nil {
		d.t.Fatal(err)
	}
	if _, err := g.SwapDocument(d.t.Context(), session, seq.RecordRegister, doc.Version, body); err != nil {
		d.t.Fatal(err)
	}
	for k := range nodesOfASet {
		n := f.start(d.addr(i, k), nodesOfASet, "")
		d.until("a node that has nothing is ready", func() bool { return n.Ready() == nil })
	}
}

// The sections of exact spaces never leave the root: a root that was restored keeps them.
func TestARestoredRootKeepsItsExactSections(t *testing.T) {
	d := newDivision(t, 2, user16(), seq.Space{Name: "exact", Sections: 2, Mode: seq.Exact})
	owned := func() (n int) {
		for _, node := range d.fleets[0].all() {
			for _, id := range node.Owned() {
				if id >= 16 {
					n++
				}
			}
		}
		return n
	}
	d.until("the root has its exact sections", func() bool { return owned() == 2 })
	d.limbo(1) // which says of them from then on that they have gone to the root
	if got := d.settle(1); len(got.Given[sets.RootName]) != 18 {
		t.Errorf("settled %+v, want all 18 sections given to the root", got)
	}
	d.limbo(0)
	if got := owned(); got > 0 {
		t.Errorf("%d exact sections are served before they were settled", got)
	}
	if got := d.settle(0); len(got.Kept) != 18 {
		t.Errorf("settled %+v, want all 18 sections kept", got)
	}
	d.until("the root has its exact sections again", func() bool { return owned() == 2 })
}

// place returns the place of a section in the record of a Set.
func (d *division) place(i int, id seq.SectionID) sets.Place {
	d.t.Helper()
	r, _, _, err := setadmin.NewSet(d.name(i), d.addrs(i), d).Record(d.t.Context())
	if err != nil {
		d.t.Fatal(err)
	}
	return r.At(id)
}

// A Set that was restored can neither activate nor refuse what it is to be settled of first.
func TestAMoveToASetInLimboStopsNothing(t *testing.T) {
	d := newDivision(t, 2, user16())
	const uid = seq.UID(0)
	one := sets.Range{First: d.fleets[0].stores.Mapping.Spaces[0].SectionOf(uid), Sections: 1}
	d.next(uid)
	d.limbo(1)
	if err := d.begin(1, one).Finish(t.Context()); !errors.Is(err, setadmin.ErrUnsettled) || !strings.Contains(err.Error(), "seqctl set settle --set set-1") {
		t.Errorf("got %v, want %v", err, setadmin.ErrUnsettled)
	}
	if p := d.place(0, one.First); p.State != sets.Active {
		t.Errorf("the section is %v in its Set", p)
	}
	d.takeBackAll()
	d.next(uid)
}

// The Set is restored during the move. Taking the move back fails, and the error says what to do first.
func TestAMoveWhoseSetIsInLimboIsTakenBackOnceThatIsSettled(t *testing.T) {
	d := newDivision(t, 2, user16())
	const uid = seq.UID(0)
	one := sets.Range{First: d.fleets[0].stores.Mapping.Spaces[0].SectionOf(uid), Sections: 1}
	d.next(uid)
	move := d.stopped(1, "open", one)
	d.limbo(1)
	for what, end := range map[string]func(*setadmin.Mover, context.Context) error{"finish": (*setadmin.Mover).Finish, "take back": (*setadmin.Mover).TakeBack} {
		if err := end(d.mover(move), t.Context()); !errors.Is(err, setadmin.ErrUnsettled) {
			t.Errorf("%s: %v, want %v", what, err, setadmin.ErrUnsettled)
		}
	}
	d.settle(1)
	d.takeBackAll()
	d.next(uid)
}

// A coordinator that is about to take a move back sleeps while another finishes it, the map loses
// the move, and the section goes on from the Set that it came to.
func TestALateTakeBackDoesNotReopenWhatWasActivated(t *testing.T) {
	for _, refused := range []bool{false, true} {
		d := newDivision(t, 3, user16())
		const uid = seq.UID(0)
		one := sets.Range{First: d.fleets[0].stores.Mapping.Spaces[0].SectionOf(uid), Sections: 1}
		d.finish(d.begin(1, one))
		d.next(uid)
		move := d.stopped(0, "open", one) // set-1 has stopped it
		late := d.mover(move)
		there, wake, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		late.Before = func(step string) error {
			if step == "refuse" {
				close(there)
				<-wake
			}
			return nil
		}
		go func() { done <- late.TakeBack(t.Context()) }()
		<-there
		m := d.mover(move)
		m.Before = func(step string) error {
			if step == "finish" {
				return errStopped
			}
			return nil
		}
		if err := m.Finish(t.Context()); !errors.Is(err, errStopped) {
			t.Fatal(err)
		}
		conn, err := d.At(d.addr(0, 0))
		if err != nil {
			t.Fatal(err)
		}
		arrived := &pb.ChangeSetMapRequest_Arrive{Move: move, Sections: []uint32{uint32(one.First)}, Ceilings: []uint64{0}}
		if _, err := pb.NewSetsClient(conn).ChangeMap(t.Context(), &pb.ChangeSetMapRequest{Change: &pb.ChangeSetMapRequest_Arrive_{Arrive: arrived}}); err != nil {
			t.Fatal(err)
		}
		d.finish(d.begin(2, one))
		d.next(uid)
		if refused { // a move back to the root that is not carried out
			d.stopped(0, "open", one)
			d.takeBackAll()
		}
		close(wake)
		if err := <-done; !errors.Is(err, setadmin.ErrTakenBack) {
			t.Errorf("refused since: %v: %v, want %v", refused, err, setadmin.ErrTakenBack)
		}
		if a, b := d.place(1, one.First), d.place(2, one.First); a.State == sets.Active || b.State != sets.Active {
			t.Errorf("refused since: %v: the section is %v in set-1, and %v in set-2", refused, a, b)
		}
		d.next(uid)
	}
}
