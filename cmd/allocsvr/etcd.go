package main

import (
	"fmt"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr"
	"github.com/seqsvr/seqsvr/internal/etcdclient"
	"github.com/seqsvr/seqsvr/seq"
)

// etcdLease is the lease where the registers are in etcd and none was asked for: an election there
// takes a second or two, in which nothing is renewed.
const etcdLease = 3 * time.Second

// openEtcd takes the flags of etcd over, and refuses what does not work with it.
func (o *options) openEtcd() error {
	if !o.etcd.Given() {
		return nil
	}
	if o.supervise {
		return fmt.Errorf("%w: --supervise with --etcd: the parent ends sessions at StoreSvr only", seq.ErrBadArgument)
	}
	if !o.fs.Changed("lease") {
		o.Lease = etcdLease
	}
	cfg, err := o.etcd.Config(o.Common.Logger)
	o.Etcd = allocsvr.Etcd{Config: cfg, Prefix: o.etcd.Prefix, Requirement: etcdclient.Requirement{MinVersion: o.etcd.MinVersion}}
	return err
}
