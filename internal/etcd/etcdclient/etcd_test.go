package etcdclient_test

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/internal/base/clock"
	"github.com/seqsvr/seqsvr/internal/etcd/etcdclient"
	"github.com/seqsvr/seqsvr/internal/etcd/etcdstore"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/etcdtest"
	"github.com/seqsvr/seqsvr/tests/kit/tlstest"
)

const (
	prefix   = "/seqsvr"
	lease    = 3 * time.Second
	patience = time.Minute
)

var (
	section = seq.SectionRegister(0)
	// anyVersion lets an etcd of Debian be checked for the rest.
	anyVersion = etcdclient.Requirement{MinVersion: "3.4.0"}
)

// owner is a process that holds section 0.
type owner struct {
	*testing.T
	secret seq.Secret
	group  *quorum.Group
	leases *quorum.Leases
	hold   *quorum.Hold
	max    uint64
}

func initEtcd(t *testing.T, kv etcdstore.KV) {
	t.Helper()
	err := etcdstore.Init(t.Context(), kv, etcdstore.InitConfig{Prefix: prefix, Cluster: "real", Spaces: []seq.Space{{Name: seq.DefaultSpace, Sections: 8}}})
	if err != nil {
		t.Fatal(err)
	}
}

func newOwner(t *testing.T, kv etcdstore.KV, name string) *owner {
	t.Helper()
	store, err := etcdstore.Open(t.Context(), etcdstore.Config{KV: kv, Prefix: prefix, Clock: clock.Boot()})
	if err != nil {
		t.Fatal(err)
	}
	o := &owner{T: t, secret: seq.NewSecret(name)}
	id := store.Identity()
	stores := []quorum.NamedStore{{Name: "etcd", UUID: id.UUID, Store: store}}
	if o.group, err = quorum.NewGroup(quorum.Config{Ref: id.Ref, N: 1, R: 1, W: 1, Secret: o.secret}, stores); err != nil {
		t.Fatal(err)
	}
	o.leases, err = quorum.NewLeases(quorum.LeaseConfig{Ref: id.Ref, Session: o.secret.Session(), Secret: o.secret, Name: name, Addr: name,
		Lease: lease, N: 1, W: 1, Clock: clock.Boot()}, stores)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() { _ = o.leases.Run(ctx) })
	t.Cleanup(func() {
		stop()
		running.Wait()
		o.group.Close()
	})
	return o
}

// until repeats f until it is true.
func (o *owner) until(what string, f func() bool) time.Duration {
	o.Helper()
	began := time.Now()
	for !f() {
		if time.Since(began) > patience {
			o.Fatalf("%s: not within %v", what, patience)
		}
		<-time.After(5 * time.Millisecond)
	}
	return time.Since(began)
}

// take owns section 0 from now on.
func (o *owner) take() {
	o.Helper()
	o.until("take", func() bool {
		me := o.secret.Session()
		look := o.group.Probe(o.Context(), me, []seq.Register{section})[0]
		if look.State != quorum.Won {
			return false
		}
		round := look.Promised.Round + 1
		found := o.group.Prepare(o.Context(), me, []quorum.PrepareItem{{Register: section, Round: round}})[0]
		if found.State != quorum.Won {
			return false
		}
		o.max = found.Max + 1
		if o.group.Step(o.Context(), me, []quorum.StepItem{{Register: section, Round: round, Max: o.max}})[0].State != quorum.Won {
			return false
		}
		o.hold = o.leases.Attach(section, round)
		return true
	})
	o.until("serve", o.serves)
}

func (o *owner) serves() bool { return clock.Boot().Now() < o.hold.Until() }

// raise tries one step.
func (o *owner) raise() error {
	out := o.group.Step(o.Context(), o.secret.Session(), []quorum.StepItem{{Register: section, Round: o.hold.Round(), Max: o.max + 1}})[0]
	if out.State == quorum.Won {
		o.max++
	}
	return out.Err
}

func (o *owner) raises() bool { return o.raise() == nil }

