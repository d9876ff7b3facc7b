package rpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

func TestEveryErrorCodeHasOneSentinelAndComesBack(t *testing.T) {
	seen := map[pb.ErrorCode]bool{}
	for _, p := range pairs {
		if seen[p.code] {
			t.Errorf("%s stands twice in the table", p.code)
		}
		seen[p.code] = true

		sent := fmt.Errorf("step section 17: %w", p.sentinel)
		st := ToStatus(sent)
		if got := status.Code(st); got != p.status {
			t.Errorf("%v: got status %v, want %v", p.sentinel, got, p.status)
		}
		back := FromStatus(st)
		if !errors.Is(back, p.sentinel) {
			t.Errorf("%v came back as %v", p.sentinel, back)
		}
		if got := status.Code(back); got != p.status {
			t.Errorf("%v came back with status %v, want %v", p.sentinel, got, p.status)
		}
		if got := CodeOf(back); got != p.code {
			t.Errorf("%v came back with code %v, want %v", p.sentinel, got, p.code)
		}
		if got, want := back.Error(), sent.Error(); got != want {
			t.Errorf("text: got %q, want %q", got, want)
		}
		// A second hop, as through a router, changes nothing.
		if again := FromStatus(ToStatus(back)); !errors.Is(again, p.sentinel) {
			t.Errorf("%v after two hops is %v", p.sentinel, again)
		}
		if k := FromKeyError(ToKeyError(3, sent)); !errors.Is(k, p.sentinel) {
			t.Errorf("%v as a key's error came back as %v", p.sentinel, k)
		}
		if e := ErrorOf(p.code, "key 9"); !errors.Is(e, p.sentinel) || !strings.Contains(e.Error(), "key 9") {
			t.Errorf("ErrorOf(%v) is %v", p.code, e)
		}
	}
	for code := range pb.ErrorCode_name {
		if code != 0 && !seen[pb.ErrorCode(code)] {
			t.Errorf("%s is missing from the table", pb.ErrorCode(code))
		}
	}
}

func TestNotOwnerCarriesWhereToAskInstead(t *testing.T) {
	sent := fmt.Errorf("next: %w", &NotOwnerError{Section: 4, Owner: "alloc-2", Addr: "10.0.0.2:7", RouteVersion: 9})
	var got *NotOwnerError
	if err := FromStatus(ToStatus(sent)); !errors.As(err, &got) || got.Addr != "10.0.0.2:7" || got.RouteVersion != 9 {
		t.Fatalf("got %+v", got)
	}
	if err := FromKeyError(ToKeyError(0, sent)); !errors.As(err, &got) || got.Addr != "10.0.0.2:7" {
		t.Fatalf("got %+v", got)
	}
}

func TestAnErrorWithoutANameKeepsItsTextToItself(t *testing.T) {
	secret := errors.New("password hunter2 refused")
	err := ToStatus(fmt.Errorf("open: %w", secret))
	if status.Code(err) != codes.Internal || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v", err)
	}
	if k := ToKeyError(1, secret); k.GetIndex() != 1 || strings.Contains(k.GetMessage(), "hunter2") {
		t.Errorf("got %v", k)
	}
}

func TestTheReasonForWaitingStandsBeforeTheDeadline(t *testing.T) {
	rows := []struct {
		err  error
		want pb.ErrorCode
	}{
		{fmt.Errorf("%w: %w", context.DeadlineExceeded, seq.ErrNoQuorum), pb.ErrorCode_ERROR_CODE_NO_QUORUM},
		{fmt.Errorf("%w: %w", context.DeadlineExceeded, seq.ErrNotOwner), pb.ErrorCode_ERROR_CODE_DEADLINE},
		{context.DeadlineExceeded, pb.ErrorCode_ERROR_CODE_DEADLINE},
		{context.Canceled, pb.ErrorCode_ERROR_CODE_UNSPECIFIED},
		{nil, pb.ErrorCode_ERROR_CODE_UNSPECIFIED},
	}
	for _, row := range rows {
		if got := CodeOf(row.err); got != row.want {
			t.Errorf("%v: got %v, want %v", row.err, got, row.want)
		}
	}
}

func TestStatusesWithoutADetailKeepTheirCode(t *testing.T) {
	lost := status.Error(codes.Unavailable, "connection refused")
	if got := FromStatus(lost); got != lost {
		t.Errorf("got %v, want it untouched", got)
	}
	if got := FromStatus(io.EOF); got != io.EOF {
		t.Errorf("got %v, want io.EOF", got)
	}
	if got := FromStatus(status.Error(codes.DeadlineExceeded, "late")); !errors.Is(got, context.DeadlineExceeded) {
		t.Errorf("got %v", got)
	}
	if got := FromStatus(ToStatus(context.Canceled)); !errors.Is(got, context.Canceled) {
		t.Errorf("got %v", got)
	}
	if got := status.Code(ToStatus(status.Error(codes.Unimplemented, "no"))); got != codes.Unimplemented {
		t.Errorf("got %v", got)
	}
	if FromStatus(nil) != nil || ToStatus(nil) != nil {
		t.Error("nil is not nil")
	}
}

func TestALongTextIsCutToFitAHeader(t *testing.T) {
	err := fmt.Errorf("%w: %s", seq.ErrBadArgument, strings.Repeat("é", maxMessage))
	st, _ := status.FromError(ToStatus(err))
	if n := len(st.Message()); n > maxMessage {
		t.Errorf("got %d bytes, want at most %d", n, maxMessage)
	}
}
