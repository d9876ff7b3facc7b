package reading

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/e2e/bench/peers"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

var kills = flag.Int("kills", 3, "how often the owner is killed")

func TestMain(m *testing.M) { harness.Main(m) }

// Shape of the run.
const (
	space   = "inbox"
	life    = time.Second
	writers = 8   // of one UID
	readers = 2   // likewise
	oneIn   = 200 // writers of which one dies or wakes up late
	between = 40  // rows of each way between two kills, at least
	pause   = 5 * time.Millisecond
)

// way is a way to write and to read, on a UID of its own.
type way struct {
	name    string
	lock    bool // writers lock the row of their UID before they take
	tickets bool // writers open tickets, and readers go by marks
	fence   bool
	late    bool // some writers commit after their deadline
	loses   bool // rows must be lost
	healthy bool // no writer dies

	*site
	key client.Key

	passed atomic.Uint64 // the highest cursor of a reader
	misses atomic.Int64  // rows that were committed below a cursor
	over   atomic.Int64  // rows that the fence refused
	wrote  atomic.Int64

	mu   sync.Mutex // guards all below
	rows map[uint64]time.Duration
}

// overdue is what a row has left of its ticket's life if nobody knows when it was committed.
const overdue = math.MinInt64

// site is what all ways share.
type site struct {
	t       testing.TB
	sql     statements
	db      *pgxpool.Pool
	sdk     *client.Client
	cluster *localcluster.Cluster
	section seq.SectionID // of all UIDs
	ended   atomic.Bool
}

// write writes one row, or dies on the way.
func (w *way) write(ctx context.Context, random *rand.Rand) error {
	tx, err := w.db.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback(context.WithoutCancel(ctx))
	fate := random.IntN(3 * oneIn) // 0 to 2: it dies, or is late before or after it writes the row
	if w.healthy {
		fate = oneIn
	}
	if !w.tickets {
		if w.lock {
			if _, err := tx.Exec(ctx, w.sql.lock, w.key.UID); err != nil {
				return err
			}
		}
		n, err := w.sdk.Next(ctx, w.key)
		if err != nil || fate == 0 {
			return err
		}
		return w.commit(ctx, tx, uint64(n), func() time.Duration { return 0 })
	}
	t, err := w.sdk.Open(ctx, w.key, 1)
	if err != nil || fate == 0 {
		return err
	}
	asleep := func(now bool) {
		if now && w.late {
			<-time.After(time.Until(t.Deadline) + time.Duration(random.Int64N(int64(life))))
		}
	}
	if !w.late {
		within, cancel := t.Context(ctx)
		defer cancel()
		ctx = within
	}
	asleep(fate == 1)
	err = w.commit(ctx, tx, uint64(t.First), func() time.Duration {
		asleep(fate == 2)
		return time.Until(t.Deadline)
	})
	if errors.Is(err, errOver) {
		w.over.Add(1)
		return nil // the next call opens another ticket
	}
	if err != nil {
		return err
	}
	if err = t.Done(context.WithoutCancel(ctx)); errors.Is(err, seq.ErrTicketEnded) {
		return nil
	}
	return err
}

// errOver says that the fence refused a row.
var errOver = errors.New("the ticket is over")

// commit writes the row of the number n and commits it. left sleeps, and returns what the ticket has left.
func (w *way) commit(ctx context.Context, tx pgx.Tx, n uint64, left func() time.Duration) error {
	statement := "insert into message (uid, n, body) values ($1, $2, $3)"
	if w.fence {
		statement = w.sql.write
	}
	done, err := tx.Exec(ctx, statement, w.key.UID, n, fmt.Sprint(n))
	if err != nil {
		return err
	}
	if done.RowsAffected() == 0 {
		return errOver
	}
	left()
	passed := w.passed.Load()
	w.note(n, overdue)
	if err := tx.Commit(ctx); err != nil {
		return err // it may have been committed all the same
	}
	w.note(n, left())
	w.wrote.Add(1)
	if n <= passed {
		w.misses.Add(1)
	}
	return nil
}

func (w *way) note(n uint64, left time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rows[n] = left
}

// reader has a cursor and what it read.
type reader struct {
	*way
	random *rand.Rand
	cursor uint64
	floor  uint64 // as it last read it in the database
	read   map[uint64]bool
	last   uint64 // number of the UID, as the latest mark says
}

