package storesvr

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/exact"
	"github.com/seqsvr/seqsvr/internal/base/clock"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr/acceptor"
	"github.com/seqsvr/seqsvr/storesvr/disk"
	"github.com/seqsvr/seqsvr/storesvr/journal"
	"github.com/seqsvr/seqsvr/tests/kit/sessiontest"
)

// noExact is the disk of a cluster without an exact space.
type noExact struct{}

func (noExact) Copy(seq.SectionID) *exact.Copy { return nil }

func (noExact) Log([]exact.Entry) (batches, bytes uint64, err error) {
	return 0, 0, errors.New("no journal")
}

const testWindow = time.Minute

// exactSection is the first of the space of newExact; section 0 is of an ordinary one.
var exactSection = seq.SectionRegister(1)

// newExact is a voting store with an exact space.
func newExact(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, dir: filepath.Join(t.TempDir(), "a"), clock: clock.NewManual(time.Hour)}
	if err := Init(InitConfig{DataDir: b.dir, ClusterID: "c1", Name: "a", MemberNames: testMembers,
		Spaces: []seq.Space{{Name: "user", Sections: 1}, {Name: "order", Sections: 3, Mode: seq.Exact, Window: testWindow}}}); err != nil {
		t.Fatal(err)
	}
	b.reopen()
	if err := b.change.bind(t.Context(), binding{cluster: "c1", era: 0, members: b.fellows()}); err != nil {
		t.Fatal(err)
	}
	b.ref = b.describe().Ref
	if err := b.vouch("c1", b.describe().Nonce, b.noClaims("u-b", "u-c")); err != nil {
		t.Fatal(err)
	}
	return b
}

// shutExact is shut, of a gate that has not counted a commit.
func (b *bench) shutExact() (release func()) {
	for len(b.gate.entered) > 0 {
		<-b.gate.entered
	}
	return b.shut()
}

// owner makes what an owner of exactSection would, from what the store has.
func (b *bench) owner(round uint64, who seq.Session) *exact.Owner {
	b.t.Helper()
	return b.ownerOf(round, who, b.state(exactSection))
}

func (b *bench) ownerOf(round uint64, who seq.Session, found *exact.State) *exact.Owner {
	b.t.Helper()
	o, err := exact.NewOwner(exact.Config{Window: testWindow.Milliseconds()}, seq.Epoch{Round: round, Session: who}, found, time.Now().UnixMilli())
	if err != nil {
		b.t.Fatal(err)
	}
	return o
}

// taken is the next batch of an owner, with a number for each id.
func taken(t *testing.T, o *exact.Owner, ids ...string) exact.Batch {
	t.Helper()
	for _, id := range ids {
		if _, err := o.Take(7, 1, id, time.Now().UnixMilli(), time.Now().UnixMilli()); err != nil {
			t.Fatal(err)
		}
	}
	batch, ok := o.Begin()
	if !ok {
		t.Fatal("nothing to send")
	}
	o.Committed()
	return batch
}

func (b *bench) copies(registers ...seq.Register) []quorum.Result {
	b.t.Helper()
	reply, err := b.Read(b.t.Context(), quorum.ReadRequest{Ref: b.ref, Session: alice, Registers: registers, Copies: true})
	if err != nil {
		b.t.Fatal(err)
	}
	return reply.Results
}

// state is the copy of a section as the store shows it.
func (b *bench) state(r seq.Register) *exact.State {
	b.t.Helper()
	res := b.copies(r)[0]
	if res.Verdict != quorum.VerdictOK {
		b.t.Fatalf("copy of %s: %v %s", r, res.Verdict, res.Message)
	}
	in := exact.NewReader(res.Payload)
	s := in.State(seq.DefaultWindow.Milliseconds())
	if in.Err() != nil || in.Left() > 0 || s.At() != (exact.Position{Epoch: res.Accepted, Index: res.Index}) {
		b.t.Fatalf("copy of %s at %v, %d: %v, %d bytes left, stands at %v", r, res.Accepted, res.Index, in.Err(), in.Left(), s.At())
	}
	return s
}

