package processes

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

// The lease is so long that only a preemption can end before it does.
func TestWhatASilentNodeHasOfStrictAndExactSpacesIsServedBeforeItsLeaseEnds(t *testing.T) {
	const lease = 10 * time.Second
	c := start(t, func(cfg *localcluster.Config) {
		cfg.Lease = lease
		cfg.Spaces = []string{"live:mode=strict,sections=16", "orders:mode=exact,window=10m,sections=16"}
		cfg.Args = map[localcluster.Role][]string{
			localcluster.RoleAlloc:  {"--suspect-after", "200ms"},
			localcluster.RoleRouter: {"--suspect-after", "200ms", "--attempt-timeout", "2m"},
		}
	})
	sdk := connect(t, client.Config{Addrs: c.Addrs(localcluster.RoleAlloc), Timeout: time.Minute, SuspectAfter: 200 * time.Millisecond})
	routed := connect(t, client.Config{Addrs: c.Addrs(localcluster.RoleRouter), Indirect: true, Timeout: time.Minute, AttemptTimeout: 2 * time.Minute})
	last := map[seq.Key]seq.Seq{}
	take := func(when string) {
		t.Helper()
		for uid := seq.UID(0); uid < 32*(1<<seq.BlockBits); uid += (1 << seq.BlockBits) { // sections in turn
			for _, space := range []string{"live", "orders"} {
				key := seq.Key{Space: space, UID: uid}
				for by, c := range []*client.Client{routed, sdk} {
					n, err := c.Next(harness.Within(t), key)
					if err != nil || n <= last[key] || space == "orders" && n != last[key]+1 {
						t.Fatalf("%s, by client %d: %v after %d: got %d, %v", when, by, key, last[key], n, err)
					}
					last[key] = n
				}
			}
		}
	}
	take("at first")
	owned := func(addr string) (uids []seq.UID) { // of the default space, at the address
		v := sdk.Caller().Table().View()
		for uid := seq.UID(0); uid < 256<<seq.BlockBits; uid += 1 << seq.BlockBits {
			if owner := v.Owner(v.Mapping.Spaces[0].SectionOf(uid)); owner != nil && owner.Addr == addr {
				uids = append(uids, uid)
			}
		}
		return uids
	}
	pause := func() {
		owner := slices.MaxFunc(c.Processes(localcluster.RoleAlloc), func(a, b *localcluster.Process) int { return len(owned(a.Addr)) - len(owned(b.Addr)) })
		ordinary := owned(owner.Addr)[0]
		if err := owner.Pause(); err != nil {
			t.Fatal(err)
		}
		paused := time.Now()
		take("while a node stands still")
		if time.Since(paused) < lease/2 {
			ctx, cancel := context.WithTimeout(t.Context(), lease/10)
			defer cancel()
			if n, err := sdk.Next(ctx, seq.Key{UID: ordinary}); err == nil {
				t.Errorf("a section of the ordinary space was served before the lease ended: %d", n)
			}
		}
		if err := owner.Resume(); err != nil {
			t.Fatal(err)
		}
		take("when it runs again")
	}
	harness.Until(t, "the preemption is among the events", func() bool { // nodes that have just started suspect no other
		pause()
		return strings.Contains(run(t, "seqctl", "events", "--addr", c.GRPC()).Stdout, "preempt")
	})
}

func connect(t *testing.T, cfg client.Config) *client.Client {
	t.Helper()
	c, err := client.New(harness.Within(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}
