package storesvr

import (
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/internal/base/clock"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr/disk"
	"github.com/seqsvr/seqsvr/tests/kit/sessiontest"
)

var alice, bob = sessiontest.Session(0xa), sessiontest.Session(0xb)

const patience = 30 * time.Second

var section = seq.SectionRegister(0)

// heldDB is a database that counts commits, can hold them up and can fail them.
type heldDB struct {
	*disk.DB
	entered chan struct{} // a token for each commit that began
	open    chan struct{} // if not nil, commits wait until it is closed

	mu      sync.Mutex // guards the rest
	updates []disk.Update
	before  error // fail without committing
	after   error // commit and fail
	free    func() (uint64, error)
}

func (g *heldDB) Commit(u disk.Update) (uint64, error) {
	g.mu.Lock()
	g.updates = append(g.updates, u)
	before, after := g.before, g.after
	g.mu.Unlock()
	g.entered <- struct{}{}
	if g.open != nil {
		<-g.open
	}
	if before != nil {
		return 0, before
	}
	n, err := g.DB.Commit(u)
	return n, errors.Join(err, after)
}

func (g *heldDB) Free() (uint64, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.free != nil {
		return g.free()
	}
	return g.DB.Free()
}

func (g *heldDB) commits() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.updates)
}

// bench is a replica on a real disk behind a gate, with a clock by hand.
type bench struct {
	*replica
	t     *testing.T
	dir   string
	gate  *heldDB
	clock *clock.Manual
	ref   quorum.Ref
}

var testMembers = []string{"a", "b", "c"}

func initStore(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	if err := Init(InitConfig{DataDir: dir, ClusterID: "c1", Name: name, MemberNames: testMembers,
		Spaces: []seq.Space{{Name: "user", Sections: 4}}}); err != nil {
		t.Fatal(err)
	}
	return dir
}

// newBench is a store that init has just made.
func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, dir: initStore(t, "a"), clock: clock.NewManual(time.Hour)}
	b.reopen()
	return b
}

// newVoter is one that was bound, too.
func newVoter(t *testing.T) *bench {
	t.Helper()
	b := newBench(t)
	if err := b.change.bind(t.Context(), binding{cluster: "c1", era: 0, members: b.fellows()}); err != nil {
		t.Fatal(err)
	}
	await(t, "the commit", b.gate.entered)
	b.ref = b.describe().Ref
	if err := b.vouch("c1", b.describe().Nonce, b.noClaims("u-b", "u-c")); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) fellows() []quorum.Member {
	return []quorum.Member{{UUID: "u-b", Name: "b"}, {UUID: b.core.identity.UUID, Name: "a"}, {UUID: "u-c", Name: "c"}}
}

// reopen is restart, and the fellow stores remember nothing newer.
func (b *bench) reopen() {
	b.t.Helper()
	b.restart()
	if id := b.describe(); id.Nonce != 0 {
		if err := b.vouch("c1", id.Nonce, b.noClaims("u-b", "u-c")); err != nil {
			b.t.Fatal(err)
		}
	}
}

// noClaims is what the fellows say that remember nothing of the store.
func (b *bench) noClaims(by ...string) (claims []quorum.Claim) {
	for _, uuid := range by {
		claims = append(claims, quorum.Claim{Store: b.core.identity.UUID, By: uuid})
	}
	return claims
}

// restart closes the replica, if there is one, and starts the next from the disk.
func (b *bench) restart() {
	b.t.Helper()
	if b.replica != nil {
		if err := b.close(); err != nil {
			b.t.Fatal(err)
		}
	}
	db, meta, registers, err := disk.Open(b.dir, "", nil)
	if err != nil {
		b.t.Fatal(err)
	}
	b.gate = &heldDB{DB: db, entered: make(chan struct{}, 1000)}
	cfg := Config{MaxLease: 10 * time.Second, Logger: slog.New(slog.DiscardHandler), Clock: b.clock}
	if b.replica, err = newReplica(cfg, b.gate, meta, registers); err != nil {
		b.t.Fatal(err)
	}
	r := b.replica
	b.t.Cleanup(func() { r.close() })
}

// shut makes commits wait; the result lets them go.
func (b *bench) shut() (release func()) {
	open := make(chan struct{})
	b.gate.open = open
	release = sync.OnceFunc(func() { close(open) })
	b.t.Cleanup(release)
	return release
}

func (b *bench) prepare(round uint64, who seq.Session) (quorum.Verdict, error) {
	reply, err := b.Prepare(b.t.Context(), quorum.PrepareRequest{Ref: b.ref, Session: who, Secret: sessiontest.SecretOf(who),
		Items: []quorum.PrepareItem{{Register: section, Round: round}}})
	if err != nil {
		return 0, err
	}
	return reply.Results[0].Verdict, nil
}

func (b *bench) mustPrepare(round uint64, who seq.Session, want quorum.Verdict) {
	b.t.Helper()
	if got, err := b.prepare(round, who); err != nil || got != want {
		b.t.Errorf("prepare %d of %v: got %v, %v, want %v", round, who, got, err, want)
	}
}

func (b *bench) read() quorum.Result {
	b.t.Helper()
	reply, err := b.Read(b.t.Context(), quorum.ReadRequest{Ref: b.ref, Registers: []seq.Register{section}})
	if err != nil {
		b.t.Fatal(err)
	}
	return reply.Results[0]
}

func (b *bench) renewal(who seq.Session) quorum.RenewRequest {
	return quorum.RenewRequest{Ref: b.ref, Session: who, Secret: sessiontest.SecretOf(who), Name: who.String(), Lease: time.Second}
}

func await[T any](t *testing.T, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("waited %v for %s", patience, what)
		panic("unreachable")
	}
}

func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(patience)
	for !ok() {
		select {
		case <-deadline:
			t.Fatalf("waited %v for %s", patience, what)
		case <-time.After(time.Millisecond):
		}
	}
}
