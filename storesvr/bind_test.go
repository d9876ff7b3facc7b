package storesvr

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seqsvr/seqsvr/internal/base/clock"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr/acceptor"
	"github.com/seqsvr/seqsvr/storesvr/disk"
	"github.com/seqsvr/seqsvr/tests/kit/sessiontest"
)

func TestRequestsOfAnotherClusterEraOrMemberListAreRefused(t *testing.T) {
	b := newVoter(t)
	rows := []struct {
		name   string
		change func(*quorum.Ref)
		want   error
	}{
		{"itself", func(*quorum.Ref) {}, nil},
		{"another cluster", func(r *quorum.Ref) { r.Cluster = "c2" }, seq.ErrForeignCluster},
		{"another era", func(r *quorum.Ref) { r.Era++ }, seq.ErrStaleEra},
		{"another member list version", func(r *quorum.Ref) { r.Members++ }, seq.ErrStaleEra},
		{"other members", func(r *quorum.Ref) { r.MembersHash++ }, seq.ErrStaleEra},
		{"nothing", func(r *quorum.Ref) { *r = quorum.Ref{} }, seq.ErrForeignCluster},
	}
	for _, row := range rows {
		ref := b.ref
		row.change(&ref)
		renewal := b.renewal(alice)
		renewal.Ref = ref
		_, read := b.Read(t.Context(), quorum.ReadRequest{Ref: ref})
		_, prepare := b.Prepare(t.Context(), quorum.PrepareRequest{Ref: ref, Session: alice, Secret: sessiontest.SecretOf(alice)})
		_, step := b.Step(t.Context(), quorum.StepRequest{Ref: ref, Session: alice, Secret: sessiontest.SecretOf(alice)})
		_, renew := b.Renew(t.Context(), renewal)
		_, release := b.Release(t.Context(), quorum.ReleaseRequest{Ref: ref, Session: alice, Secret: sessiontest.SecretOf(alice)})
		for what, err := range map[string]error{"read": read, "prepare": prepare, "step": step, "renew": renew, "release": release} {
			if !errors.Is(err, row.want) {
				t.Errorf("%s, %s: got %v, want %v", row.name, what, err, row.want)
			}
		}
	}
}

func TestAStoreDoesNotVoteBeforeItIsBound(t *testing.T) {
	b := newBench(t)
	b.ref = b.describe().Ref
	if got := b.describe(); got.Voting || !strings.Contains(got.State, "unbound") {
		t.Errorf("got voting %v, state %q", got.Voting, got.State)
	}
	if _, err := b.prepare(1, alice); !errors.Is(err, seq.ErrNotVoting) {
		t.Errorf("prepare: got %v, want ErrNotVoting", err)
	}
	if _, err := b.Renew(t.Context(), b.renewal(alice)); !errors.Is(err, seq.ErrNotVoting) {
		t.Errorf("renew: got %v, want ErrNotVoting", err)
	}
}

