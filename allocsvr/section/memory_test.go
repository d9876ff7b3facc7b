package section

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/ownership/ownershiptest"
	"github.com/seqsvr/seqsvr/internal/base/counters"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// bounded is a Table that owns all of its sections, whose counters may take so many bytes,
// and whose wall clock stands still. Nothing folds by itself.
type bounded struct {
	*owned
	folding *folding
	now     uint32
	budget  uint64
}

func newBounded(t *testing.T, sections uint32, budget uint64) *bounded {
	t.Helper()
	b := &bounded{owned: ownedOfAll(t, sections), now: 1_000_000, budget: budget}
	b.wall = func() time.Time { return time.Unix(int64(b.now), 0) }
	b.memory.budget = func() uint64 { return b.budget }
	b.folding = b.Table.folding()
	return b
}

// takeAll takes one number of each; the errors are by index.
func (b *bounded) takeAll(uids ...seq.UID) (firsts []uint64, faults map[int]error) {
	b.t.Helper()
	taking := b.Begin(b.c.space, seq.PlainAll(uids...), nil)
	taking.Settle(b.t.Context())
	faults = map[int]error{}
	for _, f := range taking.out.Faults {
		faults[f.Index] = f.Err
	}
	return taking.out.First, faults
}

// weighed checks that the accounted memory is the memory of the tables.
func (b *bounded) weighed() uint64 {
	b.t.Helper()
	sum := 0
	for i := range b.array {
		sum += b.array[i].table.Bytes()
	}
	if m := b.Memory(); m.Used != uint64(sum) {
		b.t.Fatalf("%d bytes are accounted, the tables take %d", m.Used, sum)
	}
	return uint64(sum)
}

func TestAFloodOfRandomUIDsStaysWithinTheMemoryAndSparesUIDsInUse(t *testing.T) {
	const budget = 4 << 20
	b := newBounded(t, 16, budget)
	rng := rand.New(rand.NewPCG(1, rand.Uint64()))
	last := map[seq.UID]uint64{} // of the flood, highest numbers
	regular := []seq.UID{7, 700_000, 1 << 40, 1<<40 + 1}
	for round := range 120 {
		uids := make([]seq.UID, 0, 4000)
		for range cap(uids) {
			uids = append(uids, seq.UID(rng.Uint64()))
		}
		again := 0
		for uid := range last { // some come again
			if again++; again > 10 {
				break
			}
			uids = append(uids, uid)
		}
		firsts, faults := b.takeAll(uids...)
		for i, first := range firsts {
			if faults[i] != nil || first <= last[uids[i]] {
				t.Fatalf("round %d: uid %d had %d and got %d, %v", round, uids[i], last[uids[i]], first, faults[i])
			}
			last[uids[i]] = first
		}
		firsts, faults = b.takeAll(regular...)
		for i, first := range firsts {
			if faults[i] != nil || first != uint64(round)+1 {
				t.Fatalf("round %d: uid %d, in use, got %d, %v, want %d", round, regular[i], first, faults[i], round+1)
			}
		}
		if b.now += 5; b.memory.above(foldFrom) {
			b.folding.fold(b.now)
		}
		if got := b.weighed(); got > budget {
			t.Fatalf("round %d: the counters take %d bytes, want at most %d", round, got, budget)
		}
	}
	if m := b.Memory(); m.Folded < 300_000 || m.Refused != 0 {
		t.Errorf("got %+v, want most blocks of the flood folded and none refused", m)
	}
	for id := range b.array {
		v, _ := b.Section(seq.SectionID(id)).View()
		if v.Base > 100 || v.Base > v.High || v.High > v.Confirmed {
			t.Errorf("section %d: base %d, high %d, confirmed %d", id, v.Base, v.High, v.Confirmed)
		}
	}
	b.c.Drop(b.epoch, "")
	b.weighed()
}

