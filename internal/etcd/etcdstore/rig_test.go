package etcdstore_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/internal/base/clock"
	"github.com/seqsvr/seqsvr/internal/etcd/etcdstore"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/etcdmodel"
	"github.com/seqsvr/seqsvr/tests/kit/sessiontest"
)

const (
	rigPrefix = "/rig"
	rigLease  = time.Second
)

var (
	alice   = sessiontest.Session(1)
	bob     = sessiontest.Session(2)
	section = seq.SectionRegister(0)
)

// node is one process: a Store over a connection that tests can take hold of.
type node struct {
	*testing.T
	*etcdstore.Store
	kv    *line
	clock *clock.Manual
}

// line is a connection to etcd in memory.
type line struct {
	etcd   *etcdmodel.Etcd
	before func(t etcdstore.Txn)      // called before a transaction is done
	after  func(t etcdstore.Txn)      // called before its answer arrives
	hold   func(t etcdstore.Txn) bool // it is not answered, and is done when late is called
	held   []etcdstore.Txn
}

// Do implements etcdstore.KV.
func (l *line) Do(_ context.Context, t etcdstore.Txn) (etcdstore.Answer, error) {
	if l.hold != nil && l.hold(t) {
		l.held = append(l.held, t)
		return etcdstore.Answer{}, etcdmodel.ErrLost
	}
	if f := l.before; f != nil {
		f(t)
	}
	a, err := l.etcd.Apply(t)
	if f := l.after; f != nil {
		f(t)
	}
	return a, err
}

// late does what was held.
func (l *line) late(t *testing.T) {
	t.Helper()
	if len(l.held) == 0 {
		t.Fatal("nothing was held")
	}
	for _, txn := range l.held {
		if _, err := l.etcd.Apply(txn); err != nil {
			t.Fatal(err)
		}
	}
	l.held, l.hold = nil, nil
}

// puts says whether a transaction writes a key of that part, such as "r/".
func puts(t etcdstore.Txn, part string) bool {
	for _, op := range t.Then {
		if op.Kind == etcdstore.Nested && puts(*op.Txn, part) || op.Kind == etcdstore.Put && strings.HasPrefix(op.Key, rigPrefix+"/"+part) {
			return true
		}
	}
	return false
}

func removes(t etcdstore.Txn) bool {
	return len(t.Then) == 1 && t.Then[0].Kind == etcdstore.Delete
}

func initRig(t *testing.T, sections uint32) *etcdmodel.Etcd {
	t.Helper()
	etcd := etcdmodel.New(5)
	cfg := etcdstore.InitConfig{Prefix: rigPrefix, Cluster: "rig", Spaces: []seq.Space{{Name: seq.DefaultSpace, Sections: sections}}}
	if err := etcdstore.Init(t.Context(), &line{etcd: etcd}, cfg); err != nil {
		t.Fatal(err)
	}
	return etcd
}