func TestAStoreIsBoundOnceAndForEver(t *testing.T) {
	b := newBench(t)
	own := quorum.Member{UUID: b.core.identity.UUID, Name: "a"}
	member := func(uuid, name string) quorum.Member { return quorum.Member{UUID: uuid, Name: name} }
	refused := []struct {
		name    string
		cluster string
		era     seq.Era
		members []quorum.Member
		want    error
	}{
		{"another cluster", "c2", 0, b.fellows(), seq.ErrForeignCluster},
		{"another era", "c1", 1, b.fellows(), seq.ErrStaleEra},
		{"too few", "c1", 0, b.fellows()[:2], seq.ErrBadArgument},
		{"too many", "c1", 0, append(b.fellows(), member("u-d", "d")), seq.ErrBadArgument},
		{"a name that init was not told", "c1", 0, []quorum.Member{own, member("u-b", "b"), member("u-d", "d")}, seq.ErrBadArgument},
		{"one uuid twice", "c1", 0, []quorum.Member{own, member("u-b", "b"), member("u-b", "c")}, seq.ErrBadArgument},
		{"an empty uuid", "c1", 0, []quorum.Member{own, member("u-b", "b"), member("", "c")}, seq.ErrBadArgument},
		{"another disk under its own name", "c1", 0, []quorum.Member{member("u-a", "a"), member("u-b", "b"), member("u-c", "c")}, seq.ErrBadArgument},
		{"its disk under another name", "c1", 0, []quorum.Member{member("u-a", "a"), {UUID: own.UUID, Name: "b"}, member("u-c", "c")}, seq.ErrBadArgument},
	}
	for _, row := range refused {
		if err := b.change.bind(t.Context(), binding{cluster: row.cluster, era: row.era, members: row.members}); !errors.Is(err, row.want) {
			t.Errorf("%s: got %v, want %v", row.name, err, row.want)
		}
	}
	if b.describe().Voting {
		t.Fatal("it votes after refused binds")
	}
	for range 2 { // again is fine
		if err := b.change.bind(t.Context(), binding{cluster: "c1", era: 0, members: b.fellows()}); err != nil {
			t.Fatal(err)
		}
	}
	if got := b.gate.commits(); got != 1 {
		t.Errorf("%d commits, want 1", got)
	}
	other := []quorum.Member{own, member("u-b", "b"), member("u-new", "c")}
	if err := b.change.bind(t.Context(), binding{cluster: "c1", era: 0, members: other}); !errors.Is(err, seq.ErrStaleEra) {
		t.Errorf("another list: got %v, want ErrStaleEra", err)
	}
	b.reopen()
	got := b.describe()
	if !got.Voting || got.Ref.Members != 1 || got.Ref.MembersHash != quorum.MembersHash(b.fellows()) {
		t.Errorf("after a restart: %+v", got.Identity)
	}
}

// putBack restarts the store on its disk as it was before f.
func (b *bench) putBack(f func()) {
	b.t.Helper()
	if err := b.close(); err != nil {
		b.t.Fatal(err)
	}
	copied := b.copyDisk()
	b.reopen()
	f()
	b.startOn(copied)
}

// copyDisk is what is on disk while no commit is under way.
func (b *bench) copyDisk() []byte {
	b.t.Helper()
	copied, err := os.ReadFile(filepath.Join(b.dir, disk.FileName))
	if err != nil {
		b.t.Fatal(err)
	}
	return copied
}

// startOn restarts the store on the copy.
func (b *bench) startOn(copied []byte) {
	b.t.Helper()
	if err := b.close(); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(b.dir, disk.FileName), copied, 0o600); err != nil {
		b.t.Fatal(err)
	}
	b.replica = nil
	b.restart()
}

func (b *bench) wantDistrusted(when string) {
	b.t.Helper()
	if _, err := b.prepare(1, bob); !errors.Is(err, seq.ErrNotVoting) {
		b.t.Errorf("%s: got %v, want ErrNotVoting", when, err)
	}
	if got := b.describe(); got.Voting || !strings.Contains(got.State, "distrusted") {
		b.t.Errorf("%s: voting %v, state %q", when, got.Voting, got.State)
	}
}

func TestAStoreWhoseDiskIsOlderThanItWasNeverVotesAgain(t *testing.T) {
	for _, who := range []string{"a session", "a session, by a promise", "a fellow store", "a fellow store, over the operator's connection"} {
		t.Run(who, func(t *testing.T) {
			b := newVoter(t)
			var seen quorum.Claim
			b.putBack(func() {
				for round := range uint64(3) {
					reply, err := b.Prepare(t.Context(), quorum.PrepareRequest{Ref: b.ref, Session: alice, Secret: sessiontest.SecretOf(alice),
						Items: []quorum.PrepareItem{{Register: section, Round: round + 1}}})
					if err != nil {
						t.Fatal(err)
					}
					seen = reply.Claim
				}
				if who == "a session" {
					reply, err := b.Renew(t.Context(), b.renewal(alice))
					if err != nil {
						t.Fatal(err)
					}
					seen = reply.Claim()
				}
			})
			if strings.HasPrefix(who, "a fellow") {
				seen.By = "u-b"
			}
			var err error
			if req := b.renewal(alice); strings.HasSuffix(who, "connection") {
				err = b.vouch("c1", b.describe().Nonce, []quorum.Claim{seen})
			} else {
				req.Seen = []quorum.Claim{seen}
				_, err = b.Renew(t.Context(), req)
			}
			if !errors.Is(err, seq.ErrNotVoting) {
				t.Errorf("got %v, want ErrNotVoting", err)
			}
			b.wantDistrusted("at once")
			b.clock.Advance(time.Hour)
			b.wantDistrusted("after the wait")
			b.reopen()
			b.wantDistrusted("after a restart")
		})
	}
}

