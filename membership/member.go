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
