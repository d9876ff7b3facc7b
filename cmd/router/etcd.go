package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seqsvr/seqsvr/internal/base/wake"
	"github.com/seqsvr/seqsvr/internal/etcd/etcdclient"
	"github.com/seqsvr/seqsvr/internal/etcd/etcdstore"
	"github.com/seqsvr/seqsvr/seq"
)

// How long AllocSvr are looked for in etcd, and how often.
const (
	findPatience = 30 * time.Second
	findPause    = 500 * time.Millisecond
)

// errNoAllocs: no AllocSvr has written itself into etcd. Start one, or name some by --allocs.
var errNoAllocs = errors.New("no AllocSvr has a session in etcd: start one, or give --allocs")

// checkSources wants either AllocSvr or an etcd that they are found in.
func (o *options) checkSources() error {
	cfg := o.Config
	switch {
	case o.etcd.Given() && len(o.Allocs) > 0:
		return fmt.Errorf("%w: --allocs and --etcd, expected one of them: etcd tells the AllocSvr", seq.ErrBadArgument)
	case o.etcd.Given():
		if _, err := o.etcd.Config(o.Common.Logger); err != nil {
			return err
		}
		cfg.Allocs = o.etcd.Endpoints // in the place of those that are found there
	case len(o.Allocs) == 0:
		return fmt.Errorf("%w: no --allocs, expected the address of an AllocSvr, or an --etcd to find them in", seq.ErrBadArgument)
	}
	return cfg.Validate()
}

// findAllocs adds the AllocSvr that have a session in etcd now. They report later ones in the route table.
func (o *options) findAllocs(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, findPatience)
	defer cancel()
	with, err := o.etcd.Config(o.Common.Logger)
	if err != nil {
		return err
	}
	client, err := etcdclient.Dial(with)
	if err != nil {
		return err
	}
	o.Allocs, err = o.lookForAllocs(ctx, client)
	return errors.Join(err, client.Close())
}

func (o *options) lookForAllocs(ctx context.Context, client *etcdclient.Client) ([]string, error) {
	for {
		_, err := client.Check(ctx, o.etcd.Requirement())
		var there etcdstore.Contents
		if err == nil {
			there, err = etcdstore.Look(ctx, client, o.etcd.Prefix)
		}
		var addrs []string
		for _, s := range there.Sessions {
			addrs = append(addrs, s.Addr)
		}
		slices.Sort(addrs)
		switch {
		case err == nil && o.ClusterID != "" && there.Cluster != o.ClusterID:
			return nil, fmt.Errorf("%w: cluster %q is in etcd below %s, not %q", seq.ErrForeignCluster, there.Cluster, o.etcd.Prefix, o.ClusterID)
		case len(addrs) > 0:
			o.Common.Logger.Info("AllocSvr found in etcd", "addrs", addrs)
			return addrs, nil
		case err == nil:
			err = errNoAllocs
		case !errors.Is(err, etcdclient.ErrUnreachable):
			return nil, err
		}
		if !wake.Sleep(ctx, findPause) {
			return nil, fmt.Errorf("find AllocSvr in etcd below %s: %w", o.etcd.Prefix, err)
		}
	}
}
