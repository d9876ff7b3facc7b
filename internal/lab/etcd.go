package lab

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/seqsvr/seqsvr/internal/etcdclient"
	"github.com/seqsvr/seqsvr/internal/etcdflags"
	"github.com/seqsvr/seqsvr/internal/etcdstore"
	"github.com/seqsvr/seqsvr/internal/localcluster"
)

// oldestEtcd is the oldest version that a drill's own cluster takes, unless another was asked
// for: what is drilled there is this system on the etcd of this machine, and nothing lasts.
const oldestEtcd = "3.4.0"

// startEtcd starts members for the layout, and waits until they have a leader.
func (c *Cluster) startEtcd(ctx context.Context, dir string, members int, layout localcluster.Config) (etcdflags.Flags, error) {
	flags := etcdflags.Flags{Prefix: layout.Etcd.Prefix, MinVersion: layout.Etcd.MinVersion}
	if flags.MinVersion == "" {
		flags.MinVersion = oldestEtcd
	}
	var err error
	c.members, err = localcluster.StartEtcd(localcluster.EtcdConfig{Dir: dir, Members: members, Host: layout.Host, Wrap: layout.Wrap})
	if err != nil {
		return flags, err
	}
	for _, p := range c.members.Processes() {
		c.Nodes, c.processes[p.Name] = append(c.Nodes, p.Node), p
	}
	flags.Endpoints = c.members.Endpoints()
	client, err := dialEtcd(flags)
	if err != nil {
		return flags, err
	}
	wait, cancel := context.WithTimeout(ctx, c.Patience)
	defer cancel()
	return flags, errors.Join(c.members.WaitReady(wait, client), client.Close())
}

// OnEtcd says whether the registers are in an etcd.
func (c *Cluster) OnEtcd() bool { return c.etcd.Given() }

func dialEtcd(flags etcdflags.Flags) (*etcdclient.Client, error) {
	cfg, err := flags.Config(slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	return etcdclient.Dial(cfg)
}

// member is a node as etcd tells of it.
func (s *Scene) member(ctx context.Context, which func(etcdclient.Member) bool) (localcluster.Node, error) {
	client, err := dialEtcd(s.etcd)
	if err != nil {
		return localcluster.Node{}, err
	}
	status := client.Status(ctx)
	if err := client.Close(); err != nil {
		return localcluster.Node{}, err
	}
	for _, m := range status {
		at := slices.IndexFunc(s.Nodes, func(n localcluster.Node) bool { return n.Addr == m.Addr })
		if m.Err == nil && m.Leader != 0 && which(m) && at >= 0 {
			return s.Nodes[at], nil
		}
	}
	return localcluster.Node{}, fmt.Errorf("%w: %+v", errNoMember, status)
}

// errNoMember: none of the members is as it was looked for.
var errNoMember = errors.New("no such member of etcd now")

// leading chooses the leader of etcd.
func leading(ctx context.Context, s *Scene) ([]string, error) {
	var found localcluster.Node
	err := s.until(ctx, 5*poll, func(ctx context.Context) (err error) {
		found, err = s.member(ctx, func(m etcdclient.Member) bool { return m.ID == m.Leader })
		return err
	})
	return []string{found.Name}, err
}

// led waits until a member of etcd answers and knows a leader.
func (s *Scene) led(ctx context.Context, n localcluster.Node) error {
	return s.until(ctx, 5*poll, func(ctx context.Context) error {
		_, err := s.member(ctx, func(m etcdclient.Member) bool { return m.Addr == n.Addr })
		return err
	})
}

// errOnlooker: a drill changes nothing in etcd, also where it finds something that others should
// be warned of.
var errOnlooker = errors.New("a drill only looks at etcd")

// onlooker is an etcd that is not written to.
type onlooker struct{ etcdstore.KV }

// Do implements etcdstore.KV.
func (o onlooker) Do(ctx context.Context, t etcdstore.Txn) (etcdstore.Answer, error) {
	for _, op := range slices.Concat(t.Then, t.Else) {
		if op.Kind != etcdstore.Get {
			return etcdstore.Answer{}, errOnlooker
		}
	}
	return o.KV.Do(ctx, t)
}
