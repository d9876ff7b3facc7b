package sim

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seqsvr/seqsvr/internal/etcd/etcdstore"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/bubble"
	"github.com/seqsvr/seqsvr/tests/kit/etcdmodel"
)

// onEtcdRig is a run on etcd that has not begun, and a register of it as it was and is.
type onEtcdRig struct {
	w        *world
	b        *onEtcd
	key      string
	was, now []byte
	alice    *quorum.Group
	session  seq.Session // hers
}

var rigRegister = seq.SectionRegister(0)

// value of the register in etcd.
func (r *onEtcdRig) value(t *testing.T) []byte {
	t.Helper()
	a, err := r.b.etcd.Apply(etcdstore.Txn{Then: []etcdstore.Op{{Kind: etcdstore.Get, Key: r.key}}})
	if err != nil || len(a.Results[0].KVs) != 1 {
		t.Fatalf("register: %v, %v", a, err)
	}
	return a.Results[0].KVs[0].Value
}

// group returns the Group of a session.
func (r *onEtcdRig) group(t *testing.T, name string) (*quorum.Group, seq.Session) {
	t.Helper()
	store, err := etcdstore.Open(t.Context(), etcdstore.Config{KV: &etcdmodel.Client{Etcd: r.b.etcd}, Prefix: etcdPrefix, Clock: r.w.hosts.all[0].clock})
	if err != nil {
		t.Fatal(err)
	}
	secret := secretOf(name)
	g, err := quorum.NewGroup(quorum.Config{Ref: r.w.ident.Ref, N: 1, R: 1, W: 1, Secret: secret}, named(store))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return g, secret.Session()
}

func (r *onEtcdRig) prepare(t *testing.T, g *quorum.Group, who seq.Session, round uint64) {
	t.Helper()
	if out := g.Prepare(t.Context(), who, []quorum.PrepareItem{{Register: rigRegister, Round: round}}); out[0].State != quorum.Won {
		t.Fatalf("prepare: %+v", out[0])
	}
}

// take has alice own a section.
func (r *onEtcdRig) take(t *testing.T) {
	t.Helper()
	r.key = etcdPrefix + "/r/" + string(rigRegister)
	r.was = r.value(t)
	r.alice, r.session = r.group(t, "alice")
	r.prepare(t, r.alice, r.session, 1)
	if out := r.alice.Step(t.Context(), r.session, []quorum.StepItem{{Register: rigRegister, Round: 1, Max: 20}}); out[0].State != quorum.Won {
		t.Fatalf("step: %+v", out[0])
	}
	r.now = r.value(t)
}

// outbid has alice release the section to carol, and bob take it after so long.
func (r *onEtcdRig) outbid(t *testing.T, after time.Duration) {
	t.Helper()
	bob, who := r.group(t, "bob")
	if err := r.alice.Release(t.Context(), r.session, []quorum.LeaseItem{{Register: rigRegister, Round: 1}}, secretOf("carol").Session()); err != nil {
		t.Fatal(err)
	}
	released := r.value(t)
	if out := bob.Probe(t.Context(), who, []seq.Register{rigRegister}); out[0].State == quorum.Won {
		t.Fatalf("a register that is kept for another is free: %+v", out[0])
	}
	time.Sleep(time.Second)
	r.prepare(t, bob, who, 2)
	r.b.ledger.changed(r.key, r.now, released)
	time.Sleep(after)
	r.b.ledger.changed(r.key, released, r.value(t))
}

