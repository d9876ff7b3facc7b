package rpc

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seqsvr/seqsvr/internal/wire/auth"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// internalText is all that a caller learns of an error without a name.
const internalText = "internal error"

// maxMessage bounds the text of a status in bytes: it travels in a header.
const maxMessage = 1024

// pairs is the one table of errors on the wire. The first sentinel that an error
// wraps decides. A caller's deadline stands behind the reasons for which it was
// waiting, so that "no quorum" is not hidden by "too late"; but before NOT_OWNER,
// which says only where the last attempt went.
var pairs = []struct {
	code     pb.ErrorCode
	status   codes.Code
	sentinel error
}{
	{pb.ErrorCode_ERROR_CODE_UNAUTHENTICATED, codes.Unauthenticated, seq.ErrUnauthenticated},
	{pb.ErrorCode_ERROR_CODE_FORBIDDEN, codes.PermissionDenied, seq.ErrForbidden},
	{pb.ErrorCode_ERROR_CODE_BAD_COUNT, codes.InvalidArgument, seq.ErrBadCount},
	{pb.ErrorCode_ERROR_CODE_BAD_BATCH, codes.InvalidArgument, seq.ErrBadBatch},
	{pb.ErrorCode_ERROR_CODE_UNKNOWN_SPACE, codes.NotFound, seq.ErrUnknownSpace},
	{pb.ErrorCode_ERROR_CODE_UNKNOWN_SECTION, codes.NotFound, seq.ErrUnknownSection},
	{pb.ErrorCode_ERROR_CODE_UNKNOWN_TAG, codes.NotFound, seq.ErrUnknownTag},
	{pb.ErrorCode_ERROR_CODE_OVERFLOW, codes.OutOfRange, seq.ErrOverflow},
	{pb.ErrorCode_ERROR_CODE_NUMBERS_USED_UP, codes.OutOfRange, seq.ErrNumbersUsedUp},
	{pb.ErrorCode_ERROR_CODE_RAISE_TOO_FAR, codes.OutOfRange, seq.ErrJump},
	{pb.ErrorCode_ERROR_CODE_ID_CONFLICT, codes.AlreadyExists, seq.ErrIDConflict},
	{pb.ErrorCode_ERROR_CODE_ID_EXPIRED, codes.FailedPrecondition, seq.ErrIDExpired},
	{pb.ErrorCode_ERROR_CODE_ID_NOT_KEPT, codes.InvalidArgument, seq.ErrIDNotKept},
	{pb.ErrorCode_ERROR_CODE_NO_TICKETS, codes.InvalidArgument, seq.ErrNoTickets},
	{pb.ErrorCode_ERROR_CODE_TICKET_ENDED, codes.FailedPrecondition, seq.ErrTicketEnded},
	{pb.ErrorCode_ERROR_CODE_SENT_AHEAD, codes.InvalidArgument, seq.ErrSentAhead},
	{pb.ErrorCode_ERROR_CODE_RETIRED, codes.NotFound, seq.ErrRetired},
	{pb.ErrorCode_ERROR_CODE_FOREIGN_CLUSTER, codes.FailedPrecondition, seq.ErrForeignCluster},
	{pb.ErrorCode_ERROR_CODE_PROTOCOL, codes.FailedPrecondition, seq.ErrProtocol},
	{pb.ErrorCode_ERROR_CODE_STALE_ERA, codes.FailedPrecondition, seq.ErrStaleEra},
	{pb.ErrorCode_ERROR_CODE_UNKNOWN_REGISTER, codes.NotFound, seq.ErrUnknownRegister},
	{pb.ErrorCode_ERROR_CODE_STORE_FULL, codes.ResourceExhausted, seq.ErrStoreFull},
	{pb.ErrorCode_ERROR_CODE_NOT_VOTING, codes.Unavailable, seq.ErrNotVoting},
	{pb.ErrorCode_ERROR_CODE_UNKNOWN_NODE, codes.NotFound, seq.ErrUnknownNode},
	{pb.ErrorCode_ERROR_CODE_NODE_UNFIT, codes.FailedPrecondition, seq.ErrNodeUnfit},
	{pb.ErrorCode_ERROR_CODE_NOT_SESSION, codes.PermissionDenied, seq.ErrNotSession},
	{pb.ErrorCode_ERROR_CODE_SESSION_ENDED, codes.Unavailable, seq.ErrSessionEnded},
	{pb.ErrorCode_ERROR_CODE_NAME_TAKEN, codes.AlreadyExists, seq.ErrNameTaken},
	{pb.ErrorCode_ERROR_CODE_BAD_LEASE, codes.InvalidArgument, seq.ErrBadLease},
	{pb.ErrorCode_ERROR_CODE_CONFLICT, codes.Aborted, seq.ErrConflict},
	{pb.ErrorCode_ERROR_CODE_BAD_REGISTER, codes.InvalidArgument, seq.ErrBadRegister},
	{pb.ErrorCode_ERROR_CODE_BAD_ARGUMENT, codes.InvalidArgument, seq.ErrBadArgument},
	{pb.ErrorCode_ERROR_CODE_BAD_TABLE, codes.InvalidArgument, seq.ErrBadTable},
	{pb.ErrorCode_ERROR_CODE_BAD_MAPPING, codes.InvalidArgument, seq.ErrBadMapping},
	{pb.ErrorCode_ERROR_CODE_CHANGE_UNKNOWN, codes.Unavailable, seq.ErrChangeUnknown}, // before its causes
	{pb.ErrorCode_ERROR_CODE_NO_LEASE, codes.Unavailable, seq.ErrNoLease},
	{pb.ErrorCode_ERROR_CODE_NO_QUORUM, codes.Unavailable, seq.ErrNoQuorum},
	{pb.ErrorCode_ERROR_CODE_OUTCOME_UNKNOWN, codes.Unavailable, seq.ErrOutcomeUnknown},
	{pb.ErrorCode_ERROR_CODE_TICK_USED_UP, codes.ResourceExhausted, seq.ErrTickUsedUp},  // before the sentinel that it wraps
	{pb.ErrorCode_ERROR_CODE_QUOTA, codes.ResourceExhausted, seq.ErrQuota},              // likewise
	{pb.ErrorCode_ERROR_CODE_UID_MEMORY, codes.ResourceExhausted, seq.ErrUIDMemory},     // likewise
	{pb.ErrorCode_ERROR_CODE_TOO_MANY_TICKETS, codes.ResourceExhausted, seq.ErrTickets}, // likewise
	{pb.ErrorCode_ERROR_CODE_TOO_MANY_WATCHES, codes.ResourceExhausted, seq.ErrWatches}, // likewise
	{pb.ErrorCode_ERROR_CODE_EXACT_MEMORY, codes.ResourceExhausted, seq.ErrExactMemory}, // likewise
	{pb.ErrorCode_ERROR_CODE_OVERLOADED, codes.ResourceExhausted, seq.ErrOverloaded},
	{pb.ErrorCode_ERROR_CODE_SHUTTING_DOWN, codes.Unavailable, seq.ErrShuttingDown},
	{pb.ErrorCode_ERROR_CODE_NO_ROUTE, codes.Unavailable, seq.ErrNoRoute},
	{pb.ErrorCode_ERROR_CODE_UNKNOWN_NAMESPACE, codes.NotFound, seq.ErrUnknownNamespace},
	{pb.ErrorCode_ERROR_CODE_WORKERS_EXHAUSTED, codes.ResourceExhausted, seq.ErrWorkersExhausted},
	{pb.ErrorCode_ERROR_CODE_WORKERS_KEPT, codes.ResourceExhausted, seq.ErrWorkersKept},
	{pb.ErrorCode_ERROR_CODE_UNSAFE_CHANGE, codes.FailedPrecondition, seq.ErrUnsafeChange},
	{pb.ErrorCode_ERROR_CODE_UNKNOWN_DATACENTER, codes.NotFound, seq.ErrUnknownDatacenter},
	{pb.ErrorCode_ERROR_CODE_DATACENTER_TAKEN, codes.FailedPrecondition, seq.ErrDatacenterTaken},
	{pb.ErrorCode_ERROR_CODE_CLOCK_OFF, codes.Unavailable, seq.ErrClockOff},
	{pb.ErrorCode_ERROR_CODE_CLOCK_ROLLBACK, codes.Unavailable, seq.ErrClockRollback},
	{pb.ErrorCode_ERROR_CODE_TIME_EXHAUSTED, codes.OutOfRange, seq.ErrTimeExhausted},
	{pb.ErrorCode_ERROR_CODE_BAD_ID, codes.InvalidArgument, seq.ErrBadID},
	{pb.ErrorCode_ERROR_CODE_BAD_LAYOUT, codes.InvalidArgument, seq.ErrBadLayout},
	{pb.ErrorCode_ERROR_CODE_MOVE_OVER, codes.FailedPrecondition, seq.ErrMoveOver},
	{pb.ErrorCode_ERROR_CODE_DEADLINE, codes.DeadlineExceeded, context.DeadlineExceeded},
	{pb.ErrorCode_ERROR_CODE_NOT_OWNER, codes.FailedPrecondition, seq.ErrNotOwner},
}

