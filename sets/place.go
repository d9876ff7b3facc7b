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

// Place is what a Set says of one section.
type Place struct {
	State State  `json:"state,omitempty"`
	Move  uint64 `json:"move,omitempty"` // that brought it about; 0: none did
	To    string `json:"to,omitempty"`   // of Sealed and Moved: the Set
	By    uint64 `json:"by,omitempty"`   // of Active by a move: Step.By of the call that activated it
	// Above is of Refused: at or above where a restored Set that was settled to have the section has
	// begun with it; 0: none was. Of Moved by Give: at or above how far the section had gone in the
	// other Set.
	Above uint64 `json:"above,omitempty"`
	// Was is of Sealed, and of what came of it: the move by which the Set had the section last; 0:
	// by none, or it is not known since the Set was restored.
	Was uint64 `json:"was,omitempty"`
}

// Never says that the Set has not activated the section by the move, and never will.
func (p Place) Never(move uint64) bool {
	return p.State != Active && p.State != Limbo && p.Was < move && (p.Move > move || p.Move == move && p.State == Refused)
}

// String is for people: "sealed for b by move 7".
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
	// Seal stops the section in the Set that it leaves.
	Seal Op = iota + 1
	// Activate starts it in the Set that it goes to.
	Activate
	// Refuse has the Set that it would go to never activate this move.
	Refuse
	// Cancel has the Set that it would leave never seal it for this move.
	Cancel
	// Reopen gives it back, sealed, to the Set that it would have left. The other one must have
	// refused before.
	Reopen
	// Finish notes in the Set that it left that it has gone.
	Finish
	// Keep settles a section in limbo as this Set's.
	Keep
	// Give settles a section in limbo as another Set's.
	Give
	// Settle is of all sections that there are, none of which is in limbo any more: those that are
	// added from now on are in no Set but the root.
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
	// By is of Activate: a number that no other call has, by which a call that does not hear of its
	// own outcome finds that it was this one which activated the section.
	By uint64
	// Above is of Refuse and Give, by section: see Place.Above. By Refuse it only rises, also by the
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
