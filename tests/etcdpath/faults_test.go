package etcdpath

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr"
	"github.com/seqsvr/seqsvr/internal/etcd/etcdclient"
	"github.com/seqsvr/seqsvr/internal/etcd/etcdstore"
	"github.com/seqsvr/seqsvr/tests/kit/etcdtest"
	"github.com/seqsvr/seqsvr/tests/robust/proxy"
)

func skipShort(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("runs etcd")
	}
}

func TestNumbersRiseWhileTheLeaderOfEtcdIsCutOffFromTheOthers(t *testing.T) {
	skipShort(t)
	etcd := etcdtest.StartApart(t, 3)
	initCluster(t, etcd, sections)
	a, b := startNode(t, "a", etcd), startNode(t, "b", etcd)
	l := callers(t, a, b)
	shares(t, a, b)
	old := etcd.AwaitLeader()
	etcd.Cut(old)
	until(t, "the others elect another", func() error { return deposed(t, etcd, old) })
	l.goesOn("without the former leader, which answers and can commit nothing")
	etcd.Cut()
	l.goesOn("with all members again")
}

// deposed is nil once the members beside one have another leader.
func deposed(t *testing.T, etcd *etcdtest.Cluster, one *etcdtest.Member) error {
	t.Helper()
	for _, m := range etcd.Dial().Status(t.Context()) {
		if m.Addr != one.Client && m.Leads() {
			return nil
		}
	}
	return errors.New("they have none")
}