// NotOwnerError is a seq.ErrNotOwner that knows where to ask instead. Over the wire
// go Addr, Set and RouteVersion, and the rest as text: on the caller's side Section is 0
// and Owner is empty. Safe to retry at Addr.
type NotOwnerError struct {
	Section      seq.SectionID
	Owner        string // node name, empty if not known
	Addr         string // gRPC host:port to ask instead, empty if not known
	Set          string // that has the section, if it is another one than the node's; then Addr is of that Set
	RouteVersion uint64 // table version of the node that answered, 0 if not known
}

// Error names the section and the owner, as far as they are known.
func (e *NotOwnerError) Error() string {
	switch {
	case e.Set != "" && e.Addr != "":
		return fmt.Sprintf("section %d: %v: Set %s has it, ask %s", e.Section, seq.ErrNotOwner, e.Set, e.Addr)
	case e.Set != "":
		return fmt.Sprintf("section %d: %v: Set %s has it", e.Section, seq.ErrNotOwner, e.Set)
	case e.Owner != "":
		return fmt.Sprintf("section %d: %v: ask %s at %s (routes version %d)", e.Section, seq.ErrNotOwner, e.Owner, e.Addr, e.RouteVersion)
	case e.Addr != "":
		return fmt.Sprintf("%v: ask %s (routes version %d)", seq.ErrNotOwner, e.Addr, e.RouteVersion)
	}
	return fmt.Sprintf("%v: new owner not known (routes version %d)", seq.ErrNotOwner, e.RouteVersion)
}

