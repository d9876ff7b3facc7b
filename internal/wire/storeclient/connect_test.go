package storeclient_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/internal/wire/storeclient"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr"
	"github.com/seqsvr/seqsvr/tests/kit/sessiontest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var alice = sessiontest.Session(0xa)

const (
	patience = 30 * time.Second
	// brief bounds the calls that must wait in vain.
	brief = 300 * time.Millisecond
)

var section = seq.SectionRegister(2)

// places says where the stores listen now, by the address that clients know them by: a
// store that comes back takes a free port, never its former one.
var places sync.Map

var lastStore atomic.Int64

func dialPlace(ctx context.Context, addr string) (net.Conn, error) {
	if place, ok := places.Load(addr); ok {
		addr = place.(string)
	}
	return new(net.Dialer).DialContext(ctx, "tcp", addr)
}

// store is a StoreSvr on a directory of its own, which can stop and come back.
type store struct {
	t    *testing.T
	dir  string
	addr string
	stop func()
}

// initStore makes a store of cluster c1 with members a, b and c, changed by the options.
func initStore(t *testing.T, name string, change ...func(*storesvr.InitConfig)) *store {
	t.Helper()
	cfg := storesvr.InitConfig{DataDir: filepath.Join(t.TempDir(), name), ClusterID: "c1", Name: name,
		MemberNames: []string{"a", "b", "c"}, Spaces: []seq.Space{{Name: "user", Sections: 4}}}
	for _, f := range change {
		f(&cfg)
	}
	if err := storesvr.Init(cfg); err != nil {
		t.Fatal(err)
	}
	s := &store{t: t, dir: cfg.DataDir, addr: fmt.Sprintf("%s-%d:1", name, lastStore.Add(1))}
	s.start()
	return s
}

