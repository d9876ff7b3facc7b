package etcdstore_test

import (
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/internal/etcd/etcdstore"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/etcdmodel"
	"github.com/seqsvr/seqsvr/tests/kit/sessiontest"
)

func (n *node) preempt(who seq.Session, round uint64, r seq.Register) quorum.Result {
	n.Helper()
	reply, err := n.Prepare(n.Context(), quorum.PrepareRequest{Ref: n.ref(), Session: who, Secret: sessiontest.SecretOf(who), Preempt: true,
		Items: []quorum.PrepareItem{{Register: r, Round: round}}})
	if err != nil {
		n.Fatalf("preempt: %v", err)
	}
	return reply.Results[0]
}

func (n *node) read(who seq.Session, r seq.Register, preempt bool) quorum.Result {
	n.Helper()
	reply, err := n.Read(n.Context(), quorum.ReadRequest{Ref: n.ref(), Session: who, Registers: []seq.Register{r}, Preempt: preempt})
	if err != nil {
		n.Fatalf("read: %v", err)
	}
	return reply.Results[0]
}

func TestTheLifeOfAKeyKeepsNoPreemptionOutOfAStrictSpace(t *testing.T) {
	etcd := etcdmodel.New(5)
	cfg := etcdstore.InitConfig{Prefix: rigPrefix, Cluster: "rig", Spaces: []seq.Space{{Name: seq.DefaultSpace, Sections: 1, Mode: seq.Strict}, {Name: "plain", Sections: 1}}}
	if err := etcdstore.Init(t.Context(), &line{etcd: etcd}, cfg); err != nil {
		t.Fatal(err)
	}
	a, b := newNode(t, etcd), newNode(t, etcd)
	other := seq.SectionRegister(1)
	a.own(alice, 1, section)
	a.own(alice, 2, other)
	b.renew(bob, 0)
	b.want("without preempt", b.prepare(bob, 2, section), quorum.VerdictHeld)
	b.want("a look", b.read(bob, section, true), quorum.VerdictOK)
	b.want("a look without preempt", b.read(bob, section, false), quorum.VerdictHeld)
	for _, got := range []quorum.Result{b.preempt(bob, 9, other), b.read(bob, other, true)} {
		if got.Verdict != quorum.VerdictRefused || !strings.Contains(got.Message, `space "plain", which is ordered`) {
			t.Errorf("ordinary: got %s %q, want it refused by name", got.Verdict, got.Message)
		}
	}
	if got := b.preempt(bob, 9, seq.RoutesRegister); got.Verdict != quorum.VerdictRefused {
		t.Errorf("the routes: got %s, want them refused", got.Verdict)
	}
	b.want("preempted", b.preempt(bob, 2, section), quorum.VerdictOK)
	b.want("its step", b.step(bob, 2, section, 200), quorum.VerdictOK)
	if got := b.renew(bob, 1, quorum.LeaseItem{Register: section, Round: 2}); len(got.Refused) > 0 {
		t.Errorf("its lease: %+v", got)
	}
	if got := a.read(alice, section, false); got.Promised.Session != bob {
		t.Errorf("the former owner sees %v, want bob's epoch", got.Promised)
	}
	a.want("the former owner's step", a.step(alice, 1, section, 300), quorum.VerdictNack)
	a.want("which waits for the lease", a.prepare(alice, 3, section), quorum.VerdictHeld)
}

// The section's revision is compared: a step that came between makes the preemption decide again.
func TestAPreemptionGoesOnFromAStepThatCameBetween(t *testing.T) {
	etcd := etcdmodel.New(5)
	cfg := etcdstore.InitConfig{Prefix: rigPrefix, Cluster: "rig", Spaces: []seq.Space{{Name: seq.DefaultSpace, Sections: 1, Mode: seq.Strict}}}
	if err := etcdstore.Init(t.Context(), &line{etcd: etcd}, cfg); err != nil {
		t.Fatal(err)
	}
	a, b := newNode(t, etcd), newNode(t, etcd)
	a.own(alice, 1, section)
	b.renew(bob, 0)
	b.read(bob, section, true)
	between := true
	b.kv.before = func(txn etcdstore.Txn) {
		if puts(txn, "r/") && between {
			between = false
			a.want("step", a.step(alice, 1, section, 500), quorum.VerdictOK)
		}
	}
	got := b.preempt(bob, 2, section)
	if b.want("preempted", got, quorum.VerdictOK); between || got.Max != 500 {
		t.Errorf("begins at %d, want 500", got.Max)
	}
}