// Unwrap makes errors.Is(err, seq.ErrNotOwner) hold.
func (e *NotOwnerError) Unwrap() error { return seq.ErrNotOwner }

// remoteError is an error that came over the wire: it reads as the peer wrote it,
// is (errors.Is) the sentinel of its code, and keeps its status.
type remoteError struct {
	st    *status.Status
	cause error // sentinel, *NotOwnerError or *seq.IDConflict; never nil
}

func (e *remoteError) Error() string              { return e.st.Message() }
func (e *remoteError) Unwrap() error              { return e.cause }
func (e *remoteError) GRPCStatus() *status.Status { return e.st }

// CodeOf is the wire code of an error; ERROR_CODE_UNSPECIFIED for nil and for errors
// without a name.
func CodeOf(err error) pb.ErrorCode {
	if err == nil {
		return pb.ErrorCode_ERROR_CODE_UNSPECIFIED
	}
	for i := range pairs {
		if errors.Is(err, pairs[i].sentinel) {
			return pairs[i].code
		}
	}
	return pb.ErrorCode_ERROR_CODE_UNSPECIFIED
}

// ErrorOf is the error of a wire code: errors.Is holds for the code's sentinel, and
// the text is msg, after the sentinel's own unless msg has it. A code that this build
// does not know gives an error that wraps nothing.
func ErrorOf(code pb.ErrorCode, msg string) error {
	for i := range pairs {
		if pairs[i].code == code {
			return textError(pairs[i].sentinel, msg)
		}
	}
	if msg == "" {
		msg = "error without a text"
	}
	return fmt.Errorf("%s (%s)", msg, code)
}

// textError wraps the cause under a text that names it once.
func textError(cause error, msg string) error {
	switch {
	case msg == "":
		return cause
	case strings.Contains(msg, cause.Error()):
		return &namedError{msg, cause}
	}
	return fmt.Errorf("%w: %s", cause, msg)
}

// namedError is a cause under a text that already names it.
type namedError struct {
	text  string
	cause error
}

func (e *namedError) Error() string { return e.text }
func (e *namedError) Unwrap() error { return e.cause }

