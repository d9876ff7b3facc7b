package exact

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/seqsvr/seqsvr/seq"
)

const (
	simWindow = 400 // ms
	simBound  = 50
	simUIDs   = 3
)

// simStore is one replica with a disk. Requests change its memory; a commit makes it
// durable and lets the answers go; a crash takes it back to the disk and drops them.
type simStore struct {
	promised, promisedOnDisk seq.Epoch
	mem, disk                *Copy
	offset                   int64
	out                      []func()
}

func (s *simStore) commit() {
	s.disk = Restore(s.mem.State(), simWindow)
	s.promisedOnDisk = s.promised
	for _, answer := range s.out {
		answer()
	}
	s.out = nil
}

func (s *simStore) crash() {
	s.mem = Restore(s.disk.State(), simWindow)
	s.promised, s.out = s.promisedOnDisk, nil
}

func (s *simStore) promise(e seq.Epoch) bool {
	if e.Less(s.promised) {
		return false
	}
	s.promised = e
	return true
}

// simRequest is one request of a client, however often it is sent.
type simRequest struct {
	uid    seq.UID
	id     string
	count  uint32
	first  int64
	got    *Answer // the first answer
	repeat int
}

// simOwner is one allocator with at most one epoch at a time.
type simOwner struct {
	name   seq.Session
	offset int64
	epoch  seq.Epoch // zero if it does not try

	promises map[int]bool   // while it looks for W
	copies   map[int]*State // likewise, once it has W promises and is reading
	reading  bool
	owner    *Owner
	batch    *Batch
	acks     map[int]bool
	serving  bool
	waiting  []simWait
}

type simWait struct {
	round uint64
	tell  func()
}

type simMessage struct {
	at int
	do func()
}

type sim struct {
	t      *testing.T
	seed   uint64
	rnd    *rand.Rand
	step   int
	now    int64
	w      int
	round  uint64
	stores []*simStore
	owners []*simOwner
	mail   []simMessage

	requests                                             []*simRequest
	numbers                                              map[seq.UID]map[uint64]*simRequest // answered
	told                                                 map[seq.UID]uint64                 // highest number that was answered
	log                                                  map[Position]Record                // all that any owner made
	answers, replays, expired, takeovers, fills, unknown int
}

func newSim(t *testing.T, seed uint64, n int) *sim {
	s := &sim{t: t, seed: seed, rnd: rand.New(rand.NewPCG(seed, 7)), now: 1_000_000, w: n/2 + 1,
		numbers: map[seq.UID]map[uint64]*simRequest{}, told: map[seq.UID]uint64{}, log: map[Position]Record{}}
	for range n {
		s.stores = append(s.stores, &simStore{mem: NewCopy(simWindow), disk: NewCopy(simWindow), offset: s.skew()})
	}
	for i := range 3 {
		s.owners = append(s.owners, &simOwner{name: seq.Session(i + 1), offset: s.skew()})
	}
	return s
}

func (s *sim) skew() int64 { return s.rnd.Int64N(simBound) - simBound/2 }

func (s *sim) failf(format string, args ...any) {
	s.t.Helper()
	s.t.Fatalf("seed %d step %d: %s", s.seed, s.step, fmt.Sprintf(format, args...))
}

// send delivers later, perhaps never, perhaps twice.
func (s *sim) send(do func()) {
	if s.rnd.IntN(12) == 0 {
		return
	}
	s.mail = append(s.mail, simMessage{s.step + 1 + s.rnd.IntN(12), do})
	if s.rnd.IntN(12) == 0 {
		s.mail = append(s.mail, simMessage{s.step + 1 + s.rnd.IntN(120), do})
	}
}

// ask sends to a store, which answers after its next commit, if ever.
func (s *sim) ask(i int, do func(*simStore) func()) {
	s.send(func() {
		st := s.stores[i]
		if answer := do(st); answer != nil {
			st.out = append(st.out, func() { s.send(answer) })
		}
	})
}