func TestForgedFactsOfAnEtcdAreJudged(t *testing.T) {
	session, ended := etcdPrefix+"/s/00000000000000aa", etcdPrefix+"/ended/00000000000000aa"
	ends := etcdstore.Txn{Then: []etcdstore.Op{{Kind: etcdstore.Delete, Key: session}, {Kind: etcdstore.Put, Key: ended, Value: []byte("x")}}}
	condemns := etcdstore.Txn{Then: ends.Then[:1]}
	beat := func(r *onEtcdRig) { r.b.ledger.changed(session, nil, []byte("x")) }
	rows := []struct {
		name  string
		facts func(t *testing.T, r *onEtcdRig)
		want  string // the only kind; may be empty
	}{
		{"a number that etcd had", func(t *testing.T, r *onEtcdRig) { r.b.kept(r.w.hosts.named("a1"), rigRegister, 20) }, ""},
		{"a number that etcd never had", func(t *testing.T, r *onEtcdRig) { r.b.kept(r.w.hosts.named("a1"), rigRegister, 21) }, "I5"},
		{"a register that goes back", func(t *testing.T, r *onEtcdRig) { r.b.ledger.changed(r.key, r.now, r.was) }, "I1"},
		{"a register that goes on", func(t *testing.T, r *onEtcdRig) { r.b.ledger.changed(r.key, r.was, r.now) }, ""},
		{"a register that cannot be read", func(t *testing.T, r *onEtcdRig) { r.b.ledger.changed(r.key, r.was, []byte("x")) }, "etcd"},
		{"a session that comes back after its end", func(t *testing.T, r *onEtcdRig) {
			r.b.ledger.did(ends, etcdstore.Answer{Then: true})
			beat(r)
		}, "ended"},
		{"an end that was not done", func(t *testing.T, r *onEtcdRig) {
			r.b.ledger.did(ends, etcdstore.Answer{})
			beat(r)
		}, ""},
		{"a session that is taken for dead after an outage", func(t *testing.T, r *onEtcdRig) {
			beat(r)
			time.Sleep(2 * r.w.opts.Lease)
			r.b.ledger.did(condemns, etcdstore.Answer{Then: true})
		}, "outage"},
		{"a session that is taken for dead while others beat", func(t *testing.T, r *onEtcdRig) {
			beat(r)
			for range 10 {
				time.Sleep(r.w.opts.Lease / 5)
				r.b.ledger.changed(etcdPrefix+"/o", nil, []byte("x"))
			}
			r.b.ledger.did(condemns, etcdstore.Answer{Then: true})
		}, ""},
		{"a promise within a reservation", func(t *testing.T, r *onEtcdRig) { r.outbid(t, 100*time.Millisecond) }, "reserved"},
		{"a promise after a reservation", func(t *testing.T, r *onEtcdRig) { r.outbid(t, 600*time.Millisecond) }, ""},
		{"an era below what was handed out", func(t *testing.T, r *onEtcdRig) {
			r.b.raised(2, etcdstore.Beginning{States: []quorum.RegisterState{{Register: seq.SectionRegister(0), Max: 19}}})
		}, "I2"},
		{"an era above", func(t *testing.T, r *onEtcdRig) {
			r.b.raised(2, etcdstore.Beginning{States: []quorum.RegisterState{{Register: seq.SectionRegister(0), Max: 20}}})
		}, ""},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				o := OptionsOf(1).On(EtcdEngine)
				o.Beyond = false
				w := newWorld(o, "")
				defer w.end()
				w.assemble()
				r := &onEtcdRig{w: w, b: w.back.(*onEtcd)}
				r.take(t)
				row.facts(t, r)
				got := w.check.violations()
				if row.want == "" && len(got) > 0 || row.want != "" && (len(got) != 1 || got[0].Kind != row.want) {
					t.Errorf("broken: %v, want %q", got, row.want)
				}
			})
		})
	}
}

func TestAFaultOfTheOtherEngineIsRefused(t *testing.T) {
	for fault, engine := range map[string]Engine{"1s full s1 for 1s": EtcdEngine, "1s elect -": StoreEngine} {
		if _, err := (Job{Engine: engine, OwnFaults: true, Faults: []string{fault}}).Options(); err == nil || !strings.Contains(err.Error(), fault) {
			t.Errorf("%q on %s: got %v, want it refused by name", fault, engine, err)
		}
	}
	for seed := range uint64(50) {
		for _, f := range Schedule(OptionsOf(seed).On(EtcdEngine)) {
			if got, err := ParseFault(f.String()); err != nil || got != f || !EtcdEngine.suits(f.Verb) {
				t.Errorf("%v is drawn on etcd: read as %v, %v", f, got, err)
			}
		}
	}
}

func TestKeptSeedsAreOfTheirEngine(t *testing.T) {
	file := filepath.Join(t.TempDir(), "seeds.txt")
	want := []Kept{{7, StoreEngine}, {8, EtcdEngine}}
	if err := os.WriteFile(file, []byte("# none\n"+want[0].String()+" # a\n"+want[1].String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := KeptSeeds(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("kept seeds (-want +got)\n%s", diff)
	}
	if err := os.WriteFile(file, []byte("disk 7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := KeptSeeds(file); err == nil {
		t.Error("a seed of no engine is taken")
	}
}