// step sends items in one request, and gives their results.
func (b *bench) step(who seq.Session, items ...quorum.StepItem) ([]quorum.Result, error) {
	reply, err := b.Step(b.t.Context(), quorum.StepRequest{Ref: b.ref, Session: who, Secret: sessiontest.SecretOf(who), Items: items})
	return reply.Results, err
}

// log sends a change of exactSection.
func (b *bench) log(who seq.Session, c exact.Change) quorum.Result {
	b.t.Helper()
	res, err := b.step(who, logItem(c))
	if err != nil {
		b.t.Fatal(err)
	}
	return res[0]
}

func logItem(c exact.Change) quorum.StepItem {
	return quorum.StepItem{Register: exactSection, Round: c.Epoch().Round, Log: c.AppendTo(nil)}
}

func TestRecordsAreThereAfterARestart(t *testing.T) {
	b := newExact(t)
	o := b.owner(1, alice)
	for i := range 5 {
		if got := b.log(alice, exact.Change{Batch: taken(t, o, fmt.Sprint("a", i))}); got.Verdict != quorum.VerdictOK || got.Accepted.Round != 1 {
			t.Fatalf("batch %d: %+v", i, got)
		}
	}
	want := o.State().Describe()
	if got := b.state(exactSection).Describe(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := b.copies(exactSection)[0].Promised; got != (seq.Epoch{Round: 1, Session: alice}) {
		t.Errorf("promised %v", got)
	}
	b.reopen()
	if got := b.state(exactSection).Describe(); got != want {
		t.Errorf("after a restart: got %s, want %s", got, want)
	}
}

// A FILL puts a state in place that the batches behind it change: the journal must have it as
// it was.
func TestAFillAndWhatFollowsItInOneGroupIsReadBack(t *testing.T) {
	b := newExact(t)
	first := b.owner(1, alice)
	if got := b.log(alice, exact.Change{Batch: taken(t, first, "a")}); got.Verdict != quorum.VerdictOK {
		t.Fatalf("%+v", got)
	}
	release := b.shutExact()
	held := make(chan error, 1)
	go func() {
		_, err := b.prepare(1, alice) // of another section: its commit holds up the others
		held <- err
	}()
	await(t, "the commit", b.gate.entered)
	o := b.ownerOf(2, bob, first.State())
	taken(t, o, "b")
	items := []quorum.StepItem{logItem(exact.Change{Whole: o.State()})}
	for i := range 3 {
		items = append(items, logItem(exact.Change{Batch: taken(t, o, fmt.Sprint("c", i))}))
	}
	results := make(chan []quorum.Result, len(items))
	for i, item := range items {
		go func() {
			res, err := b.step(bob, item)
			if err != nil {
				t.Error(err)
			}
			results <- res
		}()
		waitFor(t, "it to queue", func() bool { return len(b.writer.queue) == i+1 })
	}
	before := b.gate.DB.Copy(1).At()
	release()
	if err := await(t, "the prepare", held); err != nil {
		t.Fatal(err)
	}
	for range items {
		if res := await(t, "an answer", results); len(res) != 1 || res[0].Verdict != quorum.VerdictOK {
			t.Errorf("got %+v", res)
		}
	}
	want := o.State().Describe()
	b.reopen()
	if got := b.state(exactSection).Describe(); got != want || b.state(exactSection).At() == before {
		t.Errorf("read back: got %s, want %s", got, want)
	}
}

func TestWhatASectionOfAnExactSpaceIsRefused(t *testing.T) {
	b := newExact(t)
	o := b.owner(3, alice)
	batch := taken(t, o, "a")
	if got := b.log(alice, exact.Change{Batch: batch}); got.Verdict != quorum.VerdictOK {
		t.Fatalf("%+v", got)
	}
	late := taken(t, o, "b")
	late.Records = slices.Clone(late.Records)
	late.Records[len(late.Records)-1].Time = time.Now().Add(LogAhead + time.Minute).UnixMilli()
	low := logItem(exact.Change{Batch: batch})
	low.Round = 2
	other := logItem(exact.Change{Batch: batch})
	other.Round = 4
	cut := logItem(exact.Change{Batch: batch})
	cut.Log = cut.Log[:len(cut.Log)-1]
	noExact := logItem(exact.Change{Batch: batch})
	noExact.Register = section
	withMax := logItem(exact.Change{Batch: batch})
	withMax.Max = 1
	for _, row := range []struct {
		name string
		item quorum.StepItem
		want quorum.Verdict
		why  string
	}{
		{"a max", withMax, quorum.VerdictRefused, "a max of 1 for a section of an exact space"},
		{"a max without records", quorum.StepItem{Register: exactSection, Round: 3, Max: 10}, quorum.VerdictRefused, "a max of 10 for a section of an exact space"},
		{"records for an ordinary section", noExact, quorum.VerdictUnknown, ""},
		{"a lower epoch", low, quorum.VerdictNack, ""},
		{"another epoch than the item's", other, quorum.VerdictRefused, "a change of epoch 3@"},
		{"half a batch", cut, quorum.VerdictRefused, "encoding ends early"},
		{"a time ahead of the clock", logItem(exact.Change{Batch: late}), quorum.VerdictRefused, "time too far beyond the clock"},
	} {
		if row.item.Register == section {
			b.mustPrepare(1, alice, quorum.VerdictOK)
			row.want, row.why = quorum.VerdictRefused, "a FILL for a section that is not exact"
		}
		res, err := b.step(alice, row.item)
		if err != nil || res[0].Verdict != row.want || !strings.Contains(res[0].Message, row.why) {
			t.Errorf("%s: got %+v, %v, want %v %q", row.name, res, err, row.want, row.why)
		}
	}
	if got, want := b.state(exactSection).At(), batch.End(); got != want {
		t.Errorf("the copy stands at %v, want %v", got, want)
	}
	for r, want := range map[seq.Register]quorum.Verdict{section: quorum.VerdictRefused, seq.SectionRegister(99): quorum.VerdictUnknown} {
		if got := b.copies(r)[0]; got.Verdict != want || len(got.Payload) > 0 {
			t.Errorf("the copy of %s: got %+v, want %v", r, got, want)
		}
	}
}

// A store that lacks records says where it stands, has promised the epoch all the same, and
// takes a whole copy.
func TestAStoreThatIsBehindSaysSoAndIsFilled(t *testing.T) {
	b := newExact(t)
	o := b.owner(1, alice)
	first := taken(t, o, "a")
	taken(t, o, "between")
	second := taken(t, o, "b")
	got := b.log(alice, exact.Change{Batch: second})
	if got.Verdict != quorum.VerdictElsewhere || !strings.Contains(got.Message, "at 0 of") || got.Promised.Round != 1 {
		t.Fatalf("got %+v, want elsewhere", got)
	}
	b.reopen()
	if got := b.copies(exactSection)[0]; got.Promised != (seq.Epoch{Round: 1, Session: alice}) || got.Index != 0 {
		t.Errorf("after a restart: got %+v, want the promise alone", got)
	}
	if got := b.log(alice, exact.Change{Whole: o.State()}); got.Verdict != quorum.VerdictOK {
		t.Errorf("filled: %+v", got)
	}
	for name, batch := range map[string]exact.Batch{"the first again": first, "the second again": second, "none": {Epoch: second.Epoch, After: second.End()}} {
		before := b.gate.DB.Copy(1).At()
		if got := b.log(alice, exact.Change{Batch: batch}); got.Verdict != quorum.VerdictOK || b.gate.DB.Copy(1).At() != before {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

// recorder notes in which order a store writes, and fails where it is told to.
type recorder struct {
	*heldDB
	calls []string
	fail  string
}

func (r *recorder) note(what string) error {
	r.calls = append(r.calls, what)
	if what == r.fail {
		return errors.New("input/output error")
	}
	return nil
}

func (r *recorder) Commit(u disk.Update) (uint64, error) {
	if err := r.note("database"); err != nil {
		return 0, err
	}
	return r.heldDB.DB.Commit(u)
}

func (r *recorder) Log(e []exact.Entry) (batches, bytes uint64, err error) {
	if err := r.note("journal"); err != nil {
		return 0, 0, err
	}
	return r.heldDB.DB.Log(e)
}

func TestPromisesAreOnDiskBeforeTheirRecordsAndBothBeforeTheAnswer(t *testing.T) {
	b := newExact(t)
	o := b.owner(1, alice)
	rec := &recorder{heldDB: b.gate}
	b.writer.disk = rec
	for _, row := range []struct {
		name string
		want string
	}{
		{"a batch that raises the promise", "database journal"},
		{"the next one", "journal"},
	} {
		rec.calls = nil
		if got := b.log(alice, exact.Change{Batch: taken(t, o, row.name)}); got.Verdict != quorum.VerdictOK {
			t.Fatalf("%s: %+v", row.name, got)
		}
		if got := strings.Join(rec.calls, " "); got != row.want {
			t.Errorf("%s: wrote to %q, want %q", row.name, got, row.want)
		}
	}
	rec.fail = "journal"
	res, err := b.step(alice, logItem(exact.Change{Batch: taken(t, o, "lost")}))
	if !errors.Is(err, ErrCommit) {
		t.Errorf("after a write that failed: got %+v, %v, want ErrCommit", res, err)
	}
	await(t, "the replica to fail", b.writer.failed)
	if _, err := b.Read(t.Context(), quorum.ReadRequest{Ref: b.ref, Session: alice, Registers: []seq.Register{exactSection}, Copies: true}); err == nil {
		t.Error("a copy is shown that may not be on disk")
	}
}

// A crash must not take back a state that a read has shown.
func TestACopyIsShownAfterItsCommit(t *testing.T) {
	b := newExact(t)
	o := b.owner(1, alice)
	release := b.shutExact()
	answers := make(chan error, 2)
	go func() {
		_, err := b.step(alice, logItem(exact.Change{Batch: taken(t, o, "a")})) // with a promise, which the gate holds up
		answers <- err
	}()
	await(t, "the commit", b.gate.entered)
	shown := make(chan quorum.Result, 1)
	go func() {
		reply, err := b.Read(context.Background(), quorum.ReadRequest{Ref: b.ref, Session: alice, Registers: []seq.Register{exactSection}, Copies: true})
		if err == nil {
			shown <- reply.Results[0]
		}
		answers <- err
	}()
	waitFor(t, "the read to queue", func() bool { return len(b.writer.queue) == 1 })
	if len(shown) > 0 || len(answers) > 0 {
		t.Error("answered before the commit")
	}
	release()
	for range 2 {
		if err := await(t, "an answer", answers); err != nil {
			t.Fatal(err)
		}
	}
	if got := <-shown; got.Index != 2 {
		t.Errorf("got %+v, want both records", got)
	}
}

// A session remembers how far the disk was: an older copy of the journal beside the newest
// database, or the other way round, or both, never votes.
func TestAnOldJournalThatIsPutBackIsFoundOut(t *testing.T) {
	for _, what := range []string{"journal", "store.db", ""} {
		t.Run(cmp.Or(what, "both"), func(t *testing.T) {
			b := newExact(t)
			o := b.owner(1, alice)
			b.log(alice, exact.Change{Batch: taken(t, o, "a")})
			if err := b.close(); err != nil {
				t.Fatal(err)
			}
			old := t.TempDir()
			copyFiles(t, b.dir, old, what)
			b.replica = nil
			b.reopen()
			for i := range 10 {
				b.log(alice, exact.Change{Batch: taken(t, o, fmt.Sprint(i))})
				if what == "store.db" {
					b.mustPrepare(uint64(i), alice, quorum.VerdictOK)
				}
			}
			seen := b.core.claim()
			if err := b.close(); err != nil {
				t.Fatal(err)
			}
			copyFiles(t, old, b.dir, what)
			b.replica = nil
			b.restart()
			b.clock.Advance(time.Minute)
			req := b.renewal(alice)
			req.Seen = []quorum.Claim{seen}
			if reply, err := b.Renew(t.Context(), req); !errors.Is(err, seq.ErrNotVoting) {
				t.Errorf("got %+v, %v, want ErrNotVoting", reply, err)
			}
		})
	}
}

// copyFiles copies those whose name begins so.
func copyFiles(t *testing.T, from, to, prefix string) {
	t.Helper()
	entries, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), prefix) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(from, e.Name()))
		if err == nil {
			err = os.WriteFile(filepath.Join(to, e.Name()), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestAStoreWithoutItsJournalDoesNotStart(t *testing.T) {
	for name, row := range map[string]struct {
		harm func(path string) error
		want error
	}{
		"gone":      {os.Remove, journal.ErrMissing},
		"empty":     {func(path string) error { return os.Truncate(path, 0) }, journal.ErrDamaged},
		"not ready": {func(path string) error { return os.WriteFile(path, make([]byte, 1<<16), 0o600) }, journal.ErrDamaged},
	} {
		t.Run(name, func(t *testing.T) {
			b := newExact(t)
			if got := b.log(alice, exact.Change{Batch: taken(t, b.owner(1, alice), "a")}); got.Verdict != quorum.VerdictOK {
				t.Fatalf("%+v", got)
			}
			if err := b.close(); err != nil {
				t.Fatal(err)
			}
			files, err := filepath.Glob(filepath.Join(b.dir, "journal-*"))
			if err != nil || len(files) != 2 {
				t.Fatalf("files %q, %v", files, err)
			}
			for _, f := range files {
				if err := row.harm(f); err != nil {
					t.Fatal(err)
				}
			}
			cfg := DefaultConfig()
			cfg.Listen, cfg.DataDir = "127.0.0.1:0", b.dir
			if _, err := New(cfg); !errors.Is(err, row.want) || !strings.Contains(err.Error(), "seqctl store replace") {
				t.Errorf("got %v, want %v with advice", err, row.want)
			}
		})
	}
}

// Records of an epoch that the database did not promise: it is an older copy.
func TestRecordsAboveThePromiseAreRefused(t *testing.T) {
	b := newExact(t)
	b.log(alice, exact.Change{Batch: taken(t, b.owner(1, alice), "a")})
	_, err := newReplica(Config{MaxLease: time.Second, Clock: clock.NewManual(time.Hour)}.withDefaults(), b.gate, disk.Meta{},
		map[seq.Register]acceptor.State{exactSection: {}})
	if !errors.Is(err, acceptor.ErrInvariant) {
		t.Errorf("got %v, want ErrInvariant", err)
	}
}

func TestADiskWithoutRoomForTheJournalIsNearlyFull(t *testing.T) {
	b := newExact(t)
	o := b.owner(1, alice)
	free, err := b.gate.DB.Free()
	if err != nil {
		t.Fatal(err)
	}
	b.writer.nearFull.Store(free / 2)
	if got := b.log(alice, exact.Change{Batch: taken(t, o, "a")}); got.Verdict != quorum.VerdictOK {
		t.Fatalf("%+v", got)
	}
	b.writer.nearFull.Store(math.MaxUint64 >> 1)
	if got := b.log(alice, exact.Change{Batch: taken(t, o, "b")}); got.Verdict != quorum.VerdictFull {
		t.Errorf("got %+v, want full", got)
	}
	if got := b.state(exactSection).At().Index; got != 2 {
		t.Errorf("the copy stands at %d, want 2", got)
	}
}

// Under a load of exact spaces alone no register changes.
func TestWhatIsRememberedOfFellowsIsOnDiskWithTheNextBatch(t *testing.T) {
	b := newExact(t)
	o := b.owner(1, alice)
	b.log(alice, exact.Change{Batch: taken(t, o, "a")})
	req := b.renewal(alice)
	if _, err := b.Renew(t.Context(), req); err != nil { // makes the bound
		t.Fatal(err)
	}
	newest := quorum.Claim{Store: "u-b", Boot: 4, Commits: 70, Seal: [16]byte{1}}
	req.Fellows = []quorum.Claim{newest}
	if _, err := b.Renew(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	b.log(alice, exact.Change{Batch: taken(t, o, "b")})
	b.gate.DB.Close() // a crash
	db, meta, _, err := disk.Open(b.dir, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	db.Close()
	if !slices.Equal(meta.Remembered, []quorum.Claim{newest}) {
		t.Errorf("on disk after a crash: %+v, want %+v", meta.Remembered, newest)
	}
}

// A process that ends between the two leaves a promise without the records that came with it,
// and the store goes on.
func TestAPromiseWithoutItsRecordsIsFineAfterACrash(t *testing.T) {
	b := newExact(t)
	o := b.owner(1, alice)
	rec := &recorder{heldDB: b.gate, fail: "journal"}
	b.writer.disk = rec
	batch := taken(t, o, "a")
	if _, err := b.step(alice, logItem(exact.Change{Batch: batch})); !errors.Is(err, ErrCommit) {
		t.Fatalf("got %v, want ErrCommit", err)
	}
	await(t, "the replica to fail", b.writer.failed)
	if err := b.close(); err != nil {
		t.Fatal(err)
	}
	b.replica = nil
	b.reopen()
	if got := b.copies(exactSection)[0]; got.Promised != batch.Epoch || got.Index != 0 {
		t.Errorf("got %+v, want the promise alone", got)
	}
	if got := b.log(alice, exact.Change{Batch: batch}); got.Verdict != quorum.VerdictOK {
		t.Errorf("the batch again: %+v", got)
	}
}

// A cluster without an exact space may be given one: its journal is made with the registers.
func TestAnExactSpaceThatIsAddedHasAJournal(t *testing.T) {
	b := newVoter(t)
	m, added, err := b.core.mapping.Add(seq.Space{Name: "order", Sections: 2, Mode: seq.Exact, Window: testWindow})
	if err != nil || !added {
		t.Fatal(added, err)
	}
	if err := b.change.extend(t.Context(), "c1", 0, m); err != nil {
		t.Fatal(err)
	}
	r := seq.SectionRegister(m.Spaces[1].First)
	o := b.ownerOf(1, alice, b.state(r))
	item := logItem(exact.Change{Batch: taken(t, o, "a")})
	item.Register = r
	for _, when := range []string{"at once", "after a restart"} {
		if res, err := b.step(alice, item); err != nil || res[0].Verdict != quorum.VerdictOK {
			t.Errorf("%s: got %+v, %v", when, res, err)
		}
		if got, want := b.state(r).Describe(), o.State().Describe(); got != want {
			t.Errorf("%s: got %s, want %s", when, got, want)
		}
		b.reopen()
	}
}

// BenchmarkAppend is one owner that sends a batch at a time: a fdatasync each.
func BenchmarkAppend(b *testing.B) {
	for _, n := range []int{1, 64, 512} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			dir := filepath.Join(b.TempDir(), "a")
			if err := Init(InitConfig{DataDir: dir, ClusterID: "c1", Name: "a", MemberNames: []string{"a"},
				Spaces: []seq.Space{{Name: "order", Sections: 1, Mode: seq.Exact}}}); err != nil {
				b.Fatal(err)
			}
			db, meta, registers, err := disk.Open(dir, "", nil)
			if err != nil {
				b.Fatal(err)
			}
			r, err := newReplica(Config{MaxLease: time.Second}.withDefaults(), db, meta, registers)
			if err != nil {
				b.Fatal(err)
			}
			defer r.close()
			if err := r.change.bind(b.Context(), binding{cluster: "c1", era: 0, members: []quorum.Member{{UUID: meta.UUID, Name: "a"}}}); err != nil {
				b.Fatal(err)
			}
			o, err := exact.NewOwner(exact.Config{Window: 600_000}, seq.Epoch{Round: 1, Session: alice}, &exact.State{}, time.Now().UnixMilli())
			if err != nil {
				b.Fatal(err)
			}
			ref, taken := r.describe().Ref, 0
			for b.Loop() {
				now := time.Now().UnixMilli()
				for range n {
					taken++
					if _, err := o.Take(seq.UID(taken%1000), 1, fmt.Sprint(taken), now, now); err != nil {
						b.Fatal(err)
					}
				}
				batch, _ := o.Begin()
				o.Committed()
				reply, err := r.Step(b.Context(), quorum.StepRequest{Ref: ref, Session: alice, Secret: sessiontest.SecretOf(alice),
					Items: []quorum.StepItem{{Register: seq.SectionRegister(0), Round: 1, Log: (&exact.Change{Batch: batch}).AppendTo(nil)}}})
				if err != nil || reply.Results[0].Verdict != quorum.VerdictOK {
					b.Fatal(reply, err)
				}
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "records/s")
		})
	}
}
