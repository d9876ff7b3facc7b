package lab

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"github.com/seqsvr/seqsvr/internal/etcd/etcdclient"
	"github.com/seqsvr/seqsvr/internal/etcd/etcdstore"
	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
)

// oldestEtcd is the oldest version that a drill's own cluster takes, unless another was asked
// for: what is drilled there is this system on the etcd of this machine, and nothing lasts.
const oldestEtcd = "3.4.0"

// startEtcd starts members for the layout, and waits until they have a leader.
func (c *Cluster) startEtcd(ctx context.Context, dir string, members int, layout localcluster.Config) error {
	flags := etcdclient.Flags{Prefix: layout.Etcd.Prefix, MinVersion: layout.Etcd.MinVersion}
	if flags.MinVersion == "" {
		flags.MinVersion = oldestEtcd
	}
	var err error
	c.members, err = localcluster.StartEtcd(localcluster.EtcdConfig{Dir: dir, Members: members, Host: layout.Host, Wrap: layout.Wrap})
	if err != nil {
		return err
	}
	for _, p := range c.members.Processes() {
		c.Nodes, c.processes[p.Name] = append(c.Nodes, p.Node), p
	}
	flags.Endpoints = c.members.Endpoints()
	c.etcd = flags
	wait, cancel := context.WithTimeout(ctx, c.Patience)
	defer cancel()
	_, err = c.leader(wait)
	return err
}

// OnEtcd says whether the registers are in an etcd.
func (c *Cluster) OnEtcd() bool { return c.etcd.Given() }

func dialEtcd(flags etcdclient.Flags) (*etcdclient.Client, error) {
	cfg, err := flags.Config(slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	return etcdclient.Dial(cfg)
}

// leader is the member that leads, once all that run know it.
func (c *Cluster) leader(ctx context.Context) (string, error) {
	client, err := dialEtcd(c.etcd)
	if err != nil {
		return "", err
	}
	p, err := c.members.Leader(ctx, client)
	if err = errors.Join(err, client.Close()); err != nil {
		return "", err
	}
	return p.Name, nil
}

// leading chooses the leader of etcd.
func leading(ctx context.Context, s *Scene) (victims []string, err error) {
	err = s.until(ctx, poll, func(ctx context.Context) error {
		name, err := s.leader(ctx)
		victims = []string{name}
		return err
	})
	return victims, err
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
