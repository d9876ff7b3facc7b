// Package etcdpath tests whole paths on a real etcd: callers, AllocSvr, etcd.
package etcdpath
