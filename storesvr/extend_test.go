package storesvr

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seqsvr/seqsvr/exact"
	"github.com/seqsvr/seqsvr/internal/base/clock"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr/disk"
	"github.com/seqsvr/seqsvr/tests/kit/sessiontest"
)

// with is the store's mapping with spaces added.
func (b *bench) with(spaces ...seq.Space) seq.Mapping {
	b.t.Helper()
	m := b.describe().Mapping
	for _, s := range spaces {
		next, _, err := m.Add(s)
		if err != nil {
			b.t.Fatal(err)
		}
		m = next
	}
	return m
}

// prepareAt is a PREPARE of alice for a section.
func (b *bench) prepareAt(id seq.SectionID) quorum.Result {
	b.t.Helper()
	reply, err := b.Prepare(b.t.Context(), quorum.PrepareRequest{Ref: b.ref, Session: alice, Secret: sessiontest.SecretOf(alice),
		Items: []quorum.PrepareItem{{Register: seq.SectionRegister(id), Round: 9}}})
	if err != nil {
		b.t.Fatal(err)
	}
	return reply.Results[0]
}

func TestSectionsOfASpaceAreUnknownUntilTheStoreHasHeardOfIt(t *testing.T) {
	b := newVoter(t)
	if got := b.prepareAt(4).Verdict; got != quorum.VerdictUnknown {
		t.Errorf("before: got %v, want unknown", got)
	}
	m := b.with(seq.Space{Name: "room", Sections: 2})
	release := b.shut()
	done := make(chan error, 1)
	go func() { done <- b.change.extend(t.Context(), "c1", 0, m) }()
	waitFor(t, "the commit", func() bool {
		u := b.gate
		u.mu.Lock()
		defer u.mu.Unlock()
		n := len(u.updates)
		return n > 0 && u.updates[n-1].Mapping != nil
	})
	reply, err := b.Read(t.Context(), quorum.ReadRequest{Ref: b.ref, Registers: []seq.Register{seq.SectionRegister(4)}})
	if err != nil || reply.Results[0].Verdict != quorum.VerdictUnknown || len(b.describe().Mapping.Spaces) != 1 || len(done) > 0 {
		t.Errorf("before it is on disk: %v, %v, %+v", reply.Results[0].Verdict, err, b.describe().Mapping)
	}
	release()
	if err := await(t, "the answer", done); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if diff := cmp.Diff(m, b.describe().Mapping); diff != "" {
			t.Errorf("mapping (-want +got)\n%s", diff)
		}
		b.reopen()
	}
	if got := b.prepareAt(5); got.Verdict != quorum.VerdictOK || got.Max != 0 {
		t.Errorf("after: got %v with max %d", got.Verdict, got.Max)
	}
	if got := b.prepareAt(6).Verdict; got != quorum.VerdictUnknown {
		t.Errorf("a section that is of no space: got %v", got)
	}
}

func TestASpaceThatIsToldAgainKeepsWhatItsSectionsHave(t *testing.T) {
	b := newVoter(t)
	first := b.with(seq.Space{Name: "room", Sections: 2})
	if err := b.change.extend(t.Context(), "c1", 0, first); err != nil {
		t.Fatal(err)
	}
	b.prepareAt(4)
	second := b.with(seq.Space{Name: "pts", Sections: 1})
	for _, m := range []seq.Mapping{first, second, first, second} {
		if err := b.change.extend(t.Context(), "c1", 0, m); err != nil {
			t.Fatal(err)
		}
	}
	b.reopen()
	reply, err := b.Read(t.Context(), quorum.ReadRequest{Ref: b.ref, Registers: []seq.Register{seq.SectionRegister(4), seq.SectionRegister(6)}})
	if err != nil || reply.Results[0].Promised.Session != alice || reply.Results[1].Verdict != quorum.VerdictOK {
		t.Errorf("got %+v, %v", reply.Results, err)
	}
	if diff := cmp.Diff(second, b.describe().Mapping); diff != "" {
		t.Errorf("mapping (-want +got)\n%s", diff)
	}
}

func TestSpacesOfOneGroupAreAddedOneAfterTheOther(t *testing.T) {
	b := newVoter(t)
	first, second := b.with(seq.Space{Name: "room", Sections: 2}), b.with(seq.Space{Name: "room", Sections: 2}, seq.Space{Name: "pts", Sections: 3})
	for len(b.gate.entered) > 0 { // of newVoter
		<-b.gate.entered
	}
	release := b.shut()
	answers := make(chan error, 4)
	go func() { _, err := b.prepare(1, alice); answers <- err }()
	await(t, "a commit in the way", b.gate.entered)
	for _, m := range []seq.Mapping{first, second, first} {
		go func() { answers <- b.change.extend(t.Context(), "c1", 0, m) }()
	}
	waitFor(t, "all to queue", func() bool { return len(b.writer.queue) == 3 })
	release()
	for range 4 {
		if err := await(t, "an answer", answers); err != nil {
			t.Error(err)
		}
	}
	b.reopen()
	if diff := cmp.Diff(second, b.describe().Mapping); diff != "" {
		t.Errorf("mapping (-want +got)\n%s", diff)
	}
	if got := b.prepareAt(8); got.Verdict != quorum.VerdictOK {
		t.Errorf("the last section: %v", got.Verdict)
	}
}

