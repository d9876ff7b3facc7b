package main

import (
	"fmt"

	"github.com/seqsvr/seqsvr/allocsvr"
	"github.com/seqsvr/seqsvr/internal/etcd/etcdclient"
	"github.com/seqsvr/seqsvr/seq"
)

// openEtcd takes the flags of etcd over, and refuses what does not work with it.
func (o *options) openEtcd() error {
	if !o.etcd.Given() {
		return nil
	}
	if o.supervise {
		return fmt.Errorf("%w: --supervise with --etcd: the parent ends sessions at StoreSvr only", seq.ErrBadArgument)
	}
	if !o.fs.Changed("lease") {
		o.Lease = etcdclient.DefaultLease
	}
	cfg, err := o.etcd.Config(o.Common.Logger)
	o.Etcd = allocsvr.Etcd{Config: cfg, Prefix: o.etcd.Prefix, Requirement: o.etcd.Requirement()}
	return err
}