func TestUIDsInMemoryGoOnWhenItIsUsedUpAndOthersAreRefusedByName(t *testing.T) {
	b := newBounded(t, 4, 1<<20)
	var known []seq.UID
	for !b.memory.above(allUsed) {
		uid := seq.UID(rand.Uint64())
		if _, faults := b.takeAll(uid); len(faults) > 0 {
			t.Fatal(faults[0])
		}
		known = append(known, uid)
	}
	b.folding.fold(b.now) // nothing is cold
	fresh := seq.UID(rand.Uint64())
	firsts, faults := b.takeAll(known[0], fresh, known[1])
	if firsts[0] != 2 || firsts[2] != 2 || !errors.Is(faults[1], seq.ErrUIDMemory) || !errors.Is(faults[1], seq.ErrOverloaded) {
		t.Errorf("got %d, %v, want 2 and 2, and %v between them", firsts, faults, seq.ErrUIDMemory)
	}
	if _, err := b.Raise(t.Context(), b.c.space, seq.Plain(fresh), 50, Reach{}); !errors.Is(err, seq.ErrUIDMemory) {
		t.Errorf("a raise of a uid without a counter: got %v, want %v", err, seq.ErrUIDMemory)
	}
	if got, err := b.Raise(t.Context(), b.c.space, seq.Plain(known[0]), 50, Reach{}); err != nil || got != 50 {
		t.Errorf("a raise of a known uid: got %d, %v, want 50", got, err)
	}
	if got := b.Memory(); got.Refused != 2 || got.Folded != 0 {
		t.Errorf("got %+v, want 2 refused and nothing folded", got)
	}
	b.weighed()
	b.now += foldAges[len(foldAges)-1] + 1
	b.folding.fold(b.now)
	if _, faults := b.takeAll(fresh, known[0]); len(faults) > 0 {
		t.Errorf("once some are cold: %v", faults)
	}
	b.budget = 1
	b.takeAll(known[0])
	if b.budget = 0; b.memory.above(foldUntil) {
		t.Error("used up without a bound")
	}
}

func TestTheOldestAreFoldedFirstAndOfThoseTheLowest(t *testing.T) {
	b := newBounded(t, 1, 1<<20)
	take := func(uid seq.UID, n uint32) { b.Begin(b.c.space, seq.PlainAll(uid), []uint32{n}).Settle(t.Context()) }
	fill := func(from seq.UID, n uint32) { // a block for each UID
		for i := range seq.UID(7000) {
			take(from+i<<20, n)
		}
	}
	const old, older, high, far = 1 << 50, 2 << 50, 3 << 50, 4 << 50
	fill(old, 1)
	b.now += 700
	fill(older, 1) // younger by now, and as low
	b.now += 650
	fill(high, 50)
	take(far, 100_000)
	b.now += 650
	present := func(uid seq.UID) bool { _, exact := b.c.table.Get(uint64(uid)); return exact }
	check := func(what string, base uint64, low, next, top bool) {
		t.Helper()
		if b.c.table.Base() != base || present(low1(old)) != low || present(low1(high)) != next || present(far) != top {
			t.Errorf("%s: base %d, low %v, high %v, far %v are there; want %d, %v, %v, %v",
				what, b.c.table.Base(), present(low1(old)), present(low1(high)), present(far), base, low, next, top)
		}
	}
	b.budget = 3 * b.weighed()
	b.folding.fold(b.now)
	check("there is room", 0, true, true, true)
	b.budget = b.weighed() * 3 / 2
	b.folding.fold(b.now)
	check("the low ones are enough", 1, false, true, true)
	b.budget = b.weighed() / 2
	b.folding.fold(b.now)
	check("not enough", 50, false, false, true)
	if b.c.table.Len() != 1 {
		t.Errorf("%d uids are left, want the one far above", b.c.table.Len())
	}
}

// low1 is a UID that fill has taken from.
func low1(from seq.UID) seq.UID { return from + 5<<20 }

func TestNothingRepeatsWhenASectionIsHandedOverAfterAFold(t *testing.T) {
	b := newBounded(t, 1, 1<<20)
	const uids = 5000
	last := map[seq.UID]uint64{}
	for i := range seq.UID(uids) {
		taking := b.Begin(b.c.space, seq.PlainAll(i<<6), []uint32{uint32(i%9) + 1})
		last[i<<6] = taking.out.Last[0]
	}
	b.now += 100
	b.takeAll(0)
	last[0]++
	b.budget = b.weighed() / 4
	b.folding.fold(b.now)
	if m := b.Memory(); m.Folded < uids/2 {
		t.Fatalf("got %+v, want more folded", m)
	}
	_, sealed, _ := b.c.Seal()
	body := sealed.AppendBinary(nil)
	b.budget = 1
	b.now += 10_000
	b.folding.fold(b.now)
	if again := sealed.AppendBinary(nil); string(again) != string(body) {
		t.Error("a sealed table was folded")
	}
	b.c.Drop(b.epoch, "")
	table, err := counters.Decode(body)
	if err != nil {
		t.Fatal(err)
	}
	b.epoch.Round++
	b.c.Begin()
	b.c.Expect(b.epoch)
	if ok, err := b.Install(0, b.epoch, table, 1<<40, &ownershiptest.Lease{End: b.clock.Now() + ownerLease}); !ok || err != nil {
		t.Fatalf("install: %v, %v", ok, err)
	}
	b.budget = 0
	b.weighed()
	for uid, had := range last {
		now, _ := b.Current(t.Context(), b.c.space, seq.PlainAll(uid))
		if first, faults := b.takeAll(uid); len(faults) > 0 || first[0] <= had || now[0].Value < had || !now[0].UpperBound && now[0].Value != had {
			t.Fatalf("uid %d had %d, reads as %+v and got %d, %v", uid, had, now[0], first, faults)
		}
	}
	if first, _ := b.takeAll(0); first[0] != last[0]+2 {
		t.Errorf("a uid in use goes on with %d, want %d", first[0], last[0]+2)
	}
}