// start runs the store of the directory behind the address.
func (s *store) start() {
	s.t.Helper()
	cfg := storesvr.DefaultConfig()
	cfg.DataDir, cfg.Listen, cfg.NearFull = s.dir, "127.0.0.1:0", 0
	svr, err := storesvr.New(cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	places.Store(s.addr, svr.Addr())
	ran := make(chan error, 1)
	go func() { ran <- svr.Run(context.Background()) }()
	s.stop = func() {
		svr.Close()
		if ran != nil {
			<-ran
			ran = nil
		}
	}
	stop := s.stop
	s.t.Cleanup(stop)
}

func addrs(stores ...*store) (out []string) {
	for _, s := range stores {
		out = append(out, s.addr)
	}
	return out
}

func connect(t *testing.T, timeout time.Duration, stores ...string) (storeclient.Cluster, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	c, err := storeclient.Connect(ctx, stores, grpc.WithContextDialer(dialPlace))
	if err == nil {
		t.Cleanup(func() { c.Close() })
	}
	return c, err
}

func mustConnect(t *testing.T, stores ...string) storeclient.Cluster {
	t.Helper()
	c, err := connect(t, patience, stores...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func three(t *testing.T) []*store {
	t.Helper()
	return []*store{initStore(t, "a"), initStore(t, "b"), initStore(t, "c")}
}

func TestConnectBindsStoresThatInitHasJustMade(t *testing.T) {
	s := three(t)
	if _, err := connect(t, brief, addrs(s[:2]...)...); !errors.Is(err, seq.ErrNoQuorum) {
		t.Errorf("two of three new stores: got %v, want ErrNoQuorum", err)
	}
	c := mustConnect(t, addrs(s...)...)
	if !c.Identity.Voting || c.Identity.N != 3 || len(c.Identity.Members) != 3 || c.Identity.Mapping.Sections() != 4 {
		t.Errorf("identity %+v", c.Identity)
	}
	var uuids []string
	for i, n := range c.Stores {
		id, err := n.Client.Describe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if n.Addr != s[i].addr || n.UUID != id.UUID || !id.Voting || id.Ref != c.Identity.Ref || !id.Incarnation.Known() || id.Incarnation != c.Identity.Incarnation {
			t.Errorf("store %d: %+v, %+v", i, n, id)
		}
		uuids = append(uuids, n.UUID)
	}
	if uuids[0] == uuids[1] || uuids[1] == uuids[2] || uuids[0] == uuids[2] {
		t.Errorf("uuids %q", uuids)
	}
}

func TestConnectGoesOnWithoutAStoreThatIsAway(t *testing.T) {
	s := three(t)
	mustConnect(t, addrs(s...)...)
	s[2].stop()
	c := mustConnect(t, addrs(s...)...)
	if _, member := c.Identity.List().Find(c.Stores[2].UUID); !member || c.Stores[2].UUID == c.Stores[0].UUID || c.Stores[2].UUID == c.Stores[1].UUID {
		t.Errorf("stores %+v, expected the third member's uuid at the address that is left", c.Stores)
	}
	read := quorum.ReadRequest{Ref: c.Identity.Ref, Registers: []seq.Register{section}}
	if _, err := c.Stores[2].Client.Read(t.Context(), read); err == nil {
		t.Error("a store that is away answered")
	}
	s[2].start()
	deadline := time.After(patience)
	for {
		_, err := c.Stores[2].Client.Read(t.Context(), read)
		if err == nil {
			break
		}
		select {
		case <-deadline:
			t.Fatalf("after it came back: %v", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
	if c.Stores[2].Client.UUID() == "" {
		t.Error("its uuid is not known after its first reply")
	}
}

func TestAnOddStoreIsLeftOutAndNamedWhenTheOthersAgree(t *testing.T) {
	s := three(t)
	foreign := initStore(t, "b", func(c *storesvr.InitConfig) { c.ClusterID = "c2" })
	alone := initStore(t, "b", func(c *storesvr.InitConfig) { c.ClusterID, c.MemberNames = "c2", []string{"b"} })
	larger := initStore(t, "b", func(c *storesvr.InitConfig) { c.R, c.W = 2, 3 })
	mapped := initStore(t, "b", func(c *storesvr.InitConfig) { c.Spaces = []seq.Space{{Name: "user", Sections: 5}} })
	fresh := initStore(t, "b")
	others := three(t)
	mustConnect(t, addrs(s...)...)
	mustConnect(t, addrs(others...)...)
	mustConnect(t, alone.addr)
	rows := []struct {
		name string
		odd  *store
		want error
		text string
	}{
		{"another cluster", foreign, seq.ErrForeignCluster, `"c2"`},
		{"a cluster of one store", alone, seq.ErrForeignCluster, `"c2"`},
		{"another W", larger, seq.ErrStaleEra, "3/2/3"},
		{"another mapping", mapped, seq.ErrBadMapping, ""},
		{"other members", others[1], seq.ErrStaleEra, "bound to"},
		{"a new disk under the old name", fresh, seq.ErrNotVoting, "has uuid"},
		{"one of the others again", s[0], seq.ErrBadArgument, "again"},
	}
	for _, row := range rows {
		odd := *row.odd
		odd.addr = "odd-" + odd.addr // so that no address is given twice
		place, _ := places.Load(row.odd.addr)
		places.Store(odd.addr, place)
		if first := mustConnect(t, odd.addr, s[0].addr, s[2].addr); first.Identity.Ref.Cluster != "c1" || len(first.Odd) != 1 || row.odd != s[0] && first.Odd[0].Addr != odd.addr {
			t.Errorf("%s, the first to be asked: went by %+v, odd %+v", row.name, first.Identity, first.Odd)
		}
		c := mustConnect(t, s[0].addr, odd.addr, s[2].addr)
		if len(c.Odd) != 1 || c.Odd[0].Addr != odd.addr || !errors.Is(c.Odd[0].Err, row.want) || !strings.Contains(c.Odd[0].Err.Error(), row.text) || !strings.Contains(c.Odd[0].Err.Error(), odd.addr) {
			t.Errorf("%s: odd %+v, expected %v at %s saying %q", row.name, c.Odd, row.want, odd.addr, row.text)
		}
		if len(c.Stores) != 3 || c.Identity.Ref.Cluster != "c1" || c.Identity.N != 3 {
			t.Errorf("%s: went by %+v", row.name, c.Identity)
		}
		_, err := c.Stores[1].Client.Read(t.Context(), quorum.ReadRequest{Ref: c.Identity.Ref, Registers: []seq.Register{section}})
		if !errors.Is(err, seq.ErrStaleEra) {
			t.Errorf("%s: the client of the missing member got %v, expected %v", row.name, err, seq.ErrStaleEra)
		}
	}
}

func TestAMemberOfALaterListThatIsAwayKeepsItsAddress(t *testing.T) {
	s := three(t)
	c := mustConnect(t, addrs(s...)...)
	list := c.Identity.List()
	list.Version, list.Members = 2, slices.Clone(list.Members)
	for i, m := range list.Members {
		at := slices.IndexFunc(c.Stores, func(n storeclient.Named) bool { return n.UUID == m.UUID })
		list.Members[i].Addr = c.Stores[at].Addr
	}
	for _, n := range c.Stores {
		if _, err := n.Client.Adopt(t.Context(), "c1", 0, list); err != nil {
			t.Fatal(err)
		}
	}
	s[2].stop()
	for _, given := range [][]string{addrs(s...), addrs(s[:2]...)} {
		again := mustConnect(t, given...)
		if err := again.Complete(); err != nil || len(again.Stores) != 3 || again.Stores[2].Addr != s[2].addr || again.Stores[2].UUID != c.Stores[2].UUID {
			t.Errorf("of %v: %+v, %v", given, again.Stores, err)
		}
	}
}

func TestAStoreAtTwoAddressesVotesOnce(t *testing.T) {
	s := three(t)
	mustConnect(t, addrs(s...)...)
	place, _ := places.Load(s[0].addr)
	places.Store("again-"+s[0].addr, place)
	s[1].stop()
	if c, err := connect(t, brief, s[0].addr, "again-"+s[0].addr, s[1].addr); !errors.Is(err, seq.ErrNoQuorum) {
		t.Errorf("got %+v, %v, expected %v", c.Identity, err, seq.ErrNoQuorum)
	}
}

func TestConnectFailsAtOnceIfTooFewStoresBelongTogether(t *testing.T) {
	s, others := three(t), three(t)
	foreign := initStore(t, "b", func(c *storesvr.InitConfig) { c.ClusterID = "c2" })
	odd := initStore(t, "b", func(c *storesvr.InitConfig) { c.R, c.W = 2, 3 })
	mustConnect(t, addrs(s...)...)
	mustConnect(t, addrs(others...)...)
	new3 := three(t)
	rows := []struct {
		name  string
		addrs []string
		want  error
		text  string
	}{
		{"no address", nil, seq.ErrBadArgument, ""},
		{"one address twice", []string{s[0].addr, s[0].addr, s[2].addr}, seq.ErrBadArgument, s[0].addr},
		{"three that differ", []string{s[0].addr, foreign.addr, odd.addr}, seq.ErrForeignCluster, foreign.addr},
		{"new stores and another", []string{new3[0].addr, foreign.addr, new3[2].addr}, seq.ErrForeignCluster, foreign.addr},
		{"two clusters of one name", append(addrs(s...), addrs(others...)...), seq.ErrStaleEra, others[0].addr},
	}
	for _, row := range rows {
		if _, err := connect(t, patience, row.addrs...); !errors.Is(err, row.want) || !strings.Contains(err.Error(), row.text) {
			t.Errorf("%s: got %v, want %v naming %q", row.name, err, row.want, row.text)
		}
	}
}

func TestAClusterIsCompleteWithAnAddressForEachStore(t *testing.T) {
	s := three(t)
	if err := mustConnect(t, addrs(s...)...).Complete(); err != nil {
		t.Errorf("all addresses: %v", err)
	}
	if err := mustConnect(t, addrs(s[:2]...)...).Complete(); !errors.Is(err, seq.ErrBadArgument) || !strings.Contains(err.Error(), "2 addresses for 3 stores") {
		t.Errorf("two addresses of three: got %v, want %v", err, seq.ErrBadArgument)
	}
}

func TestADiskMadeAnewIsNotLetInUnderItsOldName(t *testing.T) {
	s := three(t)
	old := mustConnect(t, addrs(s...)...)
	s[2].stop()
	fresh := initStore(t, "c")
	fresh.stop()
	s[2].dir = fresh.dir
	s[2].start()

	c := mustConnect(t, addrs(s...)...)
	prepare := quorum.PrepareRequest{Ref: c.Identity.Ref, Session: alice, Secret: sessiontest.SecretOf(alice), Items: []quorum.PrepareItem{{Register: section, Round: 1}}}
	if _, err := c.Stores[2].Client.Prepare(t.Context(), prepare); !errors.Is(err, seq.ErrStaleEra) {
		t.Errorf("the new disk: got %v, want %v", err, seq.ErrStaleEra)
	}
	if len(c.Odd) != 1 || !errors.Is(c.Odd[0].Err, seq.ErrNotVoting) {
		t.Errorf("odd %+v, expected the new disk", c.Odd)
	}
	deadline := time.After(patience)
	for {
		// The client of the old disk speaks with that disk or with none.
		_, err := old.Stores[2].Client.Prepare(t.Context(), prepare)
		if err == nil {
			t.Fatal("the new disk answered a client of the old one")
		}
		if errors.Is(err, seq.ErrStaleEra) {
			break
		}
		select {
		case <-deadline:
			t.Fatalf("a client of the old disk: got %v, want ErrStaleEra", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func TestConnectEndsWithItsContext(t *testing.T) {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer lis.Close() // accepts, and never answers
	if _, err := connect(t, brief, lis.Addr().String()); !errors.Is(err, seq.ErrNoQuorum) {
		t.Errorf("got %v, want ErrNoQuorum", err)
	}
}

func TestAllCallsOfAClientReachTheStore(t *testing.T) {
	s := three(t)
	c := mustConnect(t, addrs(s...)...)
	client, ref, ctx := c.Stores[0].Client, c.Identity.Ref, t.Context()
	epoch := seq.Epoch{Round: 3, Session: alice}
	payload := []byte(strings.Repeat("routes", 1<<20)) // beyond gRPC's usual 4 MiB
	reply, err := client.Prepare(ctx, quorum.PrepareRequest{Ref: ref, Session: alice, Secret: sessiontest.SecretOf(alice), Items: []quorum.PrepareItem{
		{Register: section, Round: 3}, {Register: seq.RoutesRegister, Round: 3}, {Register: seq.SectionRegister(99), Round: 3}, {Register: seq.TagRegister("t"), Round: 3, Create: true}}})
	if err != nil {
		t.Fatal(err)
	}
	want := []quorum.Result{{Verdict: quorum.VerdictOK, Promised: epoch}, {Verdict: quorum.VerdictOK, Promised: epoch},
		{Verdict: quorum.VerdictUnknown}, {Verdict: quorum.VerdictOK, Promised: epoch}}
	if diff := cmp.Diff(quorum.Reply{UUID: c.Stores[0].UUID, Results: want, Claim: reply.Claim}, reply); diff != "" || reply.Claim.Commits == 0 {
		t.Errorf("prepare: %s", diff)
	}
	reply, err = client.Step(ctx, quorum.StepRequest{Ref: ref, Session: alice, Secret: sessiontest.SecretOf(alice), Items: []quorum.StepItem{
		{Register: section, Round: 3, Max: 10_000}, {Register: seq.RoutesRegister, Round: 3, Max: 1, Payload: payload}}})
	if err != nil || reply.Results[0].Verdict != quorum.VerdictOK || reply.Results[1].Verdict != quorum.VerdictOK {
		t.Fatalf("step: %+v, %v", reply, err)
	}
	renewal, err := client.Renew(ctx, quorum.RenewRequest{Ref: ref, Session: alice, Secret: sessiontest.SecretOf(alice), Name: "alloc", Addr: "here:1", Lease: 5 * time.Second,
		Attach: []quorum.LeaseItem{{Register: section, Round: 3}, {Register: section, Round: 2}}, Attached: 1})
	if err != nil {
		t.Fatal(err)
	}
	if renewal.UUID != reply.UUID || renewal.BootCount != 1 || renewal.Reset || renewal.RouteVersion != 1 || renewal.Commits == 0 ||
		len(renewal.Refused) != 1 || len(renewal.Sessions) != 1 || renewal.Sessions[0].Addr != "here:1" {
		t.Errorf("renew: %+v", renewal)
	}
	reply, err = client.Read(ctx, quorum.ReadRequest{Ref: ref, Registers: []seq.Register{section, seq.RoutesRegister}})
	if err != nil {
		t.Fatal(err)
	}
	got := reply.Results[0]
	if got.Remaining <= 0 || got.Remaining > 5*time.Second {
		t.Errorf("remaining is %v", got.Remaining)
	}
	got.Remaining = 0
	if diff := cmp.Diff(quorum.Result{Verdict: quorum.VerdictHeld, Promised: epoch, Accepted: epoch, Max: 10_000, Holder: alice}, got); diff != "" {
		t.Errorf("read: %s", diff)
	}
	if string(reply.Results[1].Payload) != string(payload) {
		t.Errorf("read: %d bytes of payload, want %d", len(reply.Results[1].Payload), len(payload))
	}
	uuid, err := client.Release(ctx, quorum.ReleaseRequest{Ref: ref, Session: alice, Secret: sessiontest.SecretOf(alice), All: true})
	if err != nil || uuid != reply.UUID {
		t.Errorf("release: %q, %v", uuid, err)
	}
	all, err := client.Read(ctx, quorum.ReadRequest{Ref: ref, Prefix: "s"})
	if err != nil || len(all.Results) != 4 || all.Results[2].Register != section || all.Results[2].Verdict != quorum.VerdictOK {
		t.Errorf("read by prefix: %+v, %v", all, err)
	}
	ref.Cluster = "c2"
	if _, err := client.Read(ctx, quorum.ReadRequest{Ref: ref}); !errors.Is(err, seq.ErrForeignCluster) {
		t.Errorf("another cluster: got %v, want ErrForeignCluster", err)
	}
}