// ToStatus turns what a handler returns into a gRPC status with one ErrorDetail.
// Sentinels and context errors keep their text; a status of gRPC's own keeps its
// code and message; every other error is Internal and its text stays here, since it
// may hold what a caller must not see. ToStatus(nil) is nil.
func ToStatus(err error) error {
	if err == nil {
		return nil
	}
	for i := range pairs {
		if !errors.Is(err, pairs[i].sentinel) {
			continue
		}
		detail := &pb.ErrorDetail{Code: pairs[i].code}
		var owner *NotOwnerError
		if errors.As(err, &owner) {
			detail.OwnerAddr, detail.RouteVersion, detail.Set = owner.Addr, owner.RouteVersion, owner.Set
		}
		var conflict *seq.IDConflict
		if errors.As(err, &conflict) {
			detail.First, detail.Count = uint64(conflict.First), conflict.Count
		}
		var quota *auth.QuotaError
		if errors.As(err, &quota) {
			detail.RetryAfterMs = uint32(min(quota.RetryAfter.Milliseconds(), math.MaxUint32))
		}
		st := status.New(pairs[i].status, message(err))
		if with, derr := st.WithDetails(detail); derr == nil {
			st = with
		}
		return st.Err()
	}
	if errors.Is(err, context.Canceled) {
		return status.Error(codes.Canceled, "canceled")
	}
	if st, ok := status.FromError(err); ok && st.Code() != codes.Unknown {
		return st.Err()
	}
	return status.Error(codes.Internal, internalText)
}

// RetryAfter is when the server of a call that met a quota wants it again; 0 if it does not
// say.
func RetryAfter(err error) time.Duration {
	st, _ := status.FromError(err)
	for _, d := range st.Details() {
		if detail, ok := d.(*pb.ErrorDetail); ok {
			return time.Duration(detail.GetRetryAfterMs()) * time.Millisecond
		}
	}
	return 0
}

// FromStatus turns the error of a gRPC call back: errors.Is holds for the sentinel
// that the peer returned, or for context.DeadlineExceeded and context.Canceled, and
// errors.As finds a *NotOwnerError or *seq.IDConflict; status.Code works on it as before. Errors that are
// no status, nil and io.EOF among them, and statuses without a name, such as a lost
// connection, come back as they are.
func FromStatus(err error) error {
	if err == nil {
		return nil
	}
	st, ok := status.FromError(err)
	if !ok {
		return err
	}
	for _, d := range st.Details() {
		if detail, ok := d.(*pb.ErrorDetail); ok {
			if cause := causeOf(detail); cause != nil {
				return &remoteError{st: st, cause: cause}
			}
		}
	}
	switch st.Code() {
	case codes.DeadlineExceeded:
		return &remoteError{st: st, cause: context.DeadlineExceeded}
	case codes.Canceled:
		return &remoteError{st: st, cause: context.Canceled}
	}
	return err
}

func causeOf(d *pb.ErrorDetail) error {
	switch d.GetCode() {
	case pb.ErrorCode_ERROR_CODE_NOT_OWNER:
		return &NotOwnerError{Addr: d.GetOwnerAddr(), RouteVersion: d.GetRouteVersion(), Set: d.GetSet()}
	case pb.ErrorCode_ERROR_CODE_ID_CONFLICT:
		return &seq.IDConflict{First: seq.Seq(d.GetFirst()), Count: d.GetCount()}
	}
	for i := range pairs {
		if pairs[i].code == d.GetCode() {
			return pairs[i].sentinel
		}
	}
	return nil
}

// ToKeyError is the error of one key of a batch, or of a whole call on a stream. An
// error without a name says "internal error" and no more.
func ToKeyError(index int, err error) *pb.KeyError {
	k := &pb.KeyError{Index: uint32(index), Code: CodeOf(err), Message: internalText}
	var owner *NotOwnerError
	if errors.As(err, &owner) {
		k.OwnerAddr, k.Set = owner.Addr, owner.Set
	}
	var conflict *seq.IDConflict
	if errors.As(err, &conflict) {
		first := uint64(conflict.First)
		k.First, k.Count = &first, &conflict.Count
	}
	switch {
	case k.Code != pb.ErrorCode_ERROR_CODE_UNSPECIFIED:
		k.Message = message(err)
	case errors.Is(err, context.Canceled):
		k.Message = "canceled"
	}
	return k
}

// FromKeyError turns a key's error back, like FromStatus.
func FromKeyError(k *pb.KeyError) error {
	switch k.GetCode() {
	case pb.ErrorCode_ERROR_CODE_NOT_OWNER:
		return &NotOwnerError{Addr: k.GetOwnerAddr(), Set: k.GetSet()}
	case pb.ErrorCode_ERROR_CODE_ID_CONFLICT:
		return textError(&seq.IDConflict{First: seq.Seq(k.GetFirst()), Count: k.GetCount()}, k.GetMessage())
	}
	return ErrorOf(k.GetCode(), k.GetMessage())
}

// message is the error's text, fit for a header.
func message(err error) string {
	text := err.Error()
	if len(text) > maxMessage {
		text = text[:maxMessage-3] + "..."
	}
	return strings.ToValidUTF8(text, "")
}
