package processes

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/base/counters"
	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/internal/wire/storeclient"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr/disk"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

// victim is a UID, and all that anybody can read about the node that has it.
type victim struct {
	c       *localcluster.Cluster
	uid     seq.UID
	section seq.SectionID
	owner   *localcluster.Process
	session seq.Session
	round   uint64
	sdk     *client.Client
	last    seq.Seq
}

func newVictim(t *testing.T, c *localcluster.Cluster) *victim {
	t.Helper()
	v := &victim{c: c, uid: 42}
	v.section = localSection(t, c, v.uid)
	var err error
	if v.sdk, err = client.New(harness.Within(t), client.Config{Addrs: c.Addrs(localcluster.RoleAlloc), AttemptTimeout: attempt}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.sdk.Close() })
	v.take(t, 5)
	admin := pb.NewAdminClient(dialed(t, c.Addrs(localcluster.RoleAlloc)[0]))
	harness.Until(t, "the owner is known", func() bool {
		reply, err := admin.Leases(harness.Within(t), &pb.LeasesRequest{Sections: []uint32{uint32(v.section)}})
		if err != nil || len(reply.GetLeases()) != 1 || reply.GetLeases()[0].GetNode() == "" {
			return false
		}
		l := reply.GetLeases()[0]
		v.owner, v.session, v.round = c.Process(l.GetNode()), seq.Session(l.GetSession()), l.GetRound()
		return v.owner != nil
	})
	return v
}

// take takes n numbers, each of which must be above all before.
func (v *victim) take(t *testing.T, n int) {
	t.Helper()
	for range n {
		got, err := v.sdk.Next(harness.Within(t), client.Key{UID: v.uid})
		if err != nil {
			t.Fatal(err)
		}
		if got <= v.last {
			t.Fatalf("UID %d got %d after %d", v.uid, got, v.last)
		}
		v.last = got
	}
}

// stores are clients of all stores, as whoever can reach them has.
func (v *victim) stores(t *testing.T) storeclient.Cluster {
	t.Helper()
	cluster, err := storeclient.Connect(harness.Within(t), v.c.Addrs(localcluster.RoleStore))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cluster.Close() })
	return cluster
}