func (s *sim) deliver() {
	left := s.mail[:0]
	var due []simMessage
	for _, m := range s.mail {
		if m.at <= s.step {
			due = append(due, m)
		} else {
			left = append(left, m)
		}
	}
	s.mail = left
	s.rnd.Shuffle(len(due), func(i, j int) { due[i], due[j] = due[j], due[i] })
	for _, m := range due {
		m.do()
	}
}

// run lets things happen.
func (s *sim) run(steps int) {
	for range steps {
		s.step++
		s.now += s.rnd.Int64N(3)
		s.deliver()
		for _, st := range s.stores {
			switch n := s.rnd.IntN(400); {
			case n < 130:
				st.commit()
			case n < 131:
				st.crash()
			}
		}
		for _, o := range s.owners {
			s.act(o)
		}
		if len(s.requests) < 4000 && s.rnd.IntN(2) == 0 {
			s.request()
		}
	}
}

// act is what an owner does of its own.
func (s *sim) act(o *simOwner) {
	switch n := s.rnd.IntN(600); {
	case n < 1:
		s.drop(o) // it crashes, or gives up
	case n < 5 && o.epoch.IsZero():
		s.take(o)
	case o.serving && n < 20:
		o.owner.Pass(s.now + o.offset)
	case n < 60 && o.batch != nil: // again, unchanged
		s.post(o)
	}
	if o.serving && o.batch == nil {
		if b, ok := o.owner.Begin(); ok {
			s.begin(o, b)
		}
	}
}

func (s *sim) drop(o *simOwner) {
	*o = simOwner{name: o.name, offset: o.offset}
}

// take begins a takeover.
func (s *sim) take(o *simOwner) {
	s.takeovers++
	s.round++
	o.epoch, o.promises, o.copies = seq.Epoch{Round: s.round, Session: o.name}, map[int]bool{}, map[int]*State{}
	epoch := o.epoch
	for i := range s.stores {
		s.ask(i, func(st *simStore) func() {
			if !st.promise(epoch) {
				return nil
			}
			return func() {
				if o.epoch == epoch && !o.reading {
					o.promises[i] = true
					s.promised(o)
				}
			}
		})
	}
}

// promised reads the copies of W stores that have promised the epoch: what those had of
// older ones is all that there will ever be.
func (s *sim) promised(o *simOwner) {
	if len(o.promises) < s.w {
		return
	}
	o.reading = true
	epoch := o.epoch
	for i := range s.stores {
		s.ask(i, func(st *simStore) func() {
			if st.promised != epoch {
				return nil
			}
			state := st.mem.State()
			return func() {
				if o.epoch == epoch && o.owner == nil {
					o.copies[i] = state
					s.found(o)
				}
			}
		})
	}
}

// found begins with the highest copy among W.
func (s *sim) found(o *simOwner) {
	if len(o.copies) < s.w {
		return
	}
	var best *State
	for i := range s.stores {
		if c := o.copies[i]; c != nil && (best == nil || best.At().Less(c.At())) {
			best = c
		}
	}
	owner, err := NewOwner(Config{Window: simWindow, Bound: simBound}, o.epoch, best.Clone(), s.now+o.offset)
	if err != nil {
		s.failf("new owner: %v", err)
	}
	o.owner, o.serving = owner, true
}

func (s *sim) begin(o *simOwner, b Batch) {
	s.note(b.Records)
	o.batch, o.acks = &b, map[int]bool{}
	s.post(o)
}

// note keeps all that owners send.
func (s *sim) note(records []Record) {
	for _, r := range records {
		if had, ok := s.log[r.at()]; ok && had != r {
			s.failf("two records at %v: %+v and %+v", r.at(), had, r)
		}
		s.log[r.at()] = r
	}
}

// post sends the batch to all that did not take it in yet.
func (s *sim) post(o *simOwner) {
	b := *o.batch
	for i := range s.stores {
		if o.acks[i] {
			continue
		}
		s.ask(i, func(st *simStore) func() {
			if !st.promise(b.Epoch) {
				return func() { s.outrun(o, b.Epoch) }
			}
			switch _, err := st.mem.Append(&b, s.now+st.offset+simBound); {
			case err == nil:
				return func() { s.ack(o, i, b.End()) }
			case errors.Is(err, ErrElsewhere):
				return func() { s.fill(o, i, b.End()) }
			case errors.Is(err, ErrTime):
				return nil
			default:
				s.failf("append of %v: %v", b.End(), err)
				return nil
			}
		})
	}
}