func TestACopyOfADiskThatLacksOneCommitIsFoundOut(t *testing.T) {
	for name, putBack := range map[string]func(b *bench, f func()){
		"a copy of before the start": (*bench).putBack,
		// By its own start it has made as many commits as it lacks.
		"a copy of a store that ran": func(b *bench, f func()) {
			copied := b.copyDisk()
			f()
			b.startOn(copied)
		},
	} {
		b := newVoter(t)
		var seen quorum.Claim
		putBack(b, func() {
			b.mustPrepare(1, alice, quorum.VerdictOK)
			seen = b.core.claim()
		})
		req := b.renewal(alice)
		req.Seen = []quorum.Claim{seen}
		if _, err := b.Renew(t.Context(), req); !errors.Is(err, seq.ErrNotVoting) {
			t.Errorf("%s: got %v, want ErrNotVoting", name, err)
		}
	}
}

func TestAClaimWithoutTheStoresOwnSealIsNoise(t *testing.T) {
	b := newVoter(t)
	reply, err := b.Renew(t.Context(), b.renewal(alice))
	if err != nil {
		t.Fatal(err)
	}
	lies := []quorum.Claim{{Store: b.core.identity.UUID, Boot: 1, Commits: 1 << 63}, reply.Claim(), reply.Claim(), reply.Claim(), reply.Claim()}
	lies[1].Commits++
	lies[2].Boot++
	lies[3].By, lies[3].Commits = "u-b", 1<<63
	lies[4].By, lies[4].Commits = "u-c", 1<<63
	req := b.renewal(alice)
	req.Seen = lies
	if got, err := b.Renew(t.Context(), req); err != nil || got.Nonce != 0 {
		t.Errorf("got %+v, %v, want a lease", got, err)
	}
	b.restart()
	req.Nonce = b.describe().Nonce
	if got, err := b.Renew(t.Context(), req); err != nil || got.Nonce == 0 {
		t.Errorf("after a restart: got %+v, %v, want the wait to go on: no fellow was asked", got, err)
	}
}

func TestARestartedStoreVotesOnlyAfterItsFellowsWereAsked(t *testing.T) {
	b := newVoter(t)
	if _, err := b.Renew(t.Context(), b.renewal(alice)); err != nil {
		t.Fatal(err)
	}
	former := b.core.witness.nonce
	b.restart()
	nonce := b.describe().Nonce
	refused := func(when string) {
		t.Helper()
		if _, err := b.prepare(1, alice); !errors.Is(err, seq.ErrNotVoting) {
			t.Errorf("%s: prepare: got %v, want ErrNotVoting", when, err)
		}
		reply, err := b.Renew(t.Context(), b.renewal(alice))
		if err != nil || reply.Nonce != nonce || len(reply.Remembered) != 2 {
			t.Errorf("%s: renew: got %+v, %v, want nothing granted under nonce %x", when, reply, err, nonce)
		}
	}
	refused("at the start")
	for _, test := range []struct {
		name   string
		nonce  uint64
		claims []quorum.Claim
	}{
		{"asked for the start before", former, b.noClaims("u-b", "u-c")},
		{"one of two", nonce, b.noClaims("u-b")},
		{"one of two, twice", nonce, b.noClaims("u-b", "u-b")},
		{"one that is none", nonce, b.noClaims("u-x")},
		{"the store itself", nonce, b.noClaims(b.core.identity.UUID)},
	} {
		if err := b.vouch("c1", test.nonce, test.claims); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		refused(test.name)
	}
	if err := b.vouch("c1", nonce, b.noClaims("u-c")); err != nil {
		t.Fatal(err)
	}
	b.mustPrepare(1, alice, quorum.VerdictOK)
	if got := b.describe(); got.Nonce != 0 || !got.Voting {
		t.Errorf("after both: %+v", got.Identity)
	}
	if err := b.vouch("c1", nonce, b.noClaims("u-b")); err != nil { // of another caller, or late
		t.Fatal(err)
	}
	b.mustPrepare(2, alice, quorum.VerdictOK)
}

