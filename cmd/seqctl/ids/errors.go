package ids

import (
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seqsvr/seqsvr/internal/process/daemon"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

// errNotServed: the process at an address does not have the service that was asked for.
// Do not retry there.
var errNotServed = errors.New("service not offered")

// served tells a missing service apart from an address where nothing listens.
func served(addr, service string, err error) error {
	if status.Code(err) == codes.Unimplemented {
		return fmt.Errorf("%w at %s: no %s there; it is of an older version, or no router or AllocSvr", errNotServed, addr, service)
	}
	return err
}

// badIDs are the errors of package snowflake that the cluster calls seq.ErrBadID.
var badIDs = []error{
	snowflake.ErrSign, snowflake.ErrFieldRange, snowflake.ErrBeforeEpoch,
	snowflake.ErrTextLength, snowflake.ErrTextAlphabet, snowflake.ErrTextCanonical, snowflake.ErrTextOverflow,
}

// refused gives an error of a layout the name that it has at the cluster.
func refused(err error) error {
	for _, bad := range badIDs {
		if errors.Is(err, bad) {
			return fmt.Errorf("%w: %w", seq.ErrBadID, err)
		}
	}
	if errors.Is(err, snowflake.ErrTimeExhausted) {
		return &sameText{err, seq.ErrTimeExhausted}
	}
	return err
}

// sameText is an error with one more name, for names that read alike.
type sameText struct{ cause, name error }

func (e *sameText) Error() string   { return e.cause.Error() }
func (e *sameText) Unwrap() []error { return []error{e.cause, e.name} }

// badLayout is a usage error for a text that is no layout.
func badLayout(flag string, err error) error {
	return daemon.Usage(fmt.Errorf("%s: %w: %w", flag, seq.ErrBadLayout, err))
}

// badCount is a usage error for --count.
func badCount(count int64, most int) error {
	return daemon.Usage(fmt.Errorf("%w: --count %d, expected 1 to %d", seq.ErrBadCount, count, most))
}
