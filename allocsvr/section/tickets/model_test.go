package tickets

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// The model: writers take numbers with tickets and commit rows to a database, readers go by marks. Owners
// die, pause, hand over and lose what they hand over. Time is virtual, and each process has a clock of its
// own, up to 1 % off the right rate. A run is a function of its seed.
const (
	modelLife  = 400 * time.Millisecond
	modelRun   = 20 * time.Second
	modelUIDs  = 2
	modelLease = 100 * time.Millisecond
)

type event struct {
	at time.Duration
	do func()
}

type agenda []event

func (a agenda) Len() int           { return len(a) }
func (a agenda) Less(i, j int) bool { return a[i].at < a[j].at }
func (a agenda) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)        { *a = append(*a, x.(event)) }
func (a *agenda) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}

// modelClock runs at its own rate.
type modelClock struct {
	rate   float64
	offset time.Duration
}

func (c modelClock) at(now time.Duration) time.Duration {
	return c.offset + time.Duration(float64(now)*c.rate)
}

// modelOwner is an owner of the section under one epoch.
type modelOwner struct {
	clock   modelClock
	book    *Book
	last    map[uint64]uint64
	base    uint64
	serves  bool          // neither sealed nor dead
	paused  time.Duration // until then
	leased  time.Duration // until then, in true time
	ceiling uint64
}

func (o *modelOwner) of(uid uint64) uint64 { return max(o.base, o.last[uid]) }

func (o *modelOwner) high() (high uint64) {
	high = o.base
	for _, n := range o.last {
		high = max(high, n)
	}
	return high
}

// modelRow is a row of the database with the time at which it became visible.
type modelRow struct{ uid, number uint64 }

type model struct {
	t      *testing.T
	r      *rand.Rand
	seed   uint64
	fenced bool // readers and writers use the fence
	now    time.Duration
	todo   agenda
	stats  Stats

	owner  *modelOwner
	before []*modelOwner // owners of before, who may still be asked
	quiet  bool          // no more faults and tickets

	rows  map[modelRow]bool
	floor map[uint64]uint64
	told  map[uint64]uint64 // the highest mark that a reader has got
	// missed counts rows that became visible below a mark, and late those that a writer committed late.
	missed, late, refused int
	opened                int
}

func (m *model) in(d time.Duration, do func()) { heap.Push(&m.todo, event{m.now + d, do}) }

// some returns a random time below d.
func (m *model) some(d time.Duration) time.Duration { return time.Duration(m.r.Int64N(int64(d))) }

func (m *model) one(in int) bool { return m.r.IntN(in) == 0 }

func (m *model) clock() modelClock {
	return modelClock{rate: 0.99 + 0.02*m.r.Float64(), offset: m.some(time.Hour)}
}

func (m *model) serving() *modelOwner {
	if o := m.owner; o != nil && o.serves && m.now >= o.paused && m.now < o.leased {
		return o
	}
	return nil
}

// renew keeps the lease of an owner that runs.
func (m *model) renew() {
	if o := m.serving(); o != nil {
		o.leased = m.now + modelLease
	}
	m.in(modelLease/5, m.renew)
}

// write is a writer: it opens a ticket, commits its rows, and ends the ticket.
func (m *model) write(uid uint64) {
	m.in(m.some(20*time.Millisecond), func() { m.write(uid) })
	if m.quiet {
		return
	}
	clock, sent := m.clock(), m.now
	life := modelLife
	if m.one(4) {
		life = modelLife / 2
	}
	m.in(m.some(30*time.Millisecond), func() {
		o := m.serving()
		if o == nil {
			return
		}
		now := o.clock.at(m.now)
		if err := o.book.Admit(uid, now); err != nil {
			m.t.Fatalf("seed %d: %v", m.seed, err)
		}
		first := o.of(uid) + 1
		last := first + uint64(m.r.IntN(3))
		o.ceiling = max(o.ceiling, last+10)
		o.last[uid] = last
		if m.one(3) {
			return // a plain take: its numbers are closed at once
		}
		id := m.r.Uint64() | 1
		o.book.Open(uid, first, last, id, now, life)
		m.opened++
		if m.one(40) {
			return // the answer is lost
		}
		m.in(m.some(10*time.Millisecond), func() {
			// The writer counts from its sending, by its own clock.
			deadline := time.Duration(float64(life) / clock.rate)
			left := sent + deadline - m.now
			switch m.r.IntN(12) {
			case 0: // it dies before it commits
			case 1: // it wakes up late
				m.in(max(left, 0)+m.some(2*modelLife), func() { m.commit(uid, first, last, true) })
			case 2: // it commits at the last moment
				if left > 0 {
					m.in(left-1, func() { m.commit(uid, first, last, false) })
				}
			case 3: // it gives up
				m.in(m.some(50*time.Millisecond), func() { m.end(uid, first, id) })
			default:
				if left > 0 {
					m.in(min(m.some(100*time.Millisecond), left-1), func() {
						m.commit(uid, first, last, false)
						m.in(m.some(10*time.Millisecond), func() { m.end(uid, first, id) })
					})
				}
			}
		})
	})
}