func TestARestartedStoreWithoutFellowsVotesAfterOneGrace(t *testing.T) {
	b := newVoter(t)
	b.mustPrepare(1, alice, quorum.VerdictOK)
	req := b.renewal(alice)
	req.Lease, req.Attach, req.Attached = 3*time.Second, []quorum.LeaseItem{{Register: section, Round: 1}}, 1
	if _, err := b.Renew(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	b.restart()
	wait := acceptor.GraceOf(3 * time.Second)
	b.clock.Advance(wait - 1)
	if _, err := b.prepare(1, alice); !errors.Is(err, seq.ErrNotVoting) {
		t.Errorf("a moment before: got %v, want ErrNotVoting", err)
	}
	b.clock.Advance(1)
	b.mustPrepare(1, alice, quorum.VerdictOK)
}

// A copy of a disk that was made after an orderly stop knows of nothing leased, but not of
// what was leased since.
func TestARestartedStoreWithoutFellowsWaitsForTheLongestLeaseEver(t *testing.T) {
	b := newVoter(t)
	req := b.renewal(alice)
	req.Lease = 5 * time.Second
	if _, err := b.Renew(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	b.clock.Advance(6 * time.Second)
	b.restart() // in order, nothing is leased
	if got := b.describe(); got.LeaseBound != 0 || got.Grace != 0 {
		t.Fatalf("after an orderly stop: bound %v, grace %v, want neither", got.LeaseBound, got.Grace)
	}
	b.clock.Advance(acceptor.GraceOf(5*time.Second) - 1)
	if _, err := b.prepare(1, alice); !errors.Is(err, seq.ErrNotVoting) {
		t.Errorf("a moment before: got %v, want ErrNotVoting", err)
	}
	b.clock.Advance(1)
	b.mustPrepare(1, alice, quorum.VerdictOK)
}

// The word of a store whose disk may be an older copy must not take the place of what
// others remember of it: it has started more often than the disk that was.
func TestAStoreMakesNoClaimBeforeItWasCompared(t *testing.T) {
	b := newVoter(t)
	b.mustPrepare(1, alice, quorum.VerdictOK)
	seen := b.core.claim()
	b.restart()
	reply, err := b.Renew(t.Context(), b.renewal(alice))
	if err != nil || reply.Nonce == 0 {
		t.Fatalf("got %+v, %v, want a store that is to be compared", reply, err)
	}
	for name, c := range map[string]quorum.Claim{"renew": reply.Claim(), "sealed": b.core.claim()} {
		if seen.Less(c) || c.Seal != [16]byte{} {
			t.Errorf("%s: claims %+v after %+v, want nothing", name, c, seen)
		}
	}
	if err := b.vouch("c1", reply.Nonce, b.noClaims("u-b", "u-c")); err != nil {
		t.Fatal(err)
	}
	if c := b.core.claim(); !seen.Less(c) {
		t.Errorf("when compared: claims %+v, want more than %+v", c, seen)
	}
}

func TestWhatIsRememberedOfFellowStoresOutlivesARestart(t *testing.T) {
	b := newVoter(t)
	newest := quorum.Claim{Store: "u-b", Boot: 4, Commits: 70, Seal: [16]byte{1}}
	older := quorum.Claim{Store: "u-b", Boot: 3, Commits: 90, Seal: [16]byte{2}}
	req := b.renewal(alice)
	req.Fellows = []quorum.Claim{newest, older, {Store: "u-x", Boot: 9, Commits: 9}, {Store: b.core.identity.UUID, Boot: 99, Commits: 9}}
	if _, err := b.Renew(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	b.mustPrepare(1, alice, quorum.VerdictOK) // a commit, which takes it along
	b.gate.DB.Close()                         // and a crash
	db, meta, _, err := disk.Open(b.dir, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	db.Close()
	if diff := cmp.Diff([]quorum.Claim{newest}, meta.Remembered); diff != "" {
		t.Errorf("on disk after a crash (-want +got)\n%s", diff)
	}
}

// A disk that was put back from before a change of the member list: whoever tells it the
// newer list must not make a voter of it, once a session has seen it newer.
func TestADiskOfAnOlderListIsFoundOutBeforeItIsBroughtUpToDate(t *testing.T) {
	b := newVoter(t)
	reply, err := b.Renew(t.Context(), b.renewal(alice))
	if err != nil {
		t.Fatal(err)
	}
	list := quorum.MemberList{Version: 2, R: 2, W: 2, Members: append(b.fellows()[:2:2], quorum.Member{UUID: "u-d", Name: "d"})}
	list.Sort()
	req := b.renewal(alice)
	req.Ref.Members, req.Ref.MembersHash = list.Version, quorum.MembersHash(list.Members)
	req.Seen = []quorum.Claim{reply.Claim()}
	if _, err := b.Renew(t.Context(), req); !errors.Is(err, seq.ErrStaleEra) {
		t.Errorf("seen as many as there are: got %v, want ErrStaleEra", err)
	}
	newer := reply.Claim()
	newer.Commits++
	newer.Seal = sealOf(b.core.witness.key, newer)
	req.Seen = []quorum.Claim{newer}
	if _, err := b.Renew(t.Context(), req); !errors.Is(err, seq.ErrNotVoting) {
		t.Errorf("seen more than there are: got %v, want ErrNotVoting", err)
	}
	if err := b.change.adopt(t.Context(), "c1", 0, list); err != nil {
		t.Fatal(err)
	}
	for _, when := range []string{"at once", "after a restart"} {
		b.ref = req.Ref
		if _, err := b.prepare(1, bob); !errors.Is(err, seq.ErrNotVoting) {
			t.Errorf("%s: got %v, want ErrNotVoting", when, err)
		}
		if got := b.describe(); got.Voting || !strings.Contains(got.State, "distrusted") {
			t.Errorf("%s: voting %v, state %q", when, got.Voting, got.State)
		}
		b.reopen()
	}
}

// newLearner is a store that is to be filled, of a list with two voters.
func newLearner(t *testing.T) (b *bench, list func(version uint64, learner bool) quorum.MemberList, adopt func(quorum.MemberList, error), fill func(quorum.MemberList, bool)) {
	t.Helper()
	mapping, err := seq.NewMapping(seq.Space{Name: "user", Sections: 4})
	if err != nil {
		t.Fatal(err)
	}
	b = &bench{t: t, dir: filepath.Join(t.TempDir(), "n"), clock: clock.NewManual(time.Hour)}
	if err := InitLearner(LearnerConfig{DataDir: b.dir, ClusterID: "c1", Name: "n", Mapping: mapping}); err != nil {
		t.Fatal(err)
	}
	b.reopen()
	list = func(version uint64, learner bool) quorum.MemberList {
		return quorum.MemberList{Version: version, R: 2, W: 2, Members: []quorum.Member{
			{UUID: "u-a", Name: "a"}, {UUID: "u-b", Name: "b"}, {UUID: b.core.identity.UUID, Name: "n", Learner: learner}}}
	}
	adopt = func(l quorum.MemberList, want error) {
		t.Helper()
		if err := b.change.adopt(t.Context(), "c1", 0, l); !errors.Is(err, want) {
			t.Errorf("list %d: got %v, want %v", l.Version, err, want)
		}
	}
	fill = func(l quorum.MemberList, complete bool) {
		t.Helper()
		if _, err := b.change.fill(t.Context(), fillRequest{ref: l.Ref("c1", 0), session: alice, secret: sessiontest.SecretOf(alice), complete: complete, bound: time.Second}); err != nil {
			t.Fatal(err)
		}
	}
	return b, list, adopt, fill
}

// An old disk of a learner that became a voter is put back while it is replaced, and the change goes
// back to the list of before: it is not filled, whatever the list says.
func TestAStoreThatWasTakenOutUnfilledIsNoVoterWhenTheChangeGoesBack(t *testing.T) {
	for _, before := range []bool{false, true} { // it was filled, under an older list
		b, list, adopt, fill := newLearner(t)
		adopt(list(2, true), nil)
		if before {
			fill(list(2, true), true)
			adopt(list(3, true), nil)
		}
		out := list(8, false)
		out.Members = out.Members[:2]
		adopt(out, nil)
		adopt(list(9, false), seq.ErrNotVoting)
		b.reopen()
		adopt(list(9, false), seq.ErrNotVoting)
	}
	_, list, adopt, fill := newLearner(t) // one that was a voter goes back
	adopt(list(2, true), nil)
	fill(list(2, true), true)
	adopt(list(3, false), nil)
	out := list(4, false)
	out.Members = out.Members[:2]
	adopt(out, nil)
	adopt(list(5, false), nil)
}

// A learner was filled with all that the voters of that list had confirmed. Under the next list
// they may have confirmed more without the learner.
func TestALearnerThatWasFilledUnderAnOlderListIsNoVoter(t *testing.T) {
	b, list, adopt, fill := newLearner(t)
	state := func(want string) {
		t.Helper()
		if got := b.describe(); got.Voting || !strings.Contains(got.State, want) {
			t.Errorf("voting %v, state %q, want %q", got.Voting, got.State, want)
		}
	}
	adopt(list(2, true), nil)
	fill(list(2, true), false)
	state("being filled")
	adopt(list(3, false), seq.ErrNotVoting)
	fill(list(2, true), true)
	state("learner: filled")
	adopt(list(4, true), nil)
	for range 2 {
		state("being filled")
		adopt(list(5, false), seq.ErrNotVoting)
		b.reopen()
	}
	fill(list(4, true), true)
	b.reopen()
	state("learner: filled")
	b.clock.Advance(time.Minute) // no fellow is asked here
	adopt(list(5, false), nil)
	if got := b.describe(); !got.Voting {
		t.Errorf("filled, and made a voter: %q", got.State)
	}
}

func TestInitRefusesQuorumsThatCouldMissEachOther(t *testing.T) {
	good := func() InitConfig {
		return InitConfig{DataDir: "unused", ClusterID: "c1", Name: "a", MemberNames: []string{"a", "b", "c"}, N: 3, R: 2, W: 2}
	}
	if err := good().Validate(); err != nil {
		t.Fatal(err)
	}
	rows := map[string]func(*InitConfig){
		"R+W = N":               func(c *InitConfig) { c.R, c.W = 1, 2 },
		"W = 1":                 func(c *InitConfig) { c.R, c.W = 3, 1 },
		"W = N/2":               func(c *InitConfig) { c.MemberNames = []string{"a", "b", "c", "d"}; c.N, c.R, c.W = 4, 3, 2 },
		"W above N":             func(c *InitConfig) { c.W = 4 },
		"R zero":                func(c *InitConfig) { c.R, c.W = 0, 3 },
		"N without names":       func(c *InitConfig) { c.N = 5 },
		"no members":            func(c *InitConfig) { c.N, c.MemberNames = 0, nil },
		"a name twice":          func(c *InitConfig) { c.MemberNames = []string{"a", "b", "b"} },
		"an empty name":         func(c *InitConfig) { c.MemberNames = []string{"a", "b", ""} },
		"not among the members": func(c *InitConfig) { c.Name = "d" },
		"no cluster id":         func(c *InitConfig) { c.ClusterID = "" },
		"a long cluster id":     func(c *InitConfig) { c.ClusterID = strings.Repeat("x", maxClusterID+1) },
		"no directory":          func(c *InitConfig) { c.DataDir = "" },
	}
	for name, change := range rows {
		cfg := good()
		change(&cfg)
		if err := cfg.Validate(); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: got %v, want ErrConfig", name, err)
		}
	}
	for n, want := range map[int][2]int{1: {1, 1}, 2: {1, 2}, 3: {2, 2}, 4: {2, 3}, 5: {3, 3}} {
		got := InitConfig{MemberNames: make([]string, n)}.withDefaults()
		if got.N != n || got.R != want[0] || got.W != want[1] {
			t.Errorf("defaults for %d stores: N %d, R %d, W %d, want R %d, W %d", n, got.N, got.R, got.W, want[0], want[1])
		}
	}
}

func TestAConfigThatCannotWorkIsRefused(t *testing.T) {
	good := DefaultConfig()
	good.DataDir = "unused"
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Config){
		"no directory":             func(c *Config) { c.DataDir = "" },
		"no listen address":        func(c *Config) { c.Listen = "" },
		"a listen address":         func(c *Config) { c.Listen = "here" },
		"an advertise address":     func(c *Config) { c.Advertise = "here" },
		"a gossip address":         func(c *Config) { c.GossipListen = "here" },
		"seeds without gossip":     func(c *Config) { c.GossipJoin = []string{"a:1"} },
		"a gossip profile":         func(c *Config) { c.GossipProfile = "slow" },
		"no lease":                 func(c *Config) { c.MaxLease = 0 },
		"a lease beyond all sense": func(c *Config) { c.MaxLease = 2 * time.Hour },
	} {
		cfg := good
		change(&cfg)
		if err := cfg.Validate(); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: got %v, want ErrConfig", name, err)
		}
	}
}
