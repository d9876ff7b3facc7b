package bench

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// Errors of the verbs.
var (
	// errTarget: --target names nothing that can be called.
	errTarget = errors.New("unknown target")
	// errBatch: --batch does not suit the target.
	errBatch = errors.New("batch out of range")
	// errProcs: --procs is no number of processors.
	errProcs = errors.New("processors out of range")
	// errBroken: the service repeated or lowered a number. Not to be retried: tell
	// the operator of the cluster.
	errBroken = errors.New("the sequences are broken")
	// errNothing: no call of the measured time succeeded.
	errNothing = errors.New("no call succeeded")
	// errTooSlow: check perf found a figure outside of its limit.
	errTooSlow = errors.New("FAIL")
)

// codeOf returns the kind of an error, for counting: the name of its wire code, of its gRPC
// code or of its HTTP status.
func codeOf(err error) string {
	var web *webError
	var network net.Error
	switch code := rpc.CodeOf(err); {
	case code != pb.ErrorCode_ERROR_CODE_UNSPECIFIED:
		return strings.TrimPrefix(code.String(), "ERROR_CODE_")
	case errors.Is(err, errBroken):
		return "BROKEN"
	case errors.As(err, &web):
		return web.code()
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return "DEADLINE"
	case errors.As(err, &network), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "CONNECTION"
	}
	if code := status.Code(err); code != codes.Unknown && code != codes.OK {
		return "GRPC_" + strings.ToUpper(code.String())
	}
	return "OTHER"
}
