package sets

import (
	"fmt"
	"testing"
)

// world is one section, the Sets a and b, the map, and coordinators that may be anywhere in what
// they do. It is explored in all its states: each step is one compare-and-swap on one document,
// or what one node does while it holds the register.
type world struct {
	place [2]Place
	// node is what a node of each Set does: nothing, it has been promised the register and is
	// about to read the record, or it serves.
	node  [2]doing
	in    int      // the Set by the map
	last  uint64   // id of the last move that the map has noted
	open  openMove // zero: none
	coord [coordinators]coord
}

type doing uint8

const (
	idle doing = iota
	promised
	serving
)

type openMove struct {
	id   uint64
	from int
}

const (
	coordinators = 3
	lastMove     = 2
)

// coord is one that carries out a move, or takes it back.
type coord struct {
	move uint64 // zero if it does nothing
	from int
	at   stage
}

type stage uint8

const (
	sealing stage = iota
	stopping
	gaining
	activating
	finishing
	arriving
	looking // to take the move back
	refusing
	cancelling
	reopening
	aborting
)

var a0 = [2]Place{{State: Active}, {State: Inactive}}

// cas takes a step at one Set's record; ok as nodes tell it to a coordinator.
func (w *world) cas(set int, op Op, move uint64, to string) bool {
	r := Record{Rest: w.place[set]}
	next, _, err := r.Apply(Step{Op: op, Move: move, To: to}, []Range{{First: 0, Sections: 1}})
	if err != nil {
		return false
	}
	w.place[set] = next.At(0)
	return true
}

// next are all worlds one step on.
func (w world) next(coordinators int) (out []world) {
	for set := range w.node {
		v := w
		switch w.node[set] {
		case idle: // the register is free
			v.node[set] = promised
		case promised:
			v.node[set] = idle
			if w.place[set].State == Active {
				v.node[set] = serving
			}
		case serving: // it dies, and its lease ends
			v.node[set] = idle
		}
		out = append(out, v)
	}
	if w.open.id == 0 && w.last < lastMove { // a move is noted
		v := w
		v.last++
		v.open = openMove{v.last, w.in}
		out = append(out, v)
	}
	for i, c := range w.coord[:coordinators] {
		if c.move == 0 {
			if w.open.id != 0 { // another coordinator takes the move up, either way
				for _, at := range []stage{sealing, looking} {
					v := w
					v.coord[i] = coord{w.open.id, w.open.from, at}
					out = append(out, v)
				}
			}
			continue
		}
		v := w
		v.coord[i] = coord{} // it ends
		out = append(out, v)
		v = w
		v.step(&v.coord[i])
		out = append(out, v)
	}
	return out
}

// step is the next one of a coordinator, as package setadmin has them.
func (w *world) step(c *coord) {
	from, to := c.from, 1-c.from
	name := [2]string{"a", "b"}[to]
	then := func(ok bool, next stage) {
		if c.at = next; !ok {
			*c = coord{}
		}
	}
	switch c.at {
	case sealing:
		then(w.cas(from, Seal, c.move, name), stopping)
	case stopping: // by the owner, or by gaining the register: a node checks the record first
		p := w.place[from]
		ok := p.Move == c.move && (p.State == Sealed || p.State == Moved)
		if ok {
			w.node[from] = idle
		}
		then(ok, gaining)
	case gaining:
		if p := w.place[to]; p.State == Active && p.Move == c.move {
			c.at = finishing // activated before: its nodes go on
			return
		}
		w.node[to] = idle // the register was gained: no other node has it
		c.at = activating
	case activating:
		then(w.cas(to, Activate, c.move, ""), finishing)
	case finishing:
		then(w.cas(from, Finish, c.move, ""), arriving)
	case arriving:
		if w.open.id == c.move {
			w.open, w.in = openMove{}, to
		}
		*c = coord{}
	case looking:
		switch p := w.place[from]; {
		case p.State == Sealed && p.Move == c.move:
			c.at = refusing
		case p.State == Moved && p.Move == c.move:
			c.at = sealing
		default:
			c.at = cancelling
		}
	case refusing:
		if w.cas(to, Refuse, c.move, "") {
			c.at = reopening
		} else if p := w.place[to]; p.State == Active && p.Move == c.move {
			c.at = sealing
		} else {
			then(p.Never(c.move), reopening)
		}
	case cancelling:
		if c.at = aborting; !w.cas(from, Cancel, c.move, "") {
			c.at = looking
		}
	case reopening:
		then(w.cas(from, Reopen, c.move, ""), aborting)
	case aborting:
		if w.open.id == c.move {
			w.open = openMove{}
		}
		*c = coord{}
	}
}

// broken is what must never be.
func (w world) broken() string {
	switch {
	case w.node[0] == serving && w.node[1] == serving:
		return "both Sets serve the section"
	case w.place[0].State == Active && w.place[1].State == Active:
		return "both Sets have the section active"
	}
	return ""
}

// ends says whether one coordinator, alone, brings an open move to its end, after which exactly
// one Set has the section, and the map says which.
func (w world) ends(begin stage) string {
	if w.open.id == 0 {
		if w.place[w.in].State != Active {
			return fmt.Sprintf("no move is open and the map names Set %d, which has it %v", w.in, w.place[w.in])
		}
		return ""
	}
	w.coord = [coordinators]coord{{w.open.id, w.open.from, begin}}
	for range 20 {
		if w.coord[0].move == 0 {
			if w.open.id == 0 {
				return w.ends(begin)
			}
			w.coord[0] = coord{w.open.id, w.open.from, looking} // refused: it is taken back
		}
		w.step(&w.coord[0])
	}
	return fmt.Sprintf("a move is never brought to its end: %+v", w)
}

// The test looks at every state that three coordinators can reach. One section moves to the other Set and
// back, and nodes take and lose the register at any time.
func TestNoInterleavingOfMovesHasTwoSetsServe(t *testing.T) {
	busy := coordinators
	if testing.Short() {
		busy--
	}
	begin := world{place: a0}
	from := map[world]world{begin: begin}
	queue := []world{begin}
	for len(queue) > 0 {
		w := queue[0]
		queue = queue[1:]
		why := w.broken()
		for _, begin := range []stage{sealing, looking} {
			if why == "" {
				why = w.ends(begin)
			}
		}
		if why != "" {
			t.Errorf("%s", why)
			for ; w != from[w]; w = from[w] {
				t.Logf("%+v", w)
			}
			return
		}
		for _, v := range w.next(busy) {
			if _, seen := from[v]; !seen {
				from[v] = w
				queue = append(queue, v)
			}
		}
	}
	t.Logf("%d states", len(from))
	if len(from) < 10000 {
		t.Errorf("only %d states: the exploration does not get far", len(from))
	}
}
