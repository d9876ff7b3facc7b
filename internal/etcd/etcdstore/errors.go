package etcdstore

import "errors"

var (
	// ErrNoSpace: etcd's database has reached its quota. A write may have been done in spite of it, and
	// writes of registers are not even counted, because they are nested. Leases end. An operator must
	// compact, defragment and disarm, or raise the quota (docs of etcd: space quota). It goes with
	// seq.ErrStoreFull.
	ErrNoSpace = errors.New("etcd has no space left")
	// ErrNotInitialized: there is no cluster below the prefix, or its making was not finished.
	ErrNotInitialized = errors.New("no cluster below this prefix of etcd")
	// ErrInitialized: there is a cluster below the prefix already.
	ErrInitialized = errors.New("a cluster is below this prefix of etcd already")
	// ErrRestored: etcd shows less than it had shown: it was put back to an older state, and
	// numbers would be repeated. It goes with seq.ErrNotVoting. An operator must act: the
	// cluster needs a new era with every ceiling raised.
	ErrRestored = errors.New("etcd was put back to an older state")
	// ErrNoExact: exact spaces are kept on StoreSvr only. Do not retry.
	ErrNoExact = errors.New("exact spaces are not supported on etcd")
	// ErrDamaged: a value below the prefix is not what this program wrote there. An operator
	// must look. Do not retry.
	ErrDamaged = errors.New("damaged value in etcd")
)