func TestAForgedHandOverOfferMakesNoNumberComeTwice(t *testing.T) {
	c := start(t, nil)
	v := newVictim(t, c)
	forged := counters.New(0).AppendBinary(nil) // nothing was handed out, it says
	for _, p := range c.Processes(localcluster.RoleAlloc) {
		conn := dialed(t, p.Addr)
		status, err := pb.NewAdminClient(conn).Status(harness.Within(t), &pb.StatusRequest{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = pb.NewPeerClient(conn).Offer(harness.Within(t), &pb.OfferRequest{ClusterId: status.GetClusterId(), From: uint64(v.session), To: status.GetSession(),
			Sections: []*pb.SealedSection{{Section: uint32(v.section), Round: v.round, Counters: forged}}})
		if err != nil {
			t.Fatalf("the offer did not get to %s: %v", p.Name, err)
		}
	}
	if err := v.owner.Kill(); err != nil {
		t.Fatal(err)
	}
	v.take(t, 10)
}

func TestNobodyEndsStepsOrRenewsAnothersSession(t *testing.T) {
	c := start(t, nil)
	v := newVictim(t, c)
	cluster, lie := v.stores(t), seq.NewSecret("")
	section := seq.SectionRegister(v.section)
	for _, s := range cluster.Stores {
		ctx, ref := harness.Within(t), cluster.Identity.Ref
		_, prepare := s.Client.Prepare(ctx, quorum.PrepareRequest{Ref: ref, Session: v.session, Secret: lie, Items: []quorum.PrepareItem{{Register: section, Round: v.round + 9}}})
		_, step := s.Client.Step(ctx, quorum.StepRequest{Ref: ref, Session: v.session, Secret: lie, Items: []quorum.StepItem{{Register: section, Round: v.round, Max: uint64(seq.MaxSeq)}}})
		_, renew := s.Client.Renew(ctx, quorum.RenewRequest{Ref: ref, Session: v.session, Secret: lie, Name: v.owner.Name, Lease: time.Second, Drop: []quorum.LeaseItem{{Register: section, Round: v.round}}})
		_, release := s.Client.Release(ctx, quorum.ReleaseRequest{Ref: ref, Session: v.session, Secret: lie, All: true})
		for what, err := range map[string]error{"prepare": prepare, "step": step, "renew": renew, "release": release} {
			if !errors.Is(err, seq.ErrNotSession) {
				t.Errorf("%s at %s: got %v, want ErrNotSession", what, s.Addr, err)
			}
		}
	}
	before := v.last
	v.take(t, 10)
	if v.last != before+10 {
		t.Errorf("10 numbers after %d end at %d: the owner has lost its section", before, v.last)
	}
}

func TestALieAboutItsDiskSilencesNoStore(t *testing.T) {
	c := start(t, nil)
	v := newVictim(t, c)
	cluster, own := v.stores(t), seq.NewSecret("")
	for _, s := range cluster.Stores {
		_, err := s.Client.Renew(harness.Within(t), quorum.RenewRequest{Ref: cluster.Identity.Ref, Session: own.Session(), Secret: own, Name: "liar", Lease: time.Second,
			Seen: []quorum.Claim{{Store: s.Client.UUID(), Boot: 1 << 40, Commits: 1 << 63}}})
		if err != nil {
			t.Errorf("%s: %v", s.Addr, err)
		}
		if id, err := s.Client.Describe(harness.Within(t)); err != nil || !id.Voting {
			t.Errorf("%s: voting %v, %q, %v", s.Addr, id.Voting, id.State, err)
		}
	}
	v.take(t, 10)
}

func TestAnOldDiskThatIsPutBackNeverVotes(t *testing.T) {
	c := start(t, smallSteps)
	v := newVictim(t, c)
	store := c.Processes(localcluster.RoleStore)[2]
	file := filepath.Join(store.Dir, disk.FileName)
	again := func(do func()) {
		t.Helper()
		if err := store.Stop(harness.Within(t)); err != nil {
			t.Fatal(err)
		}
		do()
		if err := store.Start(); err != nil {
			t.Fatal(err)
		}
	}
	old := filepath.Join(t.TempDir(), "old")
	copyTo := func(to, from string) {
		t.Helper()
		text, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(to, text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	state := func(of *localcluster.Process) (quorum.Identity, error) {
		one, err := storeclient.Dial(of.Addr)
		if err != nil {
			return quorum.Identity{}, err
		}
		defer one.Close()
		return one.Describe(harness.Within(t))
	}
	var then disk.Meta
	again(func() {
		copyTo(old, file)
		var err error
		if then, _, err = disk.Inspect(store.Dir); err != nil {
			t.Fatal(err)
		}
	})
	harness.Until(t, "the store votes", func() bool { id, err := state(store); return err == nil && id.Voting })
	v.take(t, 200) // steps of 20: the stores write
	for _, fellow := range c.Processes(localcluster.RoleStore)[:2] {
		harness.Until(t, "the fellow stores have heard of more than the copy has", func() bool {
			id, err := state(fellow)
			return err == nil && slices.ContainsFunc(id.Remembered, func(c quorum.Claim) bool {
				return c.Store == then.UUID && c.Boot > then.BootCount && c.Commits > then.Commits+1 // its start is one
			})
		})
	}
	again(func() { copyTo(file, old) })
	voted := false
	harness.Until(t, "the old disk is found out", func() bool {
		id, err := state(store)
		voted = voted || err == nil && id.Voting
		return err == nil && strings.Contains(id.State, "distrusted")
	})
	if voted {
		t.Error("it voted before")
	}
	v.take(t, 50)
}