func TestALookFoldsOnceSixTenthsOfTheMemoryAreUsed(t *testing.T) {
	b := newBounded(t, 4, 1<<20)
	for !b.memory.above(foldUntil) {
		b.takeAll(seq.UID(rand.Uint64()))
	}
	b.now += 1000
	if b.folding.look(); b.Memory().Folded != 0 {
		t.Errorf("with %d %% used: %+v, want nothing folded", foldUntil, b.Memory())
	}
	for !b.memory.above(foldFrom) {
		b.takeAll(seq.UID(rand.Uint64()))
	}
	b.now += 1000
	if pause, m := b.folding.look(), b.Memory(); m.Folded == 0 || m.Used > m.Budget*foldUntil/100 || pause != foldLook {
		t.Errorf("with %d %% used: %+v, the next look after %v", foldFrom, m, pause)
	}
}

// The memory of exact sections cannot be folded, so it costs ordinary UIDs no numbers.
func TestIDsOfExactSpacesFoldNoCounters(t *testing.T) {
	b := newBounded(t, 4, 4<<20)
	uids := make([]seq.UID, 1000)
	for i := range uids {
		uids[i] = seq.UID(i) << 20
	}
	for round := range uint64(5) {
		firsts, faults := b.takeAll(uids...)
		for i, first := range firsts {
			if faults[i] != nil || first != round+1 {
				t.Fatalf("round %d: uid %d got %d, %v, want %d", round, uids[i], first, faults[i], round+1)
			}
		}
		b.memory.growLogs(1 << 20)
		b.now += 1000 // all are cold
		b.folding.look()
	}
	if m := b.Memory(); m.Folded != 0 || m.Logs != 5<<20 {
		t.Errorf("got %+v, want nothing folded", m)
	}
	if _, faults := b.takeAll(1<<40 + 7); len(faults) > 0 {
		t.Errorf("another UID: got %v", faults)
	}
}

// Neither the memory of an owner nor the memory of the stores is overrun before a reply says so.
func TestExactSectionsStayWithinTheirShareAndWhatTheStoresHaveLeft(t *testing.T) {
	m, space := &memory{budget: func() uint64 { return 10_000 }}, &seq.Space{Name: "orders"}
	room := quorum.Room{Store: "store-2", Left: 1000, Limit: 9000, Heard: 1}
	refused := func(want ...string) {
		t.Helper()
		err := m.full(space, func() quorum.Room { return room })
		if (err != nil) != (len(want) > 0) || err != nil && !errors.Is(err, seq.ErrExactMemory) {
			t.Fatalf("got %v, want %q", err, want)
		}
		for _, text := range want {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("got %q, want %q in it", err, text)
			}
		}
	}
	refused()
	m.growLogs(999)
	refused()
	m.growLogs(1)
	refused("space orders", "store store-2 has 1000 bytes left of 9000")
	room.Heard++ // the reply does not count them yet, or others left
	refused()
	room.Left, room.Heard = 0, 3
	refused("store-2 has 0 bytes")
	room.Left, room.Heard = math.MaxUint64, 4
	refused()
	m.growLogs(4000)
	refused("space orders", "5000 bytes of the 5000 beside uid-memory")
	if m.growLogs(-1); m.denied.Load() != 3 || m.above(1) {
		t.Errorf("%d refusals are counted, and logs fill counters: %v", m.denied.Load(), m.above(1))
	}
	refused()
	m.budget = unbounded
	m.growLogs(1 << 40)
	refused()
}
