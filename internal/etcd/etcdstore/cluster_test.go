package etcdstore_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/internal/etcd/etcdstore"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/etcdmodel"
	"github.com/seqsvr/seqsvr/tests/kit/sessiontest"
)

var carol = sessiontest.Session(3)

func secretOf(s seq.Session) seq.Secret { return sessiontest.SecretOf(s) }

func TestAnEtcdThatWasPutBackIsNotWrittenToAnyMore(t *testing.T) {
	for _, row := range []struct {
		name   string
		change func(e *etcdmodel.Etcd, s etcdmodel.Snapshot) // the restore
	}{
		{name: "under its old cluster id", change: func(e *etcdmodel.Etcd, s etcdmodel.Snapshot) { e.Restore(s, 5) }},
		{name: "under a new cluster id", change: func(e *etcdmodel.Etcd, s etcdmodel.Snapshot) { e.Restore(s, 6) }},
		{name: "and written to by others since", change: func(e *etcdmodel.Etcd, s etcdmodel.Snapshot) {
			e.Restore(s, 5)
			for range 100 {
				if _, err := e.Apply(etcdstore.Txn{Then: []etcdstore.Op{{Kind: etcdstore.Put, Key: "/elsewhere", Value: []byte("x")}}}); err != nil {
					t.Fatal(err)
				}
			}
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			a, b := rig(t)
			a.own(alice, 1, section)
			snapshot := a.kv.etcd.Save()
			a.want("step", a.step(alice, 1, section, 500), quorum.VerdictOK)
			row.change(a.kv.etcd, snapshot)
			got, err := a.tryStep(alice, 1, section, 600)
			if !errors.Is(err, etcdstore.ErrRestored) || !errors.Is(err, seq.ErrNotVoting) {
				t.Fatalf("got %+v, %v, want %v", got, err, etcdstore.ErrRestored)
			}
			if _, err := a.tryRenew(alice, alice.String(), 1); !errors.Is(err, etcdstore.ErrRestored) {
				t.Errorf("a renewal: %v", err)
			}
			if _, err := b.tryPrepare(bob, 3, seq.SectionRegister(1)); !errors.Is(err, etcdstore.ErrRestored) {
				t.Errorf("another process: %v", err)
			}
			if _, err := etcdstore.Open(t.Context(), etcdstore.Config{KV: a.kv, Prefix: rigPrefix, Clock: a.clock}); !errors.Is(err, etcdstore.ErrRestored) {
				t.Errorf("a new process: %v", err)
			}
			if shown := a.shown(section); shown.Max != 100 {
				t.Errorf("max %d was written after the restore", shown.Max)
			}
		})
	}
}

func TestWritesStopWithAnotherMeta(t *testing.T) {
	a, _ := rig(t)
	a.own(alice, 1, section)
	var stolen []string
	for _, key := range a.kv.etcd.Keys() {
		if strings.HasPrefix(key, rigPrefix) && !strings.Contains(key, "/r/") {
			stolen = append(stolen, key)
		}
	}
	// An operator made the next era in place of this one.
	for _, key := range stolen {
		if _, err := a.kv.etcd.Apply(etcdstore.Txn{Then: []etcdstore.Op{{Kind: etcdstore.Delete, Key: key}}}); err != nil {
			t.Fatal(err)
		}
	}
	cfg := etcdstore.InitConfig{Prefix: rigPrefix, Cluster: "rig", Era: 1, Spaces: []seq.Space{{Name: seq.DefaultSpace, Sections: 4}}}
	if err := etcdstore.Init(t.Context(), a.kv, cfg); err != nil {
		t.Fatal(err)
	}
	before := a.shown(section)
	if got, err := a.tryStep(alice, 1, section, 900); err == nil {
		t.Errorf("a step: %+v, want it refused", got)
	}
	if _, err := a.tryRenew(alice, alice.String(), 1); err == nil {
		t.Error("a renewal was taken")
	}
	if after := a.shown(section); after != before {
		t.Errorf("the register went from %+v to %+v", before, after)
	}
}

