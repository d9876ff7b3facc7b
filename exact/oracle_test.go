package exact

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/seqsvr/seqsvr/seq"
)

// oracle is a section as maps keep it, with the ids as text and the record of each: what State and Owner
// must answer like.
type oracle struct {
	window, time    int64
	at              Position
	last            map[seq.UID]uint64
	ids             map[request]oracleID
	committed, sent uint64 // indexes of records, at an owner
	round           uint64
}

type oracleID struct {
	first, index uint64
	count        uint32
	until        int64
}

func newOracle(window int64) *oracle {
	return &oracle{window: window, last: map[seq.UID]uint64{}, ids: map[request]oracleID{}}
}

func (o *oracle) clone() *oracle {
	c := *o
	c.last, c.ids = maps.Clone(o.last), maps.Clone(o.ids)
	return &c
}

// take takes in records that follow, all or none.
func (o *oracle) take(records []Record) bool {
	c := o.clone()
	for i := range records {
		if !c.follows(&records[i]) {
			return false
		}
		c.apply(&records[i])
	}
	*o = *c
	return true
}

func (o *oracle) follows(r *Record) bool {
	if r.after() != o.at || r.Epoch.Less(o.at.Epoch) || r.Time < o.time || len(r.ID) > MaxID {
		return false
	}
	last := o.last[r.UID]
	switch r.Kind {
	case Take:
		got, ok := o.ids[request{r.UID, r.ID}]
		return r.First == last+1 && r.Count > 0 && r.Count <= seq.MaxCount && last+uint64(r.Count) <= uint64(seq.MaxSeq) &&
			(r.ID == "" || !ok || got.until <= r.Time)
	case Raise:
		return r.First > last && r.First <= uint64(seq.MaxSeq)
	case Began, Passed:
		return true
	}
	return false
}

func (o *oracle) apply(r *Record) {
	o.at, o.time = r.at(), r.Time
	maps.DeleteFunc(o.ids, func(_ request, got oracleID) bool { return got.until <= o.time })
	switch r.Kind {
	case Take:
		o.last[r.UID] = r.First + uint64(r.Count) - 1
		if r.ID != "" {
			o.ids[request{r.UID, r.ID}] = oracleID{first: r.First, index: r.Index, count: r.Count, until: max(r.Time, r.Sent) + o.window}
		}
	case Raise:
		o.last[r.UID] = r.First
	case Began, Passed:
	}
}

// has is the batch with which W stores have a record.
func (o *oracle) has(index uint64) uint64 {
	switch {
	case index <= o.committed:
		return 0
	case index <= o.sent && o.round > 0:
		return o.round
	}
	return o.round + 1
}

// same holds a state against the oracle, for all requests that were ever made.
func (o *oracle) same(s *State, made map[request]bool) error {
	if s.at != o.at || s.time != o.time || s.UIDs() != len(o.last) {
		return fmt.Errorf("at %v, %d with %d uids, want %v, %d, %d", s.at, s.time, s.UIDs(), o.at, o.time, len(o.last))
	}
	for uid, last := range o.last {
		if got := s.Last(uid); got != last {
			return fmt.Errorf("uid %d at %d, want %d", uid, got, last)
		}
	}
	for r := range made {
		want, kept := o.ids[r]
		in, at := s.ids.find(r, s.time)
		var got assigned
		if in != nil {
			got = in.got(at)
		}
		if there := in != nil && got.until > s.time; there != kept {
			return fmt.Errorf("request %v: there %v at %d, want %v", r, there, s.time, kept)
		}
		if kept && got != (assigned{first: want.first, count: want.count, until: want.until}) {
			return fmt.Errorf("request %v has %+v, want %+v", r, got, want)
		}
	}
	return o.lean(s)
}

// lean holds what the state keeps against what it should: no bucket whose time is over, no request for
// longer than a part of the window, each once, and all of them counted.
func (o *oracle) lean(s *State) error {
	count, size, before, seen := 0, 0, s.time, map[request]bool{}
	for i := range s.ids.buckets {
		b := &s.ids.buckets[i]
		if b.end <= before || b.count == 0 {
			return fmt.Errorf("bucket %d of %d ends at %d, after %d", i, len(s.ids.buckets), b.end, before)
		}
		before, size = b.end, size+b.bytes()
		for in := NewReader(b.texts); in.Left() > 0; count++ {
			r, until := in.request()
			if q := (request{r.UID, r.ID}); seen[q] || until > b.end || until <= b.end-max(1, o.window/parts) {
				return fmt.Errorf("bucket %d has %v twice, or until %d, in what ends at %d", i, q, until, b.end)
			}
			seen[request{r.UID, r.ID}] = true
		}
	}
	if count != s.ids.count || size > s.ids.bytes || s.ids.bytes > size+cap(s.ids.buckets)*200 {
		return fmt.Errorf("%d ids in %d bytes, and it says %d in %d", count, size, s.ids.count, s.ids.bytes)
	}
	return nil
}

