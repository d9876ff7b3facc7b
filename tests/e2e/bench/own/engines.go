package own

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/base/clock"
	"github.com/seqsvr/seqsvr/internal/etcd/etcdclient"
	"github.com/seqsvr/seqsvr/internal/etcd/etcdstore"
	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/internal/wire/storeclient"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// anyEtcd is the oldest etcd that is measured: what this machine has.
const anyEtcd = "3.4.0"

// startEtcd starts members, and gives the flags by which they are found.
func startEtcd(ctx context.Context, dir string, members int) (*localcluster.Etcd, etcdclient.Flags, error) {
	e, err := localcluster.StartEtcd(localcluster.EtcdConfig{Dir: filepath.Join(dir, "etcd"), Members: members})
	if err != nil {
		return nil, etcdclient.Flags{}, err
	}
	flags := etcdclient.Flags{Endpoints: e.Endpoints(), Prefix: "/seqsvr", MinVersion: anyEtcd}
	client, err := dialEtcd(flags)
	if err == nil {
		_, err = e.Leader(ctx, client)
		err = errors.Join(err, client.Close())
	}
	if err != nil {
		e.Close()
	}
	return e, flags, err
}

func dialEtcd(flags etcdclient.Flags) (*etcdclient.Client, error) {
	cfg, err := flags.Config(slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	return etcdclient.Dial(cfg)
}

// away has do run while no AllocSvr does.
func (c *Cluster) away(ctx context.Context, do func() error) error {
	allocs := c.Processes(localcluster.RoleAlloc)
	for _, p := range allocs {
		if err := p.Stop(ctx); err != nil {
			return err
		}
	}
	failed := do()
	for _, p := range allocs {
		if err := p.Start(); err != nil && !errors.Is(err, localcluster.ErrRunning) {
			return errors.Join(failed, err)
		}
	}
	wait, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	return errors.Join(failed, c.WaitReady(wait))
}

// Restart stops the AllocSvr in order and starts it. It gives how long after the start a program
// with an SDK has its first number, and how long until every section has given it one.
func (c *Cluster) Restart(ctx context.Context) (first, all time.Duration, err error) {
	p := c.Processes(localcluster.RoleAlloc)[0]
	err = c.away(ctx, func() error {
		wait, cancel := context.WithTimeout(ctx, startPatience)
		defer cancel()
		began := time.Now()
		if err := p.Start(); err != nil {
			return err
		}
		sdk, err := client.New(wait, client.Config{Addrs: []string{p.Addr}, Lazy: true, Timeout: startPatience})
		if err != nil {
			return err
		}
		defer sdk.Close()
		if _, err := sdk.Next(wait, client.Key{UID: 7}); err != nil {
			return err
		}
		first = time.Since(began)
		if err := takeEach(wait, sdk); err != nil {
			return err
		}
		all = time.Since(began)
		return nil
	})
	return first, all, err
}

// takeEach takes a number from each section of the default space.
func takeEach(ctx context.Context, sdk *client.Client) error {
	mapping, _ := sdk.Caller().Table().Mapping()
	space, err := mapping.Space(seq.DefaultSpace)
	if err != nil {
		return err
	}
	var uids []seq.UID
	seen := map[seq.SectionID]bool{}
	for uid := seq.UID(0); len(seen) < int(space.Sections); uid += 1 << seq.BlockBits {
		if id := space.SectionOf(uid); !seen[id] {
			seen[id], uids = true, append(uids, uid)
		}
	}
	for part := range slices.Chunk(uids, seq.MaxBatch) {
		ranges, err := sdk.NextBatch(ctx, "", part, nil)
		for _, r := range ranges {
			err = errors.Join(err, r.Err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// takeovers make a measurement.
const takeovers = 5

// Takeover is the median time that PREPARE and then STEP of so many sections take a session that
// nothing else stands against. Their numbers go on above what it has written.
func (c *Cluster) Takeover(ctx context.Context, sections int) (time.Duration, error) {
	var took []time.Duration
	err := c.away(ctx, func() error {
		identity, stores, end, err := c.registers(ctx)
		if err != nil {
			return err
		}
		defer end()
		for i := range takeovers {
			one, err := takeover(ctx, identity, stores, seq.NewSecret(fmt.Sprintf("taker-%d", i)), sections)
			if err != nil {
				return err
			}
			took = append(took, one)
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	slices.Sort(took)
	return took[takeovers/2], nil
}

// registers connects to what keeps the registers.
func (c *Cluster) registers(ctx context.Context) (quorum.Identity, []quorum.NamedStore, func() error, error) {
	if !c.etcd.Given() {
		found, err := storeclient.Connect(ctx, c.Addrs(localcluster.RoleStore))
		return found.Identity, storeclient.NamedStores(found.Stores), found.Close, err
	}
	kv, err := dialEtcd(c.etcd)
	if err != nil {
		return quorum.Identity{}, nil, nil, err
	}
	s, err := etcdstore.Open(ctx, etcdstore.Config{KV: kv, Prefix: c.etcd.Prefix, Clock: clock.Boot()})
	if err != nil {
		return quorum.Identity{}, nil, nil, errors.Join(err, kv.Close())
	}
	id := s.Identity()
	return id, []quorum.NamedStore{{Name: id.Name, UUID: id.UUID, Store: s}}, kv.Close, nil
}

// errTakeover: a session did not win a section.
var errTakeover = errors.New("section not taken over")

// takeover is the time from the first PREPARE to the last confirmed STEP.
func takeover(ctx context.Context, id quorum.Identity, stores []quorum.NamedStore, secret seq.Secret, sections int) (time.Duration, error) {
	group, err := quorum.NewGroup(quorum.Config{Ref: id.Ref, N: id.N, R: id.R, W: id.W, Timeout: startPatience, Secret: secret}, stores)
	if err != nil {
		return 0, err
	}
	defer group.Close()
	session := secret.Session()
	regs := make([]seq.Register, sections)
	for i := range regs {
		regs[i] = seq.SectionRegister(seq.SectionID(i))
	}
	prepare, step := make([]quorum.PrepareItem, sections), make([]quorum.StepItem, sections)
	for i, out := range group.Probe(ctx, session, regs) {
		if out.State != quorum.Won {
			return 0, fmt.Errorf("%w: look at %s: %s %w", errTakeover, regs[i], out.State, out.Err)
		}
		prepare[i] = quorum.PrepareItem{Register: regs[i], Round: out.Promised.Round + 1}
	}
	began := time.Now()
	for i, out := range group.Prepare(ctx, session, prepare) {
		if out.State != quorum.Won {
			return 0, fmt.Errorf("%w: prepare %s: %s %w", errTakeover, regs[i], out.State, out.Err)
		}
		step[i] = quorum.StepItem{Register: regs[i], Round: prepare[i].Round, Max: out.Max + seq.DefaultStep}
	}
	for i, out := range group.Step(ctx, session, step) {
		if out.State != quorum.Won {
			return 0, fmt.Errorf("%w: step %s: %s %w", errTakeover, regs[i], out.State, out.Err)
		}
	}
	return time.Since(began), nil
}