func TestALeaderThatStandsStillPausesWritesForAnElection(t *testing.T) {
	skipShort(t)
	etcd := etcdtest.Start(t, 3)
	initEtcd(t, etcd.Dial())
	a, b := newOwner(t, etcd.Dial(), "a"), newOwner(t, etcd.Dial(), "b")
	a.take()
	for range 2 {
		leader := etcd.AwaitLeader()
		leader.Pause()
		pause := a.until("step without the leader", a.raises)
		out := b.group.Probe(t.Context(), b.secret.Session(), []seq.Register{section})[0]
		leader.Resume()
		t.Logf("leader paused: no step for %v; the hold was lost: %v", pause, a.hold.Lost())
		if !a.hold.Lost() && a.serves() && out.State == quorum.Won {
			t.Error("another session would be let in while the holder serves")
		}
		if a.hold.Lost() {
			a.take()
		}
		a.until("a step with all members", a.raises)
	}
}

func TestWhatWasConfirmedOutlivesKilledMembers(t *testing.T) {
	skipShort(t)
	etcd := etcdtest.Start(t, 3)
	initEtcd(t, etcd.Dial())
	a := newOwner(t, etcd.Dial(), "a")
	a.take()
	for i, m := range etcd.Members {
		m.Kill()
		if st := etcd.Dial().Status(t.Context())[i]; !errors.Is(st.Err, etcdclient.ErrUnreachable) || st.Name != fmt.Sprintf("m%d", i) {
			t.Errorf("status of the killed member: %+v", st)
		}
		t.Logf("member killed: no step for %v", a.until("step with two members", func() bool { return a.raises() || a.hold.Lost() }))
		if a.hold.Lost() {
			a.take()
		}
		m.Start()
		etcd.AwaitLeader()
	}
	confirmed := a.max
	for _, m := range etcd.Members {
		m.Kill()
	}
	if err := a.raise(); err == nil {
		t.Error("a step was confirmed without any member")
	}
	for _, m := range etcd.Members {
		m.Start()
	}
	etcd.AwaitLeader()
	b := newOwner(t, etcd.Dial(), "b")
	out := b.group.Probe(t.Context(), b.secret.Session(), []seq.Register{section})[0]
	if found, err := b.group.ReadPrefix(t.Context(), b.secret.Session(), string(section)); err != nil || found[section].Max < confirmed {
		t.Errorf("found %+v, %v after all were killed, want at least %d", found, err, confirmed)
	}
	t.Logf("just after the restart of all: %s, held by %s for %v", out.State, out.Holder, out.Remaining)
}

func TestTheDeadAreSucceededAfterTheirLease(t *testing.T) {
	skipShort(t)
	etcd := etcdtest.Start(t, 1)
	initEtcd(t, etcd.Dial())
	b := newOwner(t, etcd.Dial(), "b")
	t.Run("first", func(t *testing.T) { // its process ends with the subtest, and says nothing
		newOwner(t, etcd.Dial(), "a").take()
	})
	began := time.Now()
	b.take()
	if waited := time.Since(began); waited < lease*9/10 || waited > patience/2 {
		t.Errorf("taken over after %v, want about the lease of %v", waited, lease)
	} else {
		t.Logf("taken over after %v with a lease of %v", waited, lease)
	}
}

func TestCompactionAndDefragmentationAreHarmless(t *testing.T) {
	skipShort(t)
	etcd := etcdtest.Start(t, 1)
	client := etcd.Dial()
	initEtcd(t, client)
	a := newOwner(t, client, "a")
	a.take()
	want := etcdclient.Requirement{MinVersion: anyVersion.MinVersion, CompactedBy: 2}
	if _, err := client.Check(t.Context(), want); !errors.Is(err, etcdclient.ErrCompaction) {
		t.Errorf("before a compaction: %v, want %v", err, etcdclient.ErrCompaction)
	}
	etcd.Ctl("compact", "--physical", revisionOf(t, client))
	etcd.Ctl("defrag")
	if _, err := client.Check(t.Context(), want); err != nil {
		t.Errorf("after a compaction: %v", err)
	}
	a.until("step", a.raises)
	if a.hold.Lost() {
		t.Error("the hold was lost")
	}
}