// oracleRun drives an owner, copies and oracles of them with what is drawn.
type oracleRun struct {
	t      *testing.T
	seed   uint64
	rnd    *rand.Rand
	window int64
	now    int64
	made   map[request]bool
	owner  *Owner
	of     *oracle  // of the owner
	logged []Record // all
	copies [3]*Copy // the last one is read back from its encoding now and then
	each   [3]int   // of logged, how many it has
	behind [3]*oracle
	seen   map[string]int
}

func (d *oracleRun) failf(format string, args ...any) {
	d.t.Helper()
	d.t.Fatalf("seed %d at %d: %s", d.seed, d.now, fmt.Sprintf(format, args...))
}

// The tables answer like maps after any records, at any times, with any ids, over copies and takeovers.
func TestTablesAnswerAsMaps(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(60) {
		answerAsMaps(t, seed, seen)
	}
	t.Log(seen)
	for _, what := range []string{"new", "replayed", "conflict", "expired", "used again", "read back", "takeover", "refused", "dropped"} {
		if seen[what] == 0 {
			t.Errorf("no run had anything %s", what)
		}
	}
}

func FuzzTablesAnswerAsMaps(f *testing.F) {
	f.Fuzz(func(t *testing.T, seed uint64) { answerAsMaps(t, seed, map[string]int{}) })
}

func answerAsMaps(t *testing.T, seed uint64, seen map[string]int) {
	t.Helper()
	d := &oracleRun{t: t, seed: seed, rnd: rand.New(rand.NewPCG(seed, 11)), now: 1_000_000, made: map[request]bool{}, seen: seen}
	d.window = []int64{100, 1000, 5003, 600_000}[d.rnd.IntN(4)]
	d.of = newOracle(d.window)
	for i := range d.copies {
		d.copies[i], d.behind[i] = NewCopy(d.window), newOracle(d.window)
	}
	d.takeover(&State{})
	for range 150 {
		d.step()
	}
}

func (d *oracleRun) takeover(found *State) {
	epoch := seq.Epoch{Round: found.at.Epoch.Round + 1, Session: 1}
	d.of.committed, d.of.sent, d.of.round = 0, found.at.Index, 0
	var err error
	if d.owner, err = NewOwner(Config{Window: d.window, Bound: d.window}, epoch, found, d.now); err != nil {
		d.failf("takeover: %v", err)
	}
	d.gathered()
}

// gathered takes in with the oracle what the owner has added.
func (d *oracleRun) gathered() {
	for len(d.logged) < int(d.owner.state.at.Index) {
		r := d.owner.pending[len(d.owner.pending)-(int(d.owner.state.at.Index)-len(d.logged))]
		if !d.of.take([]Record{r}) {
			d.failf("the oracle refuses %+v", r)
		}
		d.logged = append(d.logged, r)
	}
	if err := d.of.same(d.owner.state, d.made); err != nil {
		d.failf("owner: %v", err)
	}
}

func (d *oracleRun) step() {
	switch d.rnd.IntN(14) {
	case 0, 1, 2:
		d.now += d.rnd.Int64N(d.window/8 + 1)
	case 3:
		d.now += d.window + d.rnd.Int64N(d.window)
	case 4:
		d.now += d.window - d.rnd.Int64N(d.window/10)
	case 5:
		if before := d.owner.state.IDs(); d.owner.Pass(d.now) {
			if d.owner.state.IDs() >= before {
				d.failf("time was passed, and nothing dropped")
			}
			d.seen["dropped"]++
		}
		d.gathered()
	case 6:
		if _, ok := d.owner.Begin(); ok {
			d.of.round++
			d.of.sent = d.of.at.Index
		}
	case 7:
		if d.owner.flying {
			d.owner.Committed()
			d.of.committed = d.of.sent
		}
	case 8, 9:
		d.copy(d.rnd.IntN(len(d.copies)))
	case 10:
		if d.rnd.IntN(4) == 0 { // the owner is gone, and what it had travels as a copy
			s, err := ReadState(d.owner.State().AppendTo(nil), d.window)
			if err != nil {
				d.failf("%v", err)
			}
			d.takeover(s)
			d.seen["takeover"]++
		}
	case 11:
		_, _ = d.owner.Raise(d.uid(), uint64(d.rnd.IntN(3000)), d.now) // refused if it is lower
		d.gathered()
	}
	for range d.rnd.IntN(12) {
		d.ask()
	}
}