func newNode(t *testing.T, etcd *etcdmodel.Etcd) *node {
	t.Helper()
	n := &node{T: t, kv: &line{etcd: etcd}, clock: clock.NewManual(time.Hour)}
	var err error
	n.Store, err = etcdstore.Open(t.Context(), etcdstore.Config{KV: n.kv, Prefix: rigPrefix, Clock: n.clock})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// rig is a cluster of a few sections and two processes, alice's and bob's.
func rig(t *testing.T) (a, b *node) {
	t.Helper()
	etcd := initRig(t, 4)
	return newNode(t, etcd), newNode(t, etcd)
}

// Context ends calls that go round in circles.
func (n *node) Context() context.Context {
	ctx, cancel := context.WithTimeout(n.T.Context(), 20*time.Second)
	n.Cleanup(cancel)
	return ctx
}

func (n *node) ref() quorum.Ref { return n.Identity().Ref }

func (n *node) tryPrepare(who seq.Session, round uint64, regs ...seq.Register) ([]quorum.Result, error) {
	req := quorum.PrepareRequest{Ref: n.ref(), Session: who, Secret: sessiontest.SecretOf(who)}
	for _, r := range regs {
		req.Items = append(req.Items, quorum.PrepareItem{Register: r, Round: round})
	}
	reply, err := n.Prepare(n.Context(), req)
	return reply.Results, err
}

func (n *node) prepare(who seq.Session, round uint64, r seq.Register) quorum.Result {
	n.Helper()
	got, err := n.tryPrepare(who, round, r)
	if err != nil {
		n.Fatalf("prepare: %v", err)
	}
	return got[0]
}

func (n *node) tryStep(who seq.Session, round uint64, r seq.Register, to uint64) (quorum.Result, error) {
	reply, err := n.Step(n.Context(), quorum.StepRequest{Ref: n.ref(), Session: who, Secret: sessiontest.SecretOf(who),
		Items: []quorum.StepItem{{Register: r, Round: round, Max: to}}})
	if err != nil {
		return quorum.Result{}, err
	}
	return reply.Results[0], nil
}

func (n *node) step(who seq.Session, round uint64, r seq.Register, to uint64) quorum.Result {
	n.Helper()
	got, err := n.tryStep(who, round, r, to)
	if err != nil {
		n.Fatalf("step: %v", err)
	}
	return got
}

func (n *node) tryRenew(who seq.Session, name string, attached int, change ...func(*quorum.RenewRequest)) (quorum.RenewReply, error) {
	req := quorum.RenewRequest{Ref: n.ref(), Session: who, Secret: sessiontest.SecretOf(who), Name: name, Addr: "127.0.0.1:1", Lease: rigLease, Attached: uint64(attached)}
	for _, c := range change {
		c(&req)
	}
	return n.Renew(n.Context(), req)
}

func (n *node) renew(who seq.Session, attached int, attach ...quorum.LeaseItem) quorum.RenewReply {
	n.Helper()
	reply, err := n.tryRenew(who, who.String(), attached, func(r *quorum.RenewRequest) { r.Attach = attach })
	if err != nil {
		n.Fatalf("renew: %v", err)
	}
	return reply
}

func (n *node) release(who, to seq.Session, items ...quorum.LeaseItem) error {
	_, err := n.Release(n.Context(), quorum.ReleaseRequest{Ref: n.ref(), Session: who, Secret: sessiontest.SecretOf(who), Items: items, To: to})
	return err
}

// own has the session hold the section under the round.
func (n *node) own(who seq.Session, round uint64, r seq.Register) {
	n.Helper()
	n.renew(who, 0)
	n.want("take", n.prepare(who, round, r), quorum.VerdictOK)
	n.want("step", n.step(who, round, r, 100), quorum.VerdictOK)
	if got := n.renew(who, 1, quorum.LeaseItem{Register: r, Round: round}); len(got.Refused) > 0 || got.Reset {
		n.Fatalf("attach: %+v", got)
	}
}

// pass lets time pass, and watches five times a lease.
func (n *node) pass(d time.Duration) {
	n.Helper()
	for ; d > 0; d -= rigLease / 5 {
		n.clock.Advance(min(d, rigLease/5))
		if err := n.Observe(n.Context()); err != nil {
			n.Fatal(err)
		}
	}
}

func (n *node) want(what string, got quorum.Result, want quorum.Verdict) {
	n.Helper()
	if got.Verdict != want {
		n.Fatalf("%s: got %s %+v, want %s", what, got.Verdict, got, want)
	}
}

func (n *node) shown(r seq.Register) etcdstore.Shown {
	n.Helper()
	key := rigPrefix + "/r/" + string(r)
	a, err := n.kv.etcd.Apply(etcdstore.Txn{Then: []etcdstore.Op{{Kind: etcdstore.Get, Key: key}}})
	if err != nil || len(a.Results[0].KVs) != 1 {
		n.Fatalf("%s: %v", r, err)
	}
	got, err := etcdstore.Show(a.Results[0].KVs[0])
	if err != nil {
		n.Fatal(err)
	}
	return got
}