func (s *sim) outrun(o *simOwner, e seq.Epoch) {
	if o.epoch == e {
		s.drop(o)
	}
}

func (s *sim) fill(o *simOwner, i int, end Position) {
	if o.batch == nil || o.batch.End() != end {
		return
	}
	s.fills++
	state, epoch := o.owner.State(), o.epoch // with what has gathered since
	s.note(o.owner.pending)
	s.ask(i, func(st *simStore) func() {
		if !st.promise(epoch) {
			return func() { s.outrun(o, epoch) }
		}
		if _, err := st.mem.Fill(state.Clone(), s.now+st.offset+simBound); err != nil {
			return nil
		}
		return func() { s.ack(o, i, end) }
	})
}

func (s *sim) ack(o *simOwner, i int, end Position) {
	if o.batch == nil || o.batch.End() != end || o.epoch != o.batch.Epoch {
		return
	}
	o.acks[i] = true
	if len(o.acks) < s.w {
		return
	}
	o.batch = nil
	round := o.owner.Committed()
	left := o.waiting[:0]
	for _, w := range o.waiting {
		if w.round <= round {
			w.tell()
		} else {
			left = append(left, w)
		}
	}
	o.waiting = left
}

// request makes a client ask any owner, either for the first time or again.
func (s *sim) request() {
	var r *simRequest
	if n := len(s.requests); n > 0 && s.rnd.IntN(2) == 0 {
		r = s.requests[max(0, n-1-s.rnd.IntN(12))]
		if s.rnd.IntN(20) == 0 {
			r = s.requests[s.rnd.IntN(n)]
		}
	} else {
		r = &simRequest{uid: seq.UID(s.rnd.IntN(simUIDs)), count: 1 + s.rnd.Uint32N(3), first: s.now}
		if s.rnd.IntN(5) > 0 {
			r.id = "r" + strconv.Itoa(len(s.requests))
		}
		s.requests = append(s.requests, r)
	}
	o := s.owners[s.rnd.IntN(len(s.owners))]
	if !o.serving {
		return
	}
	switch s.rnd.IntN(10) {
	case 0:
		s.look(o, r)
	case 1:
		s.current(o, r.uid)
	case 2:
		if r.id != "" {
			break
		}
		if a, err := o.owner.Raise(r.uid, s.told[r.uid]+s.rnd.Uint64N(3), s.now+o.offset); err == nil {
			s.after(o, a.Round, func() {})
		}
	default:
		if r.id == "" && r.repeat > 0 {
			return // not to be repeated
		}
		r.repeat++
		s.ask1(o, r)
	}
}

func (s *sim) after(o *simOwner, round uint64, tell func()) {
	if round == 0 {
		tell()
		return
	}
	o.waiting = append(o.waiting, simWait{round, tell})
}

func (s *sim) ask1(o *simOwner, r *simRequest) {
	a, err := o.owner.Take(r.uid, r.count, r.id, r.first, s.now+o.offset)
	switch {
	case errors.Is(err, ErrExpired):
		s.expired++
		if s.now < r.first+simWindow-2*simBound {
			s.failf("%s: expired %d ms after it was first sent", r.id, s.now-r.first)
		}
		return
	case err != nil:
		s.failf("%s: %v", r.id, err)
	}
	s.after(o, a.Round, func() { s.answered(r, a) })
}

// answered holds an answer against all before.
func (s *sim) answered(r *simRequest, a Answer) {
	s.answers++
	if a.Replayed {
		s.replays++
	}
	if r.got != nil {
		if r.got.First != a.First || r.got.Count != a.Count {
			s.failf("X2: %s of %d got %d from %d, and then %d from %d", r.id, r.uid, r.got.Count, r.got.First, a.Count, a.First)
		}
		return
	}
	r.got = &a
	if s.numbers[r.uid] == nil {
		s.numbers[r.uid] = map[uint64]*simRequest{}
	}
	for n := a.First; n < a.First+uint64(a.Count); n++ {
		if had := s.numbers[r.uid][n]; had != nil {
			s.failf("U: number %d of %d for %q and for %q", n, r.uid, had.id, r.id)
		}
		s.numbers[r.uid][n] = r
	}
	s.told[r.uid] = max(s.told[r.uid], a.First+uint64(a.Count)-1)
}