func TestAStoreRefusesAMappingThatIsNotItsOwnWithSpacesAdded(t *testing.T) {
	b := newVoter(t)
	if err := b.change.extend(t.Context(), "c1", 0, b.with(seq.Space{Name: "room", Sections: 2})); err != nil {
		t.Fatal(err)
	}
	want := b.describe().Mapping
	other, err := seq.NewMapping(seq.Space{Name: "user", Sections: 5})
	if err != nil {
		t.Fatal(err)
	}
	changed := seq.Mapping{Spaces: append([]seq.Space{}, want.Spaces...)}
	changed.Spaces[1].Mode = seq.Strict
	for name, try := range map[string]struct {
		cluster string
		era     seq.Era
		m       seq.Mapping
		want    error
	}{
		"of other sections":      {"c1", 0, other, seq.ErrBadMapping},
		"of another added space": {"c1", 0, changed, seq.ErrBadMapping},
		"of another cluster":     {"c2", 0, b.with(seq.Space{Name: "pts"}), seq.ErrForeignCluster},
		"of another era":         {"c1", 1, b.with(seq.Space{Name: "pts"}), seq.ErrStaleEra},
	} {
		if err := b.change.extend(t.Context(), try.cluster, try.era, try.m); !errors.Is(err, try.want) {
			t.Errorf("%s: got %v, want %v", name, err, try.want)
		}
	}
	b.gate.mu.Lock()
	b.gate.free = func() (uint64, error) { return 1, nil }
	b.gate.mu.Unlock()
	b.writer.nearFull.Store(1 << 20)
	if err := b.change.extend(t.Context(), "c1", 0, b.with(seq.Space{Name: "pts"})); !errors.Is(err, seq.ErrStoreFull) {
		t.Errorf("on a full disk: got %v", err)
	}
	if diff := cmp.Diff(want, b.describe().Mapping); diff != "" {
		t.Errorf("mapping (-want +got)\n%s", diff)
	}
}

// In a restored era the sections of an added space may have handed out numbers before, and no store
// knows of them. They begin at the floor of the era. Exact sections begin with the copy that the
// store shows. Both go on from there after a restart.
func TestASpaceThatIsAddedInARestoredEraBeginsAtItsFloor(t *testing.T) {
	const floor = 1 << 36
	b := &bench{t: t, dir: filepath.Join(t.TempDir(), "a"), clock: clock.NewManual(time.Hour)}
	id, err := NewIdentity(InitConfig{DataDir: b.dir, ClusterID: "c1", Name: "a", MemberNames: testMembers, Spaces: []seq.Space{{Name: "user", Sections: 4}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := disk.Create(b.dir, id, disk.Filling{Floors: disk.Floors{Floors: quorum.Floors{Section: floor}}}); err != nil {
		t.Fatal(err)
	}
	b.reopen()
	if err := b.change.bind(t.Context(), binding{cluster: "c1", members: b.fellows()}); err != nil {
		t.Fatal(err)
	}
	b.ref = b.describe().Ref
	if err := b.vouch("c1", b.describe().Nonce, b.noClaims("u-b", "u-c")); err != nil {
		t.Fatal(err)
	}
	m := b.with(seq.Space{Name: "room", Sections: 2}, seq.Space{Name: "bills", Sections: 2, Mode: seq.Exact, Window: testWindow})
	if err := b.change.extend(t.Context(), "c1", 0, m); err != nil {
		t.Fatal(err)
	}
	bills := seq.SectionRegister(6)
	for range 2 {
		if got := b.prepareAt(4); got.Verdict != quorum.VerdictOK || got.Max != floor || got.Floor != floor {
			t.Errorf("an ordinary section: %v, max %d, floor %d", got.Verdict, got.Max, got.Floor)
		}
		if s := b.state(bills); s.Last(7) != floor || s.At().Index != 0 {
			t.Errorf("an exact section: %s", s.Describe())
		}
		b.reopen()
		if err := b.vouch("c1", b.describe().Nonce, b.noClaims("u-b", "u-c")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.Prepare(t.Context(), quorum.PrepareRequest{Ref: b.ref, Session: alice, Secret: sessiontest.SecretOf(alice),
		Items: []quorum.PrepareItem{{Register: bills, Round: 9}}}); err != nil {
		t.Fatal(err)
	}
	o := b.ownerOf(9, alice, b.state(bills))
	change := exact.Change{Batch: taken(t, o, "one", "two")}
	reply, err := b.Step(t.Context(), quorum.StepRequest{Ref: b.ref, Session: alice, Secret: sessiontest.SecretOf(alice),
		Items: []quorum.StepItem{{Register: bills, Round: 9, Log: change.AppendTo(nil)}}})
	if err != nil || reply.Results[0].Verdict != quorum.VerdictOK {
		t.Fatalf("%+v, %v", reply, err)
	}
	b.reopen()
	if err := b.vouch("c1", b.describe().Nonce, b.noClaims("u-b", "u-c")); err != nil {
		t.Fatal(err)
	}
	if s := b.state(bills); s.Last(7) != floor+2 || s.Last(8) != floor {
		t.Errorf("after a restart: %s", s.Describe())
	}
}
