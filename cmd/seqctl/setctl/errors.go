package setctl

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/seqsvr/seqsvr/internal/ops/setadmin"
	"github.com/seqsvr/seqsvr/internal/ops/survey"
	"github.com/seqsvr/seqsvr/sets"
)

// told is an error in one line for people.
type told struct {
	text  string
	cause error
}

func (e *told) Error() string { return e.text }
func (e *told) Unwrap() error { return e.cause }

// tidy says of a Set that does not answer which, and the last reason alone.
func tidy(err error) error {
	before, _, found := strings.Cut(fmt.Sprint(err), setadmin.ErrSetDown.Error())
	if !errors.Is(err, setadmin.ErrSetDown) || !found {
		return err
	}
	if at := strings.LastIndex(before, "Set "); at > 0 { // the move is named elsewhere
		before = before[at:]
	}
	return &told{before + setadmin.ErrSetDown.Error() + ": " + survey.LastReason(err), setadmin.ErrSetDown}
}

// errInTime: the move did not end within --timeout.
var errInTime = errors.New("not ended in time")

// unfinished returns an error that says how an unfinished move stands, and what to do.
func unfinished(ctx context.Context, move sets.Move, err error) error {
	switch {
	case errors.Is(err, setadmin.ErrTakenBack):
		return &told{named(move) + " was taken back by another, or has been followed by a later one: see seqctl set show", setadmin.ErrTakenBack}
	case errors.Is(err, setadmin.ErrRefused):
		return &told{fmt.Sprintf("%s cannot be finished, %v: seqctl set abort --id %d", named(move), setadmin.ErrRefused, move.ID), setadmin.ErrRefused}
	case errors.Is(ctx.Err(), context.Canceled):
		return &told{fmt.Sprintf("%s is open: %s", named(move), hint(move)), context.Canceled}
	}
	cause := err
	if errors.Is(err, setadmin.ErrSetDown) {
		cause = setadmin.ErrSetDown
	} else if errors.Is(err, context.DeadlineExceeded) {
		cause = errInTime
	}
	return &told{fmt.Sprintf("%s is open, %v: %s", named(move), tidy(err), hint(move)), cause}
}
