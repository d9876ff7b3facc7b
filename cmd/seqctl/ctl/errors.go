package ctl

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seqsvr/seqsvr/internal/daemon"
	"github.com/seqsvr/seqsvr/internal/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// Errors of the verbs that are not of package seq.
var (
	// errNoAnswer: nothing answers at an address. Retry when the cluster runs.
	errNoAnswer = errors.New("no answer")
	// errUnhealthy: status found that the cluster does not serve everything.
	errUnhealthy = errors.New("cluster does not serve everything")
)

// plain makes one readable line of an error. Named errors keep their text; gRPC's
// own, which speak of transports, become what a person can act on.
func plain(addr string, err error) error {
	if err == nil || errors.Is(err, daemon.ErrUsage) || errors.Is(err, errNoAnswer) {
		return err
	}
	if rpc.CodeOf(err) != pb.ErrorCode_ERROR_CODE_UNSPECIFIED && rpc.CodeOf(err) != pb.ErrorCode_ERROR_CODE_DEADLINE {
		return err
	}
	switch code := status.Code(err); {
	case code == codes.Unavailable:
		return fmt.Errorf("%w at %s: %s (is the cluster running? seqctl dev starts one)", errNoAnswer, addr, lastReason(err))
	case code == codes.Unimplemented:
		return fmt.Errorf("%w at %s: it is no router or AllocSvr", errNoAnswer, addr)
	case code == codes.DeadlineExceeded || errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w at %s in time: %w", errNoAnswer, addr, err)
	}
	return err
}

// lastReason is the end of a chain such as "connection error: desc = "transport:
// Error while dialing: dial tcp ...: connect: connection refused"".
func lastReason(err error) string {
	text := err.Error()
	if at := strings.LastIndex(text, ": "); at >= 0 {
		text = text[at+2:]
	}
	return strings.Trim(text, `"`)
}

func checkAddr(addr string) error {
	if host, port, err := net.SplitHostPort(addr); err != nil || host == "" || port == "" {
		return daemon.Usage(fmt.Errorf("--addr %q: expected host:port", addr))
	}
	return nil
}