func revisionOf(t *testing.T, c *etcdclient.Client) string {
	t.Helper()
	a, err := c.Do(t.Context(), etcdstore.Txn{Then: []etcdstore.Op{{Kind: etcdstore.Get, Key: prefix + "/meta"}}})
	if err != nil {
		t.Fatal(err)
	}
	return strconv.FormatInt(a.Revision, 10)
}

func TestAFullEtcdIsToldByNameAndGoesOnWhenThereIsSpace(t *testing.T) {
	skipShort(t)
	etcd := etcdtest.Start(t, 1, "--quota-backend-bytes", "16777216")
	client := etcd.Dial()
	initEtcd(t, client)
	a := newOwner(t, client, "a")
	a.take()
	filler := make([]byte, 1<<20)
	a.until("fill", func() bool {
		_, err := client.Do(t.Context(), etcdstore.Txn{Then: []etcdstore.Op{{Kind: etcdstore.Put, Key: "/filler", Value: filler}}})
		return errors.Is(err, etcdstore.ErrNoSpace)
	})
	store, err := etcdstore.Open(t.Context(), etcdstore.Config{KV: client, Prefix: prefix, Clock: clock.Boot()})
	if err != nil {
		t.Fatal(err)
	}
	a.until("the alarm is raised, and small writes are refused too", func() bool {
		err := store.Observe(t.Context())
		return errors.Is(err, etcdstore.ErrNoSpace) && errors.Is(err, seq.ErrStoreFull)
	})
	if members, err := client.Check(t.Context(), anyVersion); !errors.Is(err, etcdclient.ErrAlarm) || !slices.Equal(members[0].Alarms, []string{"NOSPACE"}) {
		t.Errorf("check: %v of %+v, want %v", err, members, etcdclient.ErrAlarm)
	}
	// Its quota does not count what nested transactions put (storage/quota.go, costTxnReq).
	t.Logf("a step while the alarm is raised: %v", a.raise())
	a.until("the lease ends, since no beat is taken", func() bool { return !a.serves() })
	etcd.Ctl("del", "/filler")
	etcd.Ctl("compact", "--physical", revisionOf(t, client))
	etcd.Ctl("defrag")
	etcd.Ctl("alarm", "disarm")
	a.until("serve again", func() bool { return a.serves() || a.hold.Lost() })
	if a.hold.Lost() {
		a.take()
	}
	a.until("step", a.raises)
}

func TestASnapshotThatIsPutBackIsFound(t *testing.T) {
	skipShort(t)
	etcd := etcdtest.Start(t, 1)
	client := etcd.Dial()
	initEtcd(t, client)
	a := newOwner(t, client, "a")
	a.take()
	saved := filepath.Join(t.TempDir(), "snapshot")
	etcd.Ctl("snapshot", "save", saved)
	a.until("step", a.raises)
	m := etcd.Members[0]
	m.Kill()
	if err := os.RemoveAll(m.Dir); err != nil {
		t.Fatal(err)
	}
	etcd.Ctl(append([]string{"snapshot", "restore", saved, "--data-dir", m.Dir}, m.Identity()...)...)
	m.Start()
	a.until("it is found", func() bool { return errors.Is(a.raise(), etcdstore.ErrRestored) })
	_, err := etcdstore.Open(t.Context(), etcdstore.Config{KV: client, Prefix: prefix, Clock: clock.Boot()})
	if !errors.Is(err, etcdstore.ErrRestored) {
		t.Errorf("a new process: %v, want %v", err, etcdstore.ErrRestored)
	}
}