// pass reads what is above the cursor.
func (r *reader) pass(ctx context.Context) error {
	to := uint64(math.MaxInt64)
	switch {
	case r.tickets:
		m, err := r.mark(ctx)
		if err != nil || m == 0 {
			return err
		}
		to = m
	case !r.lock:
		now, err := r.sdk.Current(ctx, space, []seq.UID{r.key.UID})
		if err != nil {
			return err
		}
		to = uint64(now[0].Seq)
	}
	rows, err := r.db.Query(ctx, r.sql.read, r.key.UID, r.cursor, to)
	if err != nil {
		return err
	}
	var n uint64
	var body string
	var highest uint64
	_, err = pgx.ForEachRow(rows, []any{&n, &body}, func() error {
		r.read[n] = true
		highest = max(highest, n)
		return nil
	})
	if err != nil {
		return err
	}
	if to == math.MaxInt64 {
		to = highest
	}
	r.cursor = max(r.cursor, to)
	for passed := r.passed.Load(); passed < r.cursor && !r.passed.CompareAndSwap(passed, r.cursor); {
		passed = r.passed.Load()
	}
	return nil
}

// mark returns up to where to read, and raises the floor before. Zero means that it is not known, or that the
// reader died.
func (r *reader) mark(ctx context.Context) (uint64, error) {
	marks, err := r.sdk.Marks(ctx, r.key)
	if err == nil {
		err = marks[0].Err
	}
	if err != nil || marks[0].KnownIn > 0 {
		return 0, err
	}
	m := marks[0]
	if uint64(m.Seq) < r.cursor {
		r.t.Errorf("%s: mark %d after %d", r.name, m.Seq, r.cursor)
	}
	r.last = uint64(m.Last)
	if !r.fence {
		return uint64(m.Seq), nil
	}
	if r.random.IntN(10) == 0 { // it dies, and another reader begins with what is in the database
		return 0, r.db.QueryRow(ctx, r.sql.floor, r.key.UID).Scan(&r.floor)
	}
	if uint64(m.Fence) > r.floor {
		if _, err := r.db.Exec(ctx, r.sql.raise, r.key.UID, m.Seq); err != nil {
			return 0, err
		}
		r.floor = uint64(m.Seq)
	}
	return uint64(m.Seq), nil
}

// start lets the way's writers and readers work until the site is over, and returns how to wait for their end.
func (w *way) start(t testing.TB, seed uint64) (all []*reader, wait func()) {
	var working, reading sync.WaitGroup
	failed := func(doing string, err error) {
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Logf("%s: %s: %v", w.name, doing, err)
		}
	}
	for i := range uint64(writers) {
		random := rand.New(rand.NewPCG(seed, i))
		working.Go(func() {
			for !w.ended.Load() {
				failed("write", w.write(harness.Within(t), random))
			}
		})
	}
	for i := range uint64(readers) {
		r := &reader{way: w, random: rand.New(rand.NewPCG(seed, 100+i)), read: map[uint64]bool{}}
		all = append(all, r)
		reading.Go(func() {
			for !w.ended.Load() {
				failed("read", r.pass(harness.Within(t)))
				<-time.After(pause)
			}
		})
	}
	return all, func() { working.Wait(); reading.Wait() }
}

// judge has the readers read to the end, and returns how many rows a reader lost.
func (w *way) judge(t *testing.T, all []*reader) (lost int) {
	t.Helper()
	rows, err := w.db.Query(harness.Within(t), w.sql.read, w.key.UID, 0, int64(math.MaxInt64))
	if err != nil {
		t.Fatal(err)
	}
	var there []uint64
	var n uint64
	var body string
	if _, err := pgx.ForEachRow(rows, []any{&n, &body}, func() error { there = append(there, n); return nil }); err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		harness.Until(t, w.name+": the mark is the last number", func() bool {
			return r.pass(harness.Within(t)) == nil && (!r.tickets || r.cursor == r.last)
		})
		for _, n := range there {
			// Without the fence, the promise is to rows that were committed in time.
			if !r.read[n] && (w.loses || w.fence || w.lock || w.rows[n] > 0) {
				lost++
			}
		}
	}
	t.Logf("%s: %d rows, %d refused, %d lost by %d readers together", w.name, len(there), w.over.Load(), lost, len(all))
	return lost
}

// kill kills the owner of the UIDs, waits until each way goes on, and starts it again.
func (s *site) kill(ways []*way) {
	s.t.Helper()
	before := make([]int64, len(ways))
	goOn := func() {
		for i, w := range ways {
			before[i] = w.wrote.Load()
		}
		harness.Until(s.t, fmt.Sprintf("each way has written %d rows more", between), func() bool {
			for i, w := range ways {
				if w.wrote.Load() < before[i]+between {
					return false
				}
			}
			return true
		})
	}
	goOn()
	var owner *localcluster.Process
	harness.Until(s.t, "the owner is known", func() bool {
		for _, addr := range s.cluster.Addrs(localcluster.RoleAlloc) {
			conn, err := rpc.Dial(addr)
			if err != nil {
				s.t.Fatal(err)
			}
			reply, err := pb.NewAdminClient(conn).Leases(harness.Within(s.t), &pb.LeasesRequest{Sections: []uint32{uint32(s.section)}})
			_ = conn.Close()
			if err == nil && len(reply.GetLeases()) == 1 {
				owner = s.cluster.Process(reply.GetLeases()[0].GetNode())
			}
		}
		return owner != nil
	})
	if err := owner.Kill(); err != nil {
		s.t.Fatal(err)
	}
	goOn()
	if err := owner.Start(); err != nil {
		s.t.Fatal(err)
	}
}