func (d *oracleRun) uid() seq.UID { return []seq.UID{1, 2, 3, 1 << 40, 7 << 50}[d.rnd.IntN(5)] }

// ask takes for a request, or looks it up, and says what maps would answer.
func (d *oracleRun) ask() {
	q := request{d.uid(), fmt.Sprint("r", d.rnd.IntN(30))}
	d.made[q] = true
	if got, ok := d.of.ids[q]; d.rnd.IntN(4) == 0 {
		want := Answer{}
		if ok {
			want = Answer{Round: d.of.has(got.index), First: got.first, Count: got.count, Replayed: true}
		} else {
			want.Round = d.of.round + 1
		}
		if a := d.owner.Lookup(q.uid, q.id); a != want {
			d.failf("lookup of %v: got %+v, want %+v", q, a, want)
		}
		return
	}
	count := 1 + d.rnd.Uint32N(2)
	time := max(d.of.time, d.now)
	first := time + []int64{0, 0, d.rnd.Int64N(d.window), -d.rnd.Int64N(2 * d.window)}[d.rnd.IntN(4)]
	var want Answer
	var err error
	switch got, ok := d.of.ids[q]; {
	case ok && got.until > time:
		if want = (Answer{Round: d.of.has(got.index), First: got.first, Count: got.count, Replayed: true}); got.count != count {
			err = ErrConflict
			d.seen["conflict"]++
		}
		d.seen["replayed"]++
	case first+d.window <= time:
		err = ErrExpired
		d.seen["expired"]++
	default:
		want = Answer{Round: d.of.round + 1, First: d.of.last[q.uid] + 1, Count: count}
		d.seen["new"]++
		if in, _ := d.owner.state.ids.find(q, time); in != nil {
			d.seen["used again"]++
		}
	}
	a, got := d.owner.Take(q.uid, count, q.id, first, d.now)
	if a != want || !errors.Is(got, err) {
		d.failf("take of %v, %d first sent at %d: got %+v, %v, want %+v, %v", q, count, first, a, got, want, err)
	}
	d.gathered()
}

// copy brings some records to a copy, in batches of any size, and spoilt ones before.
func (d *oracleRun) copy(i int) {
	c, of := d.copies[i], d.behind[i]
	for d.each[i] < len(d.logged) {
		n := 1 + d.rnd.IntN(min(60, len(d.logged)-d.each[i]))
		records := d.logged[d.each[i] : d.each[i]+n]
		spoilt := append([]Record(nil), records...)
		switch r := &spoilt[d.rnd.IntN(n)]; d.rnd.IntN(7) {
		case 0:
			r.Time -= d.rnd.Int64N(d.window)
		case 1:
			r.First += d.rnd.Uint64N(2)
		case 2:
			r.UID = d.uid()
		case 3:
			r.ID = fmt.Sprint("r", d.rnd.IntN(30))
			d.made[request{r.UID, r.ID}] = true
		case 4:
			r.Index++
		case 5:
			r.Kind = Kind(d.rnd.IntN(6))
		}
		restored, other := Restore(c.State(), d.window), of.clone()
		err, want := restored.Take(spoilt), other.take(spoilt)
		if (err == nil) != want {
			d.failf("copy %d: got %v, and maps say %v of %+v", i, err, want, spoilt)
		}
		if err := other.same(restored.state, d.made); err != nil {
			d.failf("copy %d, of other records: %v", i, err)
		}
		if err != nil {
			d.seen["refused"]++
		}
		if err, want := c.Take(records), of.take(records); err != nil || !want {
			d.failf("copy %d: %v, and maps say %v", i, err, want)
		}
		d.each[i] += n
	}
	if err := of.same(c.state, d.made); err != nil {
		d.failf("copy %d: %v", i, err)
	}
	// Equal records make equal copies, whatever batches they came in, and over their encoding.
	text := c.state.AppendTo(nil)
	if got := d.owner.state.AppendTo(nil); !bytes.Equal(text, got) {
		d.failf("copy %d encodes as %x, and the owner as %x", i, text, got)
	}
	if i == len(d.copies)-1 {
		s, err := ReadState(text, d.window)
		if err != nil || s.Describe() != c.state.Describe() || !bytes.Equal(s.AppendTo(nil), text) {
			d.failf("read back: got %s, %v, want %s", s.Describe(), err, c.state.Describe())
		}
		d.copies[i] = Restore(s, d.window)
		d.seen["read back"]++
	}
}
