package sets

import (
	"fmt"

	"github.com/seqsvr/seqsvr/seq"
)

// State of a section in one Set.
type State uint8

const (
	// Active: nodes of this Set may serve it.
	Active State = iota
	// Inactive: it never was in this Set.
	Inactive
	// Sealed: it is on its way to another Set, and no node of this one serves it any more.
	Sealed
	// Moved: another Set has it.
	Moved
	// Refused: the move will never be activated here.
	Refused
	// Limbo: the Set was restored from a backup, which may be from before the section moved.
	// Nothing is done with it before it is settled.
	Limbo
)

var stateNames = [...]string{"active", "inactive", "sealed", "moved", "refused", "limbo"}

// String is the state in one word.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "invalid"
}

// Place says what a Set has of one section.
type Place struct {
	State State  `json:"state,omitempty"`
	Move  uint64 `json:"move,omitempty"` // that brought it about; zero if there was none
	To    string `json:"to,omitempty"`   // of Sealed and Moved: the Set
	By    uint64 `json:"by,omitempty"`   // of Active by a move: Step.By of the call that activated it
	// Above is set in two states. In Refused it bounds from above where a settled restored Set has begun
	// with the section, and zero means no such Set. In Moved by Give it bounds the numbers that the other
	// Set had handed out of the section.
	Above uint64 `json:"above,omitempty"`
	// Was is set in Sealed and in the states after it. It is the move by which the Set had the section
	// last. Zero means that there was no such move, or that it is unknown since the Set was restored.
	Was uint64 `json:"was,omitempty"`
}

// Never reports that the Set has not activated the section by the move, and never will.
func (p Place) Never(move uint64) bool {
	return p.State != Active && p.State != Limbo && p.Was < move && (p.Move > move || p.Move == move && p.State == Refused)
}

// String returns a text for people, such as "sealed for b by move 7".
func (p Place) String() string {
	text := p.State.String()
	if p.To != "" {
		text += " for " + p.To
	}
	if p.Move != 0 {
		text += fmt.Sprintf(" by move %d", p.Move)
	}
	return text
}

// Op is one step of a move at one Set. Each may be repeated.
type Op uint8

const (
	// Seal stops the section in the source Set.
	Seal Op = iota + 1
	// Activate starts the section in the target Set.
	Activate
	// Refuse makes the target Set never activate this move.
	Refuse
	// Cancel makes the source Set never seal the section for this move.
	Cancel
	// Reopen returns the sealed section to the source Set. The target Set must have refused before.
	Reopen
	// Finish notes in the source Set that the section has left.
	Finish
	// Keep settles a section in limbo as this Set's.
	Keep
	// Give settles a section in limbo as another Set's.
	Give
	// Settle states that its sections are all sections, and none of them is in limbo. Sections that are
	// added later are in the root Set only.
	Settle
)

var opNames = [...]string{"", "seal", "activate", "refuse", "cancel", "reopen", "finish", "keep", "give", "settle"}

// String is the step in one word.
func (o Op) String() string {
	if int(o) < len(opNames) && o > 0 {
		return opNames[o]
	}
	return "invalid"
}

// Step is an Op of a move.
type Step struct {
	Op   Op
	Move uint64 // not 0
	To   string // of Seal and Give: the Set that the section goes to, or is in
	// By is set for Activate: a number that no other call has. A call that did not hear its own outcome
	// compares it to find whether it activated the section.
	By uint64
	// Above is set for Refuse and Give, by section: see Place.Above. With Refuse it only rises, also by the
	// same move.
	Above map[seq.SectionID]uint64
}

// after is the place after a step, with what Step.Above has of the section: the same if it has been
// done. seq.ErrMoveOver if the section has been through something later, or through the same move
// with another end.
func (p Place) after(s Step, above uint64) (Place, error) {
	done, may, next := false, false, Place{Move: s.Move}
	switch s.Op {
	case Seal:
		next.State, next.To, next.Was = Sealed, s.To, p.Move
		done = p.Move == s.Move && (p.State == Sealed || p.State == Moved) && p.To == s.To
		may = p.State == Active && p.Move < s.Move
	case Activate:
		next.State, next.By = Active, s.By
		done = p.Move == s.Move && p.State == Active
		may = p.State != Active && p.State != Limbo && p.Move < s.Move
	case Refuse:
		next.State = Refused
		may = p.State != Active && p.State != Limbo && p.Move < s.Move
		next.Was = p.Was
		next.Above = max(p.Above, above)
		may = may || p.State == Refused && p.Move == s.Move
	case Cancel:
		next.State = Active
		may = p.State == Active && p.Move < s.Move
	case Reopen:
		next.State = Active
		may = p.State == Sealed && p.Move == s.Move
	case Finish:
		next.State, next.To, next.Was = Moved, p.To, p.Was
		may = p.State == Sealed && p.Move == s.Move
	case Keep:
		next.State = Active
		may = p.State == Limbo
	case Give:
		next.State, next.To, next.Above = Moved, s.To, above
		may = p.State == Limbo
	}
	switch {
	case done || p == next && p.State != Limbo:
		return p, nil
	case may:
		return next, nil
	}
	return p, fmt.Errorf("%w: it is %v, and cannot %s by move %d", seq.ErrMoveOver, p, s.Op, s.Move)
}