func TestUsersAndTokens(t *testing.T) {
	skipShort(t)
	etcd := etcdtest.Start(t, 1)
	initEtcd(t, etcd.Dial())
	for _, args := range []string{"user add root:r", "role add root", "user grant-role root root", "user add seq:right", "role add seq",
		"role grant-permission seq readwrite " + prefix + "/ --prefix", "user grant-role seq seq", "user add none:right", "auth enable"} {
		etcd.Ctl(strings.Fields(args)...)
	}
	dial := func(user, password string) *etcdclient.Client {
		c, err := etcdclient.Dial(etcdclient.Config{Endpoints: etcd.Endpoints(), User: user, Password: password})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	open := func(c *etcdclient.Client) error {
		_, err := etcdstore.Open(t.Context(), etcdstore.Config{KV: c, Prefix: prefix, Clock: clock.Boot()})
		return err
	}
	for _, row := range []struct {
		user, password string
		want           error
	}{{"seq", "right", nil}, {"seq", "wrong", etcdclient.ErrLogin}, {"none", "right", etcdclient.ErrPermission}, {"", "", etcdclient.ErrLogin}} {
		if err := open(dial(row.user, row.password)); !errors.Is(err, row.want) || row.want == nil && err != nil {
			t.Errorf("user %q with %q: %v, want %v", row.user, row.password, err, row.want)
		}
	}
	c := dial("seq", "right")
	a := newOwner(t, c, "a")
	a.take()
	if _, err := c.Check(t.Context(), anyVersion); err != nil {
		t.Errorf("check as a user of the prefix alone: %v", err)
	}
	etcd.Members[0].Kill() // tokens are in its memory
	etcd.Members[0].Start()
	a.until("step under a new token", func() bool { return a.raises() || a.hold.Lost() })
}

func TestTLSWithClientCertificates(t *testing.T) {
	skipShort(t)
	authority := tlstest.New(t, "ca")
	files := authority.Issue(t.TempDir(), "seq", 0)
	tls, err := rpc.NewTLS(files, nil)
	if err != nil {
		t.Fatal(err)
	}
	etcd := etcdtest.StartTLS(t, 1, tls.Creds(), func(addr string) []string {
		f := authority.Issue(t.TempDir(), "etcd", 0, func(c *x509.Certificate) { c.IPAddresses = append(c.IPAddresses, net.ParseIP(addr)) })
		return []string{"--cert-file", f.Cert, "--key-file", f.Key, "--trusted-ca-file", f.CA, "--client-cert-auth"}
	})
	client := etcd.Dial()
	initEtcd(t, client)
	a := newOwner(t, client, "a")
	a.take()
	plain, err := etcdclient.Dial(etcdclient.Config{Endpoints: etcd.Endpoints()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = plain.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	if _, err := plain.Check(ctx, anyVersion); !errors.Is(err, etcdclient.ErrUnreachable) {
		t.Errorf("without TLS: %v, want %v", err, etcdclient.ErrUnreachable)
	}
}

func TestCheckNamesWhatIsWrong(t *testing.T) {
	skipShort(t)
	etcd, other := etcdtest.Start(t, 1), etcdtest.Start(t, 1)
	client := etcd.Dial()
	check := func(want etcdclient.Requirement, endpoints ...string) error {
		c, err := etcdclient.Dial(etcdclient.Config{Endpoints: endpoints})
		if err != nil {
			return err
		}
		defer func() { _ = c.Close() }()
		_, err = c.Check(t.Context(), want)
		return err
	}
	here := etcd.Endpoints()[0]
	for _, row := range []struct {
		name string
		err  error
		want error
	}{
		{"no endpoint", check(anyVersion), seq.ErrBadArgument},
		{"nothing listens", check(anyVersion, "127.0.0.1:1"), etcdclient.ErrUnreachable},
		{"one of two listens", check(anyVersion, "127.0.0.1:1", here), nil},
		{"two clusters", check(anyVersion, here, other.Endpoints()[0]), etcdclient.ErrMixed},
		{"an old version", check(etcdclient.Requirement{MinVersion: "9.9.9"}, here), etcdclient.ErrVersion},
		{"all is well", check(anyVersion, here), nil},
	} {
		if !errors.Is(row.err, row.want) || row.want == nil && row.err != nil {
			t.Errorf("%s: %v, want %v", row.name, row.err, row.want)
		}
	}
	etcd.Ctl("put", "/registry/pods/default/a", "x")
	if err := check(anyVersion, here); !errors.Is(err, etcdclient.ErrKubernetes) {
		t.Errorf("keys of Kubernetes: %v, want %v", err, etcdclient.ErrKubernetes)
	}
	if m := client.Status(t.Context())[0]; m.Err != nil || !m.Leads() || m.Version == "" || m.Size == 0 || m.Name != "m0" || m.Term == 0 || m.Errors != nil {
		t.Errorf("status: %+v", m)
	}
}

func skipShort(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("runs etcd")
	}
}
