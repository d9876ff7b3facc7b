package rounds

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/base/clock"
	"github.com/seqsvr/seqsvr/internal/lab"
	"github.com/seqsvr/seqsvr/internal/lab/history"
	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/internal/lab/netlab"
	"github.com/seqsvr/seqsvr/seq"
)

// seamFaults concern what operators do: two clusters of one name, a rehash, and a restore.
func (s *Site) seamFaults() []lab.Scenario {
	return []lab.Scenario{
		{Name: "rehash-of-string-keys", Alone: true, Run: s.rehash},
		{Name: "two-clusters-of-one-name", Run: s.oneName, Alone: true},
		{Name: "space-added-after-the-backup", Run: s.lostSpace, Alone: true},
	}
}

const (
	taken     = 20 // numbers that a client takes in a row, or tries to
	takeUIDs  = 3  // of so many UIDs
	takeUntil = 100 * time.Millisecond
)

// A neighbour is a second cluster of the site's name: the nodes have the same names, and are told the site's
// membership addresses. It has callers and a history of its own.
type neighbour struct {
	*localcluster.Cluster
	site    *Site
	dir     string
	clock   clock.Clock
	history history.Recorder
}

// startNeighbour starts a cluster of one store, one allocator and one router, and waits until it serves.
func (s *Site) startNeighbour(ctx context.Context) (*neighbour, error) {
	dir, err := os.MkdirTemp("", "seqsvr-neighbour-")
	if err != nil {
		return nil, err
	}
	cfg := localcluster.DefaultConfig(filepath.Join(dir, "cluster"))
	cfg.Bin, cfg.ClusterID, cfg.Lease = s.cfg.Bin, s.Own.ClusterID, s.cfg.Lease
	cfg.Stores, cfg.Allocs, cfg.Routers, cfg.Sections = 1, 1, 1, sections
	if s.cfg.Network != nil { // in the hub, which all nodes reach
		cfg.Host = func(string) string { return netlab.HubAddr }
	}
	join := []string{"--gossip-join", strings.Join(s.Own.GossipAddrs(), ",")}
	cfg.Args = map[localcluster.Role][]string{store: join, alloc: join, router: join}
	n := &neighbour{site: s, dir: dir, clock: clock.Boot()}
	if n.Cluster, err = localcluster.Start(cfg); err == nil {
		if err = n.ready(ctx); err != nil {
			n.Cluster.Close()
		}
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return n, nil
}

func (n *neighbour) ready(ctx context.Context) error {
	wait, cancel := context.WithTimeout(ctx, n.site.Patience)
	defer cancel()
	return n.WaitReady(wait)
}

// close ends the cluster and judges what its callers got. A process that panicked is an error.
func (n *neighbour) close() error {
	n.Cluster.Close()
	err := history.Check(n.history.Calls()).Err()
	for _, p := range n.Processes() {
		if line := localcluster.PanicIn(p.Log); line != "" {
			err = errors.Join(err, fmt.Errorf("%s: %s", p.Name, line))
		}
	}
	if err != nil {
		err = fmt.Errorf("%w: the neighbour: %w", ErrViolated, err)
	}
	return errors.Join(err, os.RemoveAll(n.dir))
}

// take takes numbers of a space, and records them under the client's number. The error is of the last call.
func (n *neighbour) take(ctx context.Context, who int, c *client.Client, space string) error {
	var err error
	for i := range taken {
		key := client.Key{Space: space, UID: seq.UID(who<<8 + i%takeUIDs)}
		call := history.Call{Key: history.Key{Space: space, UID: uint64(key.UID)}, Client: who, Start: n.clock.Now()}
		limited, cancel := context.WithTimeout(ctx, takeUntil)
		var got client.Range
		got, err = c.Take(limited, key, 1)
		cancel()
		if call.End = n.clock.Now(); err != nil {
			call.Err = err.Error()
		} else {
			call.First, call.Last, call.Unordered = uint64(got.First), uint64(got.Last), got.Unordered
		}
		n.history.Add(call)
	}
	return err
}

// oneName runs a second cluster of the same name beside the first. A client that is given the addresses of
// both holds to the cluster that answered first, and is refused if both answer. Callers of the second cluster
// get its numbers alone, also while its only allocator is away.
func (s *Site) oneName(ctx context.Context, sc *lab.Scene) (err error) {
	n, err := s.startNeighbour(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	both := client.Config{Addrs: slices.Concat(n.Addrs(router), s.Addrs(router, alloc))}
	if c, err := client.New(ctx, both); !errors.Is(err, seq.ErrForeignCluster) && ctx.Err() == nil {
		if err == nil {
			_ = c.Close()
		}
		return fmt.Errorf("%w: a client of both clusters: %w, want %w", lab.ErrUnexpected, err, seq.ErrForeignCluster)
	}
	n.KillAll()
	first, err := client.New(ctx, both) // of the site, which alone answers
	if err != nil {
		return err
	}
	defer first.Close()
	sc.Note("all of the other cluster killed and started")
	if err := errors.Join(n.StartAll(), n.ready(ctx)); err != nil {
		return err
	}
	own, err := client.New(ctx, client.Config{Addrs: n.Addrs(router)})
	if err != nil {
		return err
	}
	defer own.Close()
	all := func(ctx context.Context) error {
		return errors.Join(n.take(ctx, 1, first, ""), n.take(ctx, 2, own, ""))
	}
	if err := s.until(ctx, "both clusters serve", all); err != nil {
		return err
	}
	if err := n.Process("alloc-1").Kill(); err != nil {
		return err
	}
	sc.Note("alloc-1 of the other cluster killed")
	if err := n.take(ctx, 2, own, ""); err == nil {
		return fmt.Errorf("%w: a caller of the other cluster is served without its allocator", lab.ErrUnexpected)
	}
	if err := errors.Join(n.Process("alloc-1").Start(), n.ready(ctx)); err != nil {
		return err
	}
	return s.until(ctx, "both clusters serve again", all)
}

// lostSpaces are added after the backup.
var lostSpaces = []string{"room:sections=4", "live:mode=strict,sections=4", "bills:mode=exact,sections=4"}

// lostSpace takes a backup of a second cluster, adds spaces, loses all disks, and restores. The spaces are
// added again, and must go on above what they handed out.
func (s *Site) lostSpace(ctx context.Context, sc *lab.Scene) (err error) {
	n, err := s.startNeighbour(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	at := []string{"--addr", n.GRPC(), "--stores", n.Addrs(store)[0]}
	file := filepath.Join(n.dir, "backup")
	if err := n.takeAll(ctx, 1, ""); err != nil {
		return err
	}
	if _, err := s.command(ctx, "seqctl", append([]string{"store", "backup", "--out", file}, at...)...); err != nil {
		return err
	}
	if err := n.addSpaces(ctx); err != nil {
		return err
	}
	sc.Note("all disks of the other cluster lost, and restored from before %d spaces", len(lostSpaces))
	n.KillAll()
	disk := n.Process("store-1")
	if err := os.RemoveAll(disk.Dir); err != nil {
		return err
	}
	_, err = s.command(ctx, "seqctl", "store", "restore", "--from", file, "--era", "1", "--cluster", n.ClusterID, "--data-dir", disk.Dir, "--name", disk.Name, "--members", disk.Name)
	if err != nil {
		return err
	}
	if err := errors.Join(n.StartAll(), n.ready(ctx)); err != nil {
		return err
	}
	if err := n.takeAll(ctx, 1, ""); err != nil {
		return err
	}
	return n.addSpaces(ctx)
}

// takeAll takes numbers of a space with a client of its own, until the space serves.
func (n *neighbour) takeAll(ctx context.Context, who int, space string) error {
	c, err := client.New(ctx, client.Config{Addrs: n.Addrs(router)})
	if err != nil {
		return err
	}
	defer c.Close()
	return n.site.until(ctx, "numbers of the space "+cmp.Or(space, seq.DefaultSpace), func(ctx context.Context) error { return n.take(ctx, who, c, space) })
}

// addSpaces adds the spaces, which must not be there yet, and takes numbers of each.
func (n *neighbour) addSpaces(ctx context.Context) error {
	for _, form := range lostSpaces {
		name, _, _ := strings.Cut(form, ":")
		c, err := client.New(ctx, client.Config{Addrs: n.Addrs(router)})
		if err != nil {
			return err
		}
		_, err = c.Next(ctx, client.Key{Space: name, UID: 1})
		_ = c.Close()
		if ctx.Err() == nil && !errors.Is(err, seq.ErrUnknownSpace) {
			return fmt.Errorf("%w: before the space %s is added: %w", lab.ErrUnexpected, name, err)
		}
		if _, err := n.site.command(ctx, "seqctl", "space", "add", form, "--wait", "--addr", n.GRPC()); err != nil {
			return err
		}
		if err := n.takeAll(ctx, 1, name); err != nil {
			return err
		}
	}
	return nil
}
