package seq_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/seq"
)

func TestALargestJumpIsTheDefaultUnlessASpaceHasOne(t *testing.T) {
	m, err := seq.NewMapping(seq.Space{Name: "user"}, seq.Space{Name: "chat", MaxJump: 7})
	if err != nil {
		t.Fatal(err)
	}
	if a, b := m.Spaces[0].Jump(), m.Spaces[1].Jump(); a != seq.DefaultMaxJump || b != 7 {
		t.Errorf("got jumps %d and %d, want %d and 7", a, b, uint64(seq.DefaultMaxJump))
	}
	var old seq.Space // as it was written before there was a largest jump
	if err := json.Unmarshal([]byte(`{"name":"user","first":0,"sections":4096,"step":10000,"max_step":10000000,"mode":"ordered"}`), &old); err != nil {
		t.Fatal(err)
	}
	if old != m.Spaces[0] || old.Jump() != seq.DefaultMaxJump {
		t.Errorf("an older space reads as %+v with jump %d, want %+v", old, old.Jump(), m.Spaces[0])
	}
	if _, err := seq.NewMapping(seq.Space{Name: "user", MaxJump: uint64(seq.MaxSeq) + 1}); !errors.Is(err, seq.ErrBadMapping) {
		t.Errorf("a jump above 2^53-1: got %v, want ErrBadMapping", err)
	}
}

func TestASectionIsNearItsEndAndThenSpent(t *testing.T) {
	space := seq.Space{Name: "user", Step: 10_000}
	const end = uint64(seq.MaxSeq)
	for _, row := range []struct {
		ceiling     uint64
		near, spent bool
	}{
		{0, false, false}, {end - seq.NearEnd, false, false}, {end - seq.NearEnd + 1, true, false},
		{end - 10_000, true, false}, {end - 9_999, true, true}, {end, true, true}, {end + 1, true, true},
	} {
		if near, spent := space.Ending(row.ceiling); near != row.near || spent != row.spent {
			t.Errorf("ceiling %d: got near %v spent %v, want %v %v", row.ceiling, near, spent, row.near, row.spent)
		}
	}
}

func TestTicketsAreOfSpacesWhoseNumbersRiseWithinTheirBounds(t *testing.T) {
	for _, row := range []struct {
		space seq.Space
		bad   bool
	}{
		{seq.Space{Tickets: 10 * time.Second}, false},
		{seq.Space{Tickets: seq.MinTickets, Mode: seq.Strict}, false},
		{seq.Space{Tickets: seq.MaxTickets}, false},
		{seq.Space{Tickets: seq.MinTickets - time.Millisecond}, true},
		{seq.Space{Tickets: seq.MaxTickets + time.Millisecond}, true},
		{seq.Space{Tickets: time.Second + time.Microsecond}, true},
		{seq.Space{Tickets: time.Second, Mode: seq.UniqueOnly}, true},
		{seq.Space{Tickets: time.Second, Mode: seq.Exact}, false},
	} {
		row.space.Name = "inbox"
		if _, err := seq.NewMapping(row.space); errors.Is(err, seq.ErrBadMapping) != row.bad {
			t.Errorf("%+v: got %v", row.space, err)
		}
	}
}

func TestTheLifeOfATicketIsAtMostThatOfItsSpace(t *testing.T) {
	inbox, plain := seq.Space{Name: "inbox", Tickets: 10 * time.Second}, seq.Space{Name: "user"}
	for _, row := range []struct {
		space *seq.Space
		ms    uint64
		want  time.Duration
		err   error
	}{
		{&inbox, 0, 10 * time.Second, nil}, {&inbox, 1, time.Millisecond, nil}, {&inbox, 10_000, 10 * time.Second, nil},
		{&inbox, 10_001, 0, seq.ErrBadArgument}, {&inbox, 1 << 63, 0, seq.ErrBadArgument},
		{&plain, 0, 0, seq.ErrNoTickets}, {&plain, 5, 0, seq.ErrNoTickets},
	} {
		if got, err := row.space.TicketLife(row.ms); got != row.want || !errors.Is(err, row.err) {
			t.Errorf("%s, %d ms: got %v, %v, want %v, %v", row.space.Name, row.ms, got, err, row.want, row.err)
		}
	}
	for _, bad := range [][2]uint64{{0, 1}, {1, 0}, {1 << 53, 1}, {1, 1 << 53}} {
		if err := seq.CheckTicket(bad[0], bad[1]); !errors.Is(err, seq.ErrBadArgument) {
			t.Errorf("ticket %v: got %v", bad, err)
		}
	}
}