// ways are a way of its own to each member, for one client.
func ways(t *testing.T, etcd *etcdtest.Cluster) (to []*proxy.Proxy, addrs []string) {
	t.Helper()
	for _, m := range etcd.Members {
		p, err := proxy.Listen("127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = p.Close() })
		p.Target(m.Client)
		to, addrs = append(to, p), append(addrs, p.Addr())
	}
	return to, addrs
}

func TestAnAllocatorThatIsCutOffFromMembersOfEtcd(t *testing.T) {
	skipShort(t)
	etcd := etcdtest.Start(t, 3)
	initCluster(t, etcd, sections)
	to, addrs := ways(t, etcd)
	cut := func(n int) {
		for i, p := range to {
			p.Set(proxy.Mode{StallA: i < n, StallB: i < n})
		}
	}
	a := startNode(t, "a", etcd, func(c *allocsvr.Config) { c.Etcd.Endpoints = addrs })
	b := startNode(t, "b", etcd)
	l := callers(t, a, b)
	shares(t, b, a)
	for n := 1; n <= 2; n++ {
		cut(n)
		l.goesOn(fmt.Sprintf("with a cut off from %d of 3 members", n))
		until(t, "a serves by the members that it reaches", func() error { return serves(t, a, 1) })
	}
	cut(3)
	until(t, "b has taken over what a cannot renew", func() error { return serves(t, b, sections) })
	l.goesOn("with a cut off from all members")
	cut(0)
	shares(t, b, a)
	l.goesOn("after that")
}

func TestNumbersRiseOnDisksThatSyncSlowly(t *testing.T) {
	skipShort(t)
	etcd := etcdtest.Start(t, 3)
	initCluster(t, etcd, sections)
	restart := func(m *etcdtest.Member, delay time.Duration) {
		m.Kill()
		m.SlowDisk(delay)
		m.Start()
		etcd.AwaitLeader()
	}
	a, b := startNode(t, "a", etcd), startNode(t, "b", etcd)
	l := callers(t, a, b)
	shares(t, a, b)
	const delay = 200 * time.Millisecond
	for _, m := range etcd.Members {
		restart(m, delay)
	}
	began := time.Now()
	if _, err := etcd.Dial().Do(t.Context(), etcdstore.Txn{Then: []etcdstore.Op{{Kind: etcdstore.Put, Key: "/x"}}}); err != nil || time.Since(began) < delay {
		t.Fatalf("a write after %v: %v, want one that takes %v at least", time.Since(began), err, delay)
	}
	l.goesOn("on disks that all take 200 ms longer")
	for _, m := range etcd.Members {
		restart(m, 0)
	}
	l.goesOn("on good disks again")
}

func TestNumbersRiseOverTheEndOfTokens(t *testing.T) {
	skipShort(t)
	const ttl = 3 * time.Second
	etcd := etcdtest.Start(t, 3, "--auth-token-ttl", strconv.Itoa(int(ttl.Seconds())), "--bcrypt-cost", "4")
	initCluster(t, etcd, sections)
	for _, args := range []string{"user add root:r", "role add root", "user grant-role root root", "user add seq:right", "role add seq",
		"role grant-permission seq readwrite " + prefix + "/ --prefix", "user grant-role seq seq", "auth enable"} {
		etcd.Ctl(strings.Fields(args)...)
	}
	a := startNode(t, "a", etcd, func(c *allocsvr.Config) { c.Etcd.User, c.Etcd.Password = "seq", "right" })
	l := callers(t, a)
	// A member forgets a token that it has not been shown for the ttl, and looks for those each
	// second. Only the first endpoint is shown it: the next one that is asked has forgotten it.
	for _, m := range etcd.Members[:2] {
		began := time.Now()
		until(t, "the ttl passes while all is well", func() error {
			if left := ttl + 2*time.Second - time.Since(began); left > 0 {
				return fmt.Errorf("%v are left", left)
			}
			return serves(t, a, 1)
		})
		m.Pause()
		l.goesOn("by a member that has forgotten the token")
		m.Resume()
	}
}

// space watches an etcd with a small quota.
type space struct {
	*testing.T
	etcd *etcdtest.Cluster
	kv   *etcdclient.Client
}

const (
	quota  = 16 << 20
	margin = 3 << 20 // the sizes that members tell are behind by some puts, and differ
)

// fill makes the database grow by so many bytes.
func (s *space) fill(bytes int) error {
	_, err := s.kv.Do(s.Context(), etcdstore.Txn{Then: []etcdstore.Op{{Kind: etcdstore.Put, Key: "/filler", Value: make([]byte, bytes)}}})
	return err
}

// nearlyFull leaves room for what is written meanwhile.
func (s *space) nearlyFull() {
	s.Helper()
	until(s.T, "etcd is nearly full", func() error {
		var size int64
		for _, m := range s.kv.Status(s.Context()) {
			size = max(size, m.Size)
		}
		if size < quota-margin {
			return errors.Join(fmt.Errorf("%d of %d bytes", size, quota), s.fill(256<<10))
		}
		return nil
	})
}

// full fills it at once.
func (s *space) full() {
	s.Helper()
	until(s.T, "etcd is full", func() error {
		for range 8 {
			if err := s.fill(1 << 20); err != nil {
				if errors.Is(err, etcdstore.ErrNoSpace) {
					return nil
				}
				return err
			}
		}
		return errors.New("it takes more")
	})
}

// free does what an operator has to.
func (s *space) free() {
	s.Helper()
	s.etcd.Ctl("del", "/filler")
	s.etcd.Ctl("compact", "--physical", strconv.FormatInt(s.revision(), 10))
	s.etcd.Ctl("defrag")
	s.etcd.Ctl("alarm", "disarm")
}

// revision returns etcd's revision. written returns the number of registers of sections that were written
// since a revision.
func (s *space) revision() int64         { revision, _ := s.look(0); return revision }
func (s *space) written(since int64) int { _, n := s.look(since); return n }

func (s *space) look(since int64) (revision int64, written int) {
	s.Helper()
	a, err := s.kv.Do(s.Context(), etcdstore.Txn{Then: []etcdstore.Op{{Kind: etcdstore.Get, Key: prefix + "/r/s", End: prefix + "/r/t"}}})
	if err != nil {
		s.Fatal(err)
	}
	for _, r := range a.Results[0].KVs {
		if r.Modified > since {
			written++
		}
	}
	return a.Revision, written
}

func TestAnEtcdThatIsFullInTheMidstOfATakeover(t *testing.T) {
	skipShort(t)
	const many = 1366
	etcd := etcdtest.Start(t, 3, "--quota-backend-bytes", strconv.Itoa(quota))
	initCluster(t, etcd, many)
	a := startNode(t, "a", etcd)
	until(t, "a has all", func() error { return serves(t, a, many) })
	slow, addrs := ways(t, etcd) // so that there is a time between its promises and its steps
	for _, p := range slow {
		p.Set(proxy.Mode{Delay: 100 * time.Millisecond})
	}
	b := startNode(t, "b", etcd, func(c *allocsvr.Config) { c.Etcd.Endpoints = addrs })
	l := callers(t, a, b)
	until(t, "b is there", func() error { return serves(t, b, 0) })
	s := &space{T: t, etcd: etcd, kv: etcd.Dial()}
	s.nearlyFull()
	a.server.Close() // as by a crash
	died := s.revision()
	until(t, "b begins to take over", func() error {
		if s.written(died) == 0 {
			return errors.New("it has promises of none")
		}
		return nil
	})
	s.full()
	full := time.Now()
	t.Logf("full when b had written %d of %d registers", s.written(died), many)
	until(t, "b serves nothing once a lease has passed, since no beat is taken", func() error {
		if passed := time.Since(full); passed <= lease || serves(t, b, 1) == nil {
			return fmt.Errorf("%v after it was full", passed)
		}
		return nil
	})
	s.free()
	until(t, "b has all", func() error { return serves(t, b, many) })
	l.goesOn("after there was space again")
}