func (s *sim) look(o *simOwner, r *simRequest) {
	if r.id == "" {
		return
	}
	had, when := r.got, s.now
	a := o.owner.Lookup(r.uid, r.id)
	s.after(o, a.Round, func() {
		switch {
		case a.First != 0:
			s.answered(r, a)
		case had != nil && when < r.first+simWindow-2*simBound:
			s.failf("lookup of %s: not taken, and it had got %d", r.id, had.First)
		}
	})
}

func (s *sim) current(o *simOwner, uid seq.UID) {
	least := s.told[uid]
	a := o.owner.Current(uid)
	s.after(o, a.Round, func() {
		if a.First < least {
			s.failf("M: current of %d is %d, after %d", uid, a.First, least)
		}
	})
}

// end has everything heal and one owner take over, and reads the whole log back.
func (s *sim) end() {
	s.mail = nil
	for _, o := range s.owners {
		s.drop(o)
	}
	for _, st := range s.stores {
		if s.rnd.IntN(2) == 0 {
			st.crash()
		}
	}
	best := s.stores[0].disk
	// Any W stores must do: those are taken that know least.
	skip := s.rnd.IntN(len(s.stores))
	at := Position{}
	for i := range s.w {
		st := s.stores[(skip+i)%len(s.stores)]
		if c := st.disk; i == 0 || at.Less(c.At()) {
			best, at = c, c.At()
		}
	}
	var chain []Record
	for p := best.At(); p.Index > 0; {
		r, ok := s.log[p]
		if !ok {
			s.failf("no owner made the record at %v", p)
		}
		chain = append(chain, r)
		p = Position{r.Prev, r.Index - 1}
	}
	last := map[seq.UID]uint64{}
	of := map[string]uint64{}
	for i := len(chain) - 1; i >= 0; i-- {
		r := chain[i]
		switch r.Kind {
		case Take:
			if r.First != last[r.UID]+1 {
				s.failf("X1: the log of %d goes from %d to %d", r.UID, last[r.UID], r.First)
			}
			last[r.UID] += uint64(r.Count)
			if had, ok := of[r.ID]; ok && r.ID != "" {
				s.failf("X2: %s has %d and %d", r.ID, had, r.First)
			}
			of[r.ID] = r.First
		case Raise:
			last[r.UID] = r.First
		case Began, Passed:
		}
	}
	for _, r := range s.requests {
		if r.got != nil && r.id != "" && of[r.id] != r.got.First {
			s.failf("X1: %s got %d, and the log has %d", r.id, r.got.First, of[r.id])
		}
	}
	for uid, told := range s.told {
		if last[uid] < told {
			s.failf("the log of %d ends at %d, and %d was told", uid, last[uid], told)
		}
	}
}

func TestNoHoleAndNoSecondNumberOverAnyFault(t *testing.T) {
	from, n := uint64(1), uint64(150)
	if text := os.Getenv("SEED"); text != "" {
		var err error
		if from, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	if text := os.Getenv("SEEDS"); text != "" {
		var err error
		if n, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	var all sim
	for seed := from; seed < from+n; seed++ {
		s := newSim(t, seed, 3+2*int(seed%2))
		s.run(1500)
		s.end()
		all.answers += s.answers
		all.replays += s.replays
		all.expired += s.expired
		all.takeovers += s.takeovers
		all.fills += s.fills
	}
	t.Logf("%d histories: %d answers, %d of them replayed, %d expired, %d takeovers, %d fills", n, all.answers, all.replays, all.expired, all.takeovers, all.fills)
	if all.answers == 0 || all.replays == 0 || all.expired == 0 || all.takeovers == 0 || all.fills == 0 {
		t.Error("the run shows nothing")
	}
}
