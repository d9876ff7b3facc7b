package etcdclient

import (
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seqsvr/seqsvr/internal/etcd/etcdstore"
	"github.com/seqsvr/seqsvr/seq"
)

// Errors that Check and the calls of a Client return, beside the errors of etcdstore. Only ErrUnreachable
// passes without an operator.
var (
	// ErrUnreachable: no endpoint answers, or no member knows a leader. Retry.
	ErrUnreachable = errors.New("etcd is not reachable")
	// ErrUnasked: a member of etcd that none of the endpoints that answer is of. Give its endpoint,
	// or see why it does not answer.
	ErrUnasked = errors.New("no endpoint that answers is of this member")
	// ErrVersion: a member is older than MinVersion says. Upgrade it.
	ErrVersion = errors.New("etcd is too old")
	// ErrAlarm: an alarm is raised. NOSPACE: compact, defragment, then `etcdctl alarm disarm`, or
	// raise --quota-backend-bytes. CORRUPT: replace the member.
	ErrAlarm = errors.New("etcd has an alarm raised")
	// ErrCompaction: nothing was ever compacted. Start etcd with --auto-compaction-retention, for
	// example 1h: every renewal of a lease is a revision, which is kept until then.
	ErrCompaction = errors.New("etcd does not compact its history")
	// ErrMixed: the endpoints are of more than one etcd cluster. Correct the list.
	ErrMixed = errors.New("endpoints of different etcd clusters")
	// ErrPermission: the user may not do what is needed. Grant it readwrite on the prefix.
	ErrPermission = errors.New("etcd does not permit it")
	// ErrLogin: user or password are not right, or etcd wants them and has none.
	ErrLogin = errors.New("etcd does not know the user")
	// ErrKubernetes: it is the etcd of a Kubernetes control plane. Use another.
	ErrKubernetes = errors.New("etcd of a Kubernetes control plane")
)

// known are the answers of etcd that mean something to a caller, by their text: codes are shared.
var known = map[string]error{
	"etcdserver: mvcc: database space exceeded":                      errors.Join(seq.ErrStoreFull, etcdstore.ErrNoSpace),
	"etcdserver: permission denied":                                  fmt.Errorf("%w: the user needs readwrite on the prefix", ErrPermission),
	"etcdserver: user name is empty":                                 fmt.Errorf("%w: it asks for a user and a password", ErrLogin),
	"etcdserver: authentication failed, invalid user ID or password": fmt.Errorf("%w: user or password is wrong", ErrLogin),
	"etcdserver: authentication is not enabled":                      fmt.Errorf("%w: a user was given, and authentication is not enabled there", ErrLogin),
	"etcdserver: too many requests":                                  seq.ErrOverloaded,
	"etcdserver: mvcc: required revision has been compacted":         errCompacted,
	"etcdserver: invalid auth token":                                 errToken,
	"etcdserver: revision of auth store is old":                      errToken,
	"etcdserver: corrupt cluster":                                    fmt.Errorf("%w: CORRUPT", ErrAlarm),
	"etcdserver: mvcc: required revision is a future revision":       etcdstore.ErrRestored,
	"etcdserver: rpc not supported for learner":                      errElsewhere,
	"etcdserver: request is too large":                               seq.ErrBadArgument,
	"etcdserver: too many operations in txn request":                 seq.ErrBadArgument,
}

var (
	errCompacted = errors.New("compacted")
	errToken     = errors.New("token of etcd has expired")
	errElsewhere = errors.New("a learner answers no requests")
)

// named gives etcd's errors the names above.
func named(err error) error {
	st, ok := status.FromError(err)
	if !ok || err == nil {
		return err
	}
	if name := known[st.Message()]; name != nil {
		return fmt.Errorf("%w (%s)", name, st.Message())
	}
	if st.Code() == codes.Unavailable {
		return fmt.Errorf("%w: %s", ErrUnreachable, st.Message())
	}
	return err
}

// elsewhere says whether another endpoint may do what this one did not.
func elsewhere(err error) bool {
	switch status.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.Unknown:
		return true
	}
	return errors.Is(named(err), errElsewhere)
}