func database(t testing.TB) *pgxpool.Pool {
	t.Helper()
	// The server may run under another account, which must be able to enter the folder.
	dir, err := os.MkdirTemp("", "reading-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	p, err := peers.StartPostgres(harness.Within(t), dir)
	if errors.Is(err, peers.ErrAbsent) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	return p.Pool()
}

// section returns the only section of the space.
func section(t testing.TB, c *localcluster.Cluster) seq.SectionID {
	t.Helper()
	conn, err := rpc.Dial(c.GRPC())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	reply, err := pb.NewSequenceClient(conn).Routes(harness.Within(t), &pb.RoutesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := rpc.MappingFromProto(reply.GetMapping())
	if err != nil {
		t.Fatal(err)
	}
	s, err := m.Space(space)
	if err != nil {
		t.Fatal(err)
	}
	return s.First
}

// newSite starts a database and a cluster.
func newSite(t testing.TB) *site {
	t.Helper()
	s := &site{t: t, sql: readStatements(t), db: database(t)}
	s.cluster = harness.Start(t, func(cfg *localcluster.Config) {
		cfg.Sections, cfg.Lease, cfg.Spaces = 4, time.Second, []string{fmt.Sprintf("%s:sections=1,tickets=%v", space, life)}
	})
	s.section = section(t, s.cluster)
	var err error
	if s.sdk, err = client.New(harness.Within(t), client.Config{Addrs: s.cluster.Addrs(localcluster.RoleAlloc)}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.sdk.Close() })
	for _, line := range []string{"create table message (uid bigint, n bigint, body text, primary key (uid, n))", s.sql.table} {
		if _, err := s.db.Exec(harness.Within(t), line); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
	}
	return s
}

// open makes a UID for the way.
func (s *site) open(w *way, uid seq.UID) {
	s.t.Helper()
	w.site, w.key, w.rows = s, client.Key{Space: space, UID: uid}, map[uint64]time.Duration{}
	if _, err := s.db.Exec(harness.Within(s.t), s.sql.key, uid); err != nil {
		s.t.Fatalf("%s: %v", s.sql.key, err)
	}
}

func TestReadersThatGoByMarksLoseNoRowOfPostgreSQL(t *testing.T) {
	s := newSite(t)
	ways := []*way{
		{name: "row lock", lock: true},
		{name: "tickets", tickets: true},
		{name: "tickets with the fence", tickets: true, fence: true, late: true},
		{name: "tickets without the fence", tickets: true, late: true, loses: true},
		{name: "numbers alone", loses: true},
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	var all [][]*reader
	var waits []func()
	for i, w := range ways {
		s.open(w, seq.UID(i+1))
		rs, wait := w.start(t, seed+uint64(i))
		all, waits = append(all, rs), append(waits, wait)
	}
	began := time.Now()
	for range *kills {
		s.kill(ways)
	}
	harness.Until(t, "the fence has refused a row, and rows were committed below a cursor where they may be", func() bool {
		return ways[2].over.Load() > 0 && ways[3].misses.Load() > 0 && ways[4].misses.Load() > 0
	})
	s.ended.Store(true)
	for _, wait := range waits {
		wait()
	}
	t.Logf("%d kills in %v", *kills, time.Since(began).Round(time.Second))
	for i, w := range ways {
		if lost := w.judge(t, all[i]); (lost > 0) != w.loses {
			t.Errorf("%s: %d rows were lost; rows must be lost: %v", w.name, lost, w.loses)
		}
	}
}

// BenchmarkWaysToWrite measures rows of one UID by 8 writers, beside 2 readers. No writer dies or sleeps.
func BenchmarkWaysToWrite(b *testing.B) {
	s := newSite(b)
	uid := seq.UID(100)
	for _, kind := range []string{"numbers", "tickets", "fence", "lock"} {
		b.Run(kind, func(b *testing.B) {
			uid++
			w := &way{name: kind, tickets: kind == "tickets" || kind == "fence", fence: kind == "fence", lock: kind == "lock", healthy: true}
			s.open(w, uid)
			s.ended.Store(false)
			b.ResetTimer()
			_, wait := w.start(b, uint64(uid))
			for w.wrote.Load() < int64(b.N) {
				time.Sleep(time.Millisecond)
			}
			b.StopTimer()
			s.ended.Store(true)
			wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}
