package ctl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seqsvr/seqsvr/internal/ops/survey"
	"github.com/seqsvr/seqsvr/internal/process/daemon"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// Errors of the verbs that are not of package seq.
var (
	// errNoAnswer: nothing answers at an address. Retry when the cluster runs.
	errNoAnswer = errors.New("no answer")
	// errStillDraining: drain --wait gave up waiting; the drain goes on.
	errStillDraining = errors.New("not drained")
	// errNotSettled: move, undrain or rebalance --wait gave up waiting; the change goes on.
	errNotSettled = errors.New("not done")
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
	var at interface{ At() string } // of an error that knows the address that did not answer
	if errors.As(err, &at) {
		addr = at.At()
	}
	switch code := status.Code(err); {
	case errors.Is(err, context.DeadlineExceeded) && reasoned(err):
		return err
	case code == codes.Unavailable && otherProtocol(err) != "":
		return fmt.Errorf("%w at %s: %s where gRPC was expected, which is a router's or AllocSvr's --listen", errNoAnswer, addr, otherProtocol(err))
	case code == codes.Unavailable:
		return fmt.Errorf("%w at %s: %s (%s)", errNoAnswer, addr, survey.LastReason(err), hint(survey.LastReason(err)))
	case code == codes.Unimplemented:
		return fmt.Errorf("%w at %s: it is no router or AllocSvr", errNoAnswer, addr)
	case code == codes.DeadlineExceeded || errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w at %s in time: %w", errNoAnswer, addr, err)
	}
	return err
}

// reasoned reports whether an error that ends with a deadline has a reason beside it: a
// server has answered, or a verb knows what it waited for.
func reasoned(err error) bool {
	if of, ok := err.(interface{ GRPCStatus() *status.Status }); ok {
		answered := func(detail any) bool { _, ok := detail.(*pb.ErrorDetail); return ok }
		switch st := of.GRPCStatus(); {
		case slices.ContainsFunc(st.Details(), answered):
			return true
		case st.Code() == codes.DeadlineExceeded || st.Code() == codes.Unavailable || st.Code() == codes.Canceled:
			return false
		}
	}
	switch wraps := err.(type) {
	case interface{ Unwrap() error }:
		return reasoned(wraps.Unwrap())
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(wraps.Unwrap(), reasoned)
	}
	return err != nil && err != context.DeadlineExceeded && err != context.Canceled
}

// otherProtocol says what is spoken at an address where no gRPC is; "" if that is not why it
// failed.
func otherProtocol(err error) string {
	switch text := err.Error(); {
	case strings.Contains(text, "HTTP/1.1 header"):
		return "it speaks HTTP"
	case strings.Contains(text, "frame too large"):
		return "it speaks another protocol"
	}
	return ""
}

// hint returns what to check after a connection failed for the reason.
func hint(reason string) string {
	if why := survey.SecurityHint(reason); why != "" {
		return why
	}
	return "is the cluster running? seqctl dev starts one"
}