func (m *model) commit(uid, first, last uint64, late bool) {
	if late && !m.fenced {
		return // the promise without a fence is to writers that commit in time
	}
	if m.fenced && first <= m.floor[uid] {
		m.refused++
		if !late {
			// The reader moved the floor although the ticket was open.
			m.t.Errorf("seed %d: a commit in time of %d of uid %d was refused at floor %d", m.seed, first, uid, m.floor[uid])
		}
		return
	}
	if late {
		m.late++
	}
	for n := first; n <= last; n++ {
		m.rows[modelRow{uid, n}] = true
		if n <= m.told[uid] && !m.fenced {
			m.missed++
		}
	}
}

// end sends a Done, which is lost now and then, or of a ticket that is not the writer's.
func (m *model) end(uid, first, id uint64) {
	if o := m.serving(); o != nil && !m.one(20) {
		_ = o.book.End(uid, first, id, o.clock.at(m.now)) // it may have ended, or be another owner's
	}
	if o := m.serving(); o != nil && m.one(4) {
		for _, k := range o.book.keys {
			if err := o.book.End(uid, k.open[0].first, m.r.Uint64()|1, o.clock.at(m.now)); err == nil {
				m.t.Errorf("seed %d: a ticket was ended with an id that is not its own", m.seed)
			}
		}
	}
}

// modelReader is a reader with its cursor in the database.
type modelReader struct {
	m      *model
	uid    uint64
	cursor uint64
	read   map[uint64]bool
}

func (r *modelReader) ask() {
	m := r.m
	m.in(m.some(30*time.Millisecond), r.ask)
	begun := m.told[r.uid]
	o := m.serving()
	if len(m.before) > 0 && m.one(5) {
		o = m.before[m.r.IntN(len(m.before))]
		if !o.serves || m.now < o.paused || m.now >= o.leased {
			return
		}
	}
	if o == nil {
		return
	}
	mark, fence, unknown := o.book.Mark(r.uid, o.of(r.uid), o.clock.at(m.now))
	if unknown > 0 {
		if unknown > Span(modelLife) {
			m.t.Errorf("seed %d: a mark is unknown for %v", m.seed, unknown)
		}
		return
	}
	if mark < begun {
		m.t.Errorf("seed %d: R2: mark %d of uid %d after %d", m.seed, mark, r.uid, begun)
	}
	if m.told[r.uid] = max(m.told[r.uid], mark); m.fenced && m.one(10) {
		return // the reader dies before it raises the floor
	}
	if m.fenced && fence > m.floor[r.uid] {
		m.floor[r.uid] = max(m.floor[r.uid], mark)
	}
	for n := r.cursor + 1; n <= mark; n++ {
		r.read[n] = m.rows[modelRow{r.uid, n}]
	}
	r.cursor = max(r.cursor, mark)
}

// fault lets something happen to the owner.
func (m *model) fault() {
	m.in(200*time.Millisecond+m.some(time.Second), m.fault)
	o := m.serving()
	if o == nil || m.quiet {
		return
	}
	switch m.r.IntN(5) {
	case 0, 1:
		o.serves = false
		m.in(max(o.leased-m.now, 0)+m.some(50*time.Millisecond), func() { m.takeOver(o) })
	case 2:
		o.paused = m.now + m.some(3*modelLease)
	default:
		m.handOver(o)
	}
}

