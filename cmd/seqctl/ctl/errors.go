package ctl

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
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
	// errStillDraining: drain --wait gave up waiting; the drain goes on.
	errStillDraining = errors.New("not drained")
	// errUndrained: the drain was taken back while drain --wait waited for it.
	errUndrained = errors.New("the drain was taken back meanwhile")
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
		return fmt.Errorf("%w at %s: %s (%s)", errNoAnswer, addr, lastReason(err), hint(lastReason(err)))
	case code == codes.Unimplemented:
		return fmt.Errorf("%w at %s: it is no router or AllocSvr", errNoAnswer, addr)
	case code == codes.DeadlineExceeded || errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w at %s in time: %w", errNoAnswer, addr, err)
	}
	return err
}

// hint is what to look at when a connection failed for that reason.
func hint(reason string) string {
	if why := securityHint(reason); why != "" {
		return why
	}
	return "is the cluster running? seqctl dev starts one"
}

// securityHint is what to look at if the connection came to be and its two ends did not
// agree on TLS; "" if that is not the reason. It has no colon, which lastReason goes by.
// The end that closes first decides which error the other end sees, so some are only likely.
func securityHint(reason string) string {
	has := func(parts ...string) bool {
		return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(reason, p) })
	}
	switch {
	case has("certificate required", "bad certificate", "unknown certificate authority"):
		return "it wants a certificate of its CA, --tls-cert and --tls-key"
	case has("certificate", "x509"):
		return "its certificate is not one of the CA in --tls-ca"
	case has("does not look like a TLS handshake"):
		return "it speaks no TLS, leave --tls-ca out"
	case has("EOF", "connection reset", "broken pipe"):
		return "it closed the connection; does it want TLS? --tls-ca, --tls-cert and --tls-key"
	}
	return ""
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
