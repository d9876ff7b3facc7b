package membership

import (
	"fmt"
	"time"
)

// State is what the view believes of a member. Suspicion is not visible here: memberlist does not tell
// it, and a suspect member counts as alive until it is declared dead.
type State uint8

const (
	// StateAlive members answer probes, as far as this node knows.
	StateAlive State = iota + 1
	// StateDead members stopped answering and did not say goodbye.
	StateDead
	// StateLeft members announced that they leave.
	StateLeft
)

// String returns alive, dead or left.
func (s State) String() string {
	switch s {
	case StateAlive:
		return "alive"
	case StateDead:
		return "dead"
	case StateLeft:
		return "left"
	}
	return fmt.Sprintf("State(%d)", uint8(s))
}

// MarshalText writes the state as its name, for JSON.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Member is one node as this node sees it: a copy, free to keep.
type Member struct {
	// Meta is the last metadata heard. For a member whose metadata was not understood it has the name only.
	Meta Meta
	// State is what this node believes.
	State State
	// Since is when this node saw the member enter State, or restart while alive. It is this node's
	// clock, for people to read; nothing may be decided by it.
	Since time.Time
	// Gossip is the address (host:port) memberlist reaches the member at.
	Gossip string
	// Self marks the node the View belongs to.
	Self bool
}

// EventKind says what an Event is about.
type EventKind uint8

const (
	// EventJoined: a member appeared, or came back from dead or left.
	EventJoined EventKind = iota + 1
	// EventUpdated: the metadata or gossip address of a live member changed.
	EventUpdated
	// EventRestarted: a live member continues under another session, so the process before died unnoticed.
	EventRestarted
	// EventDied: a member stopped answering.
	EventDied
	// EventLeft: a member left in order. It may follow EventDied of the same member when the notice
	// came late.
	EventLeft
	// EventConflict: two processes use one name. Member is the one the view keeps, Other the one it
	// refuses, Err wraps ErrNameConflict. Repeated at most once a minute for the same pair.
	EventConflict
	// EventLagged: the observer was too slow and events were dropped. Read Members again.
	EventLagged
)

// String returns the kind in lower case.
func (k EventKind) String() string {
	switch k {
	case EventJoined:
		return "joined"
	case EventUpdated:
		return "updated"
	case EventRestarted:
		return "restarted"
	case EventDied:
		return "died"
	case EventLeft:
		return "left"
	case EventConflict:
		return "conflict"
	case EventLagged:
		return "lagged"
	}
	return fmt.Sprintf("EventKind(%d)", uint8(k))
}

// Event is one change of the view.
type Event struct {
	Kind EventKind
	// At is when this node saw it, by its own clock.
	At time.Time
	// Member is the member after the change; zero for EventLagged.
	Member Member
	// Before is the metadata before the change, for EventUpdated and EventRestarted.
	Before Meta
	// Other is the refused member of an EventConflict.
	Other Member
	// Err is set for EventConflict and wraps ErrNameConflict.
	Err error
}