// succeed makes an owner that W stores promised the section now.
func (m *model) succeed(from *modelOwner, counters bool, body []byte) {
	o := &modelOwner{clock: m.clock(), serves: true, leased: m.now + modelLease, base: from.ceiling, last: map[uint64]uint64{}, ceiling: from.ceiling + 10}
	if counters {
		o.base, o.last = from.base, from.last
	}
	promised := o.clock.at(m.now)
	var err error
	if o.book, err = Decode(&m.stats, body, promised); err != nil {
		o.book = New(&m.stats, promised, modelLife)
	}
	m.in(m.some(20*time.Millisecond), func() {
		o.book.Begin(o.high(), nil)
		o.leased = m.now + modelLease
		m.before, m.owner = append(m.before, m.owner), o
	})
}

func (m *model) takeOver(from *modelOwner) {
	from.book.Close()
	m.succeed(from, false, nil)
}

func (m *model) handOver(o *modelOwner) {
	o.serves = false // sealed
	body := o.book.AppendBinary(nil, o.clock.at(m.now))
	o.book.Close()
	counters := true
	switch m.r.IntN(6) {
	case 0:
		body = nil // the tickets did not fit
	case 1:
		body, counters = nil, false
	}
	m.in(m.some(60*time.Millisecond), func() { m.succeed(o, counters, body) })
}

// watchLapses lets another owner take over from one whose lease has ended in a pause.
func (m *model) watchLapses() {
	m.in(10*time.Millisecond, m.watchLapses)
	if o := m.owner; o.serves && m.now >= o.leased {
		o.serves = false // a later renewal is refused
		m.takeOver(o)
	}
}

func runModel(t *testing.T, seed uint64, fenced bool) *model {
	t.Helper()
	m := &model{t: t, r: rand.New(rand.NewPCG(seed, 1)), seed: seed, fenced: fenced, rows: map[modelRow]bool{}, floor: map[uint64]uint64{}, told: map[uint64]uint64{}}
	first := &modelOwner{clock: m.clock(), serves: true, leased: modelLease, last: map[uint64]uint64{}, ceiling: 10}
	first.book = New(&m.stats, first.clock.at(0)-Span(modelLife), modelLife)
	first.book.Begin(0, nil)
	m.owner = first
	readers := []*modelReader{}
	for uid := range uint64(modelUIDs) {
		m.write(uid)
		for range 2 {
			readers = append(readers, &modelReader{m: m, uid: uid, read: map[uint64]bool{}})
			readers[len(readers)-1].ask()
		}
	}
	m.renew()
	m.fault()
	m.watchLapses()
	end := modelRun
	for len(m.todo) > 0 && m.now < end+2*time.Second {
		e := heap.Pop(&m.todo).(event)
		m.now = e.at
		m.quiet = m.now > end
		e.do()
	}
	for _, r := range readers {
		if last := m.owner.of(r.uid); r.cursor != last {
			t.Errorf("seed %d: R3: the mark of uid %d is %d, its last number %d", seed, r.uid, r.cursor, last)
		}
		for row := range m.rows {
			if row.uid == r.uid && !r.read[row.number] {
				t.Errorf("seed %d: R1: row %d of uid %d was not read", seed, row.number, row.uid)
			}
		}
	}
	if open := m.stats.Open.Load(); open != 0 {
		t.Errorf("seed %d: %d tickets are open in the end", seed, open)
	}
	return m
}

func TestReadersThatGoByMarksLoseNoRow(t *testing.T) {
	for _, fenced := range []bool{false, true} {
		t.Run(fmt.Sprintf("fence=%v", fenced), func(t *testing.T) {
			opened, late, refused, owners := 0, 0, 0, 0
			for seed := range uint64(60) {
				m := runModel(t, seed, fenced)
				opened, late, refused, owners = opened+m.opened, late+m.late, refused+m.refused, owners+len(m.before)
				if t.Failed() {
					t.FailNow()
				}
			}
			t.Logf("%d tickets, %d owners, %d late commits got in and %d were refused", opened, owners, late, refused)
			if fenced && (late == 0 || refused == 0) || owners < 100 {
				t.Error("the runs did not come to what they are to show")
			}
		})
	}
}