func TestABatchIsSplitAsEtcdWantsIt(t *testing.T) {
	etcd := initRig(t, 400)
	a := newNode(t, etcd)
	var regs []seq.Register
	for id := range seq.SectionID(400) {
		regs = append(regs, seq.SectionRegister(id))
	}
	got, err := a.tryPrepare(alice, 1, append(regs, seq.FixedRegisters()...)...)
	if err != nil {
		t.Fatal(err)
	}
	for i, res := range got {
		if res.Verdict != quorum.VerdictOK {
			t.Errorf("item %d: %+v", i, res)
		}
	}
	large := bytes.Repeat([]byte("x"), etcdstore.MaxPayload)
	req := quorum.StepRequest{Ref: a.ref(), Session: alice, Secret: secretOf(alice)}
	for _, r := range []seq.Register{seq.RoutesRegister, seq.EventsRegister, seq.TagsRegister} {
		req.Items = append(req.Items, quorum.StepItem{Register: r, Round: 1, Max: 1, Payload: large})
	}
	reply, err := a.Step(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	for i, res := range reply.Results {
		a.want(req.Items[i].Register.String(), res, quorum.VerdictOK)
	}
	req.Items = []quorum.StepItem{{Register: seq.RoutesRegister, Round: 1, Max: 2, Payload: append(large, 'x')}}
	if reply, err = a.Step(t.Context(), req); err != nil || reply.Results[0].Verdict != quorum.VerdictRefused {
		t.Errorf("a larger payload: %v, %v, want it refused", reply.Results, err)
	}
}

func TestATakeoverIsElevenMessagesAPhase(t *testing.T) {
	const n = 1366
	etcd := initRig(t, n)
	a := newNode(t, etcd)
	a.renew(alice, 0)
	calls := make(chan struct{}, 1000)
	a.kv.before = func(etcdstore.Txn) { calls <- struct{}{} }
	req := quorum.StepRequest{Ref: a.ref(), Session: alice, Secret: secretOf(alice)}
	var regs []seq.Register
	var items []quorum.LeaseItem
	for id := range seq.SectionID(n) {
		r := seq.SectionRegister(id)
		regs = append(regs, r)
		items = append(items, quorum.LeaseItem{Register: r, Round: 1})
		req.Items = append(req.Items, quorum.StepItem{Register: r, Round: 1, Max: 10})
	}
	phase := func(what string, want int, err error) {
		t.Helper()
		if err != nil || len(calls) > want {
			t.Errorf("%s: %d messages, %v, want at most %d", what, len(calls), err, want)
		}
		for len(calls) > 0 {
			<-calls
		}
	}
	_, err := a.Read(t.Context(), quorum.ReadRequest{Ref: a.ref(), Session: alice, Registers: regs})
	phase("look", 11, err)
	_, err = a.tryPrepare(alice, 1, regs...)
	phase("promise", 11, err)
	_, err = a.Step(t.Context(), req)
	phase("step", 11, err)
	got, err := a.tryRenew(alice, alice.String(), n, func(r *quorum.RenewRequest) { r.Attach = items })
	phase("attach", 12, err)
	if len(got.Refused) > 0 || got.Reset {
		t.Errorf("attach: %d refused, reset %v", len(got.Refused), got.Reset)
	}
}

func TestWhatIsNotSupportedOrNotThereIsRefusedByName(t *testing.T) {
	etcd := etcdmodel.New(5)
	kv := &line{etcd: etcd}
	open := func() error {
		_, err := etcdstore.Open(t.Context(), etcdstore.Config{KV: kv, Prefix: rigPrefix})
		return err
	}
	make := func(cluster string, spaces ...seq.Space) error {
		return etcdstore.Init(t.Context(), kv, etcdstore.InitConfig{Prefix: rigPrefix, Cluster: cluster, Spaces: spaces})
	}
	four := seq.Space{Name: seq.DefaultSpace, Sections: 4}
	lost := func(int) bool { return false }
	kv.hold = func(t etcdstore.Txn) bool { return lost(len(t.Then)) }
	for _, row := range []struct {
		name string
		do   func() error
		want error
	}{
		{"before init", open, etcdstore.ErrNotInitialized},
		{"an exact space", func() error { return make("rig", seq.Space{Name: "order", Sections: 2, Mode: seq.Exact}) }, etcdstore.ErrNoExact},
		{"no cluster id", func() error { return make("", four) }, seq.ErrBadArgument},
		{"no prefix", func() error {
			return etcdstore.Init(t.Context(), kv, etcdstore.InitConfig{Prefix: "/", Cluster: "rig", Spaces: []seq.Space{four}})
		}, seq.ErrBadArgument},
		{"an init that is interrupted", func() error {
			lost = func(ops int) bool { return ops > 4 }
			defer func() { lost = func(int) bool { return false } }()
			return make("rig", four)
		}, etcdmodel.ErrLost},
		{"after it", open, etcdstore.ErrNotInitialized},
		{"an init of another cluster after it", func() error { return make("other", four) }, seq.ErrForeignCluster},
		{"an init of other spaces after it", func() error { return make("rig", seq.Space{Name: seq.DefaultSpace, Sections: 5}) }, seq.ErrBadMapping},
		{"the init again", func() error { return make("rig", four) }, nil},
		{"an init of what is there", func() error { return make("rig", four) }, etcdstore.ErrInitialized},
		{"after init", open, nil},
		{"a damaged meta", func() error {
			_, err := etcd.Apply(etcdstore.Txn{Then: []etcdstore.Op{{Kind: etcdstore.Put, Key: rigPrefix + "/meta", Value: []byte(`{"UUID":"x"}....`)}}})
			return errors.Join(err, open())
		}, etcdstore.ErrDamaged},
	} {
		if err := row.do(); !errors.Is(err, row.want) || (row.want == nil) != (err == nil) {
			t.Errorf("%s: got %v, want %v", row.name, err, row.want)
		}
	}
	a, _ := rig(t)
	_, step := a.Step(t.Context(), quorum.StepRequest{Ref: a.ref(), Session: alice, Secret: secretOf(alice),
		Items: []quorum.StepItem{{Register: section, Round: 1, Log: []byte("x")}}})
	_, copies := a.Read(t.Context(), quorum.ReadRequest{Ref: a.ref(), Registers: []seq.Register{section}, Copies: true})
	if !errors.Is(step, etcdstore.ErrNoExact) || !errors.Is(copies, etcdstore.ErrNoExact) {
		t.Errorf("records: %v, copies: %v, want %v", step, copies, etcdstore.ErrNoExact)
	}
}

func TestAFullEtcdTakesNoBeats(t *testing.T) {
	a, b := rig(t)
	a.own(alice, 1, section)
	a.kv.etcd.SetFull(true)
	_, err := a.tryRenew(alice, alice.String(), 1)
	if !errors.Is(err, etcdstore.ErrNoSpace) || !errors.Is(err, seq.ErrStoreFull) {
		t.Errorf("a renewal: %v, want %v", err, etcdstore.ErrNoSpace)
	}
	if err := b.Observe(t.Context()); !errors.Is(err, etcdstore.ErrNoSpace) {
		t.Errorf("a process that watches: %v, want %v", err, etcdstore.ErrNoSpace)
	}
	// Steps are nested and pass, so their answers must prove nothing of a session's silence.
	b.want("take", b.prepare(bob, 1, seq.SectionRegister(1)), quorum.VerdictOK)
	for i := range 30 {
		b.clock.Advance(rigLease / 5)
		b.want("step", b.step(bob, 1, seq.SectionRegister(1), uint64(i+1)), quorum.VerdictOK)
		b.want("a look", b.lookAs(bob), quorum.VerdictHeld)
	}
	b.kv.etcd.SetFull(false)
	b.renew(bob, 0)
	b.want("at the first answer after it", b.prepare(bob, 2, section), quorum.VerdictHeld)
	a.renew(alice, 1)
}

func (n *node) lookAs(who seq.Session) quorum.Result {
	n.Helper()
	reply, err := n.Read(n.Context(), quorum.ReadRequest{Ref: n.ref(), Session: who, Registers: []seq.Register{section}})
	if err != nil {
		n.Fatal(err)
	}
	return reply.Results[0]
}

func TestAWorkerMarkBeyondTheClockIsRefused(t *testing.T) {
	a, _ := rig(t)
	worker := seq.WorkerRegister("ns", 1, 2)
	got, err := a.Prepare(t.Context(), quorum.PrepareRequest{Ref: a.ref(), Session: alice, Secret: secretOf(alice),
		Items: []quorum.PrepareItem{{Register: worker, Round: 1, Create: true}}})
	if err != nil {
		t.Fatal(err)
	}
	a.want("create", got.Results[0], quorum.VerdictOK)
	a.want("far beyond", a.step(alice, 1, worker, uint64(time.Now().Add(2*time.Hour).UnixMilli())), quorum.VerdictRefused)
	a.want("an hour at most", a.step(alice, 1, worker, uint64(time.Now().Add(30*time.Minute).UnixMilli())), quorum.VerdictOK)
}
