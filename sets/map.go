package sets

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/seqsvr/seqsvr/seq"
)

// Set is one Set of the map.
type Set struct {
	Name    string   `json:"name"`
	Cluster string   `json:"cluster"` // its cluster id
	Addrs   []string `json:"addrs"`   // gRPC, host:port, of its AllocSvr: where callers begin; of the root none are needed
	// Incarnation is the life of the cluster when it joined, or was given its addresses. A later
	// era of the same cluster is the same Set.
	Incarnation seq.Incarnation `json:"incarnation,omitzero"`
}

// Move is a move that is under way.
type Move struct {
	ID       uint64  `json:"id"`
	From     string  `json:"from"`
	To       string  `json:"to"`
	Sections []Range `json:"sections"`                // that have not arrived yet
	Begun    int64   `json:"begun_unix_ms,omitempty"` // by the clock of the node that noted it; for people alone
}

// Map says which Set has which sections. It is never modified. The zero Map means that there is one Set.
type Map struct {
	Version uint64 `json:"version"` // rises by one with each change
	Last    uint64 `json:"last"`    // the highest id of a move
	Sets    []Set  `json:"sets"`    // the root first; a Set keeps its index
	Moves   []Move `json:"moves,omitempty"`
	// Restored reports that the map comes from a backup. It names no Set reliably until it is made again
	// from the records of all Sets.
	Restored bool `json:"restored,omitempty"`
	// Heard reports that a Set other than the root holds this copy of the map. The copy is only a hint.
	Heard bool `json:"heard,omitempty"`
	// Of the sections, as far as they go: those behind are the root's, which they never left.
	In       []uint16 `json:"in,omitempty"`       // the Set
	By       []uint64 `json:"by,omitempty"`       // the move that brought it there
	Ceilings []uint64 `json:"ceilings,omitempty"` // at or above all that was handed out before that move
}

// Errors of changes of the map.
var (
	// ErrUnknownSet: no Set of that name is in the map. Do not retry.
	ErrUnknownSet = errors.New("unknown Set")
	// ErrMoveOpen: another move of the sections is under way; finish or abort it first.
	ErrMoveOpen = errors.New("a move is under way")
	// ErrMapRestored: the root Set was restored, and the map is to be settled first (seqctl set
	// settle).
	ErrMapRestored = errors.New("the map of Sets is that of a backup")
)

// ParseMap reads what Encode wrote. seq.ErrBadTable.
func ParseMap(body []byte) (Map, error) {
	var m Map
	if len(body) == 0 {
		return m, nil
	}
	if err := json.Unmarshal(body, &m); err != nil {
		return m, fmt.Errorf("%w: map of Sets: %w", seq.ErrBadTable, err)
	}
	return m, m.Validate()
}

// Validate returns seq.ErrBadTable for a map that no changes can have made.
func (m Map) Validate() error {
	if len(m.By) != len(m.In) || len(m.Ceilings) != len(m.In) || len(m.In) > seq.MaxSections || len(m.Sets) > MaxSets {
		return fmt.Errorf("%w: map of Sets: %d sections, %d moves, %d ceilings of %d Sets", seq.ErrBadTable, len(m.In), len(m.By), len(m.Ceilings), len(m.Sets))
	}
	for id, i := range m.In {
		if int(i) >= len(m.Sets) {
			return fmt.Errorf("%w: map of Sets: section %d in Set %d of %d", seq.ErrBadTable, id, i, len(m.Sets))
		}
	}
	return nil
}

// Encode returns the body of the document.
func (m Map) Encode() ([]byte, error) { return json.Marshal(m) }

var goodName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)

// CheckName returns seq.ErrBadArgument for a name that no Set can have.
func CheckName(name string) error {
	if !goodName.MatchString(name) {
		return fmt.Errorf("%w: Set %q, expected %s", seq.ErrBadArgument, name, goodName)
	}
	return nil
}

// MaxSets bounds the number of Sets.
const MaxSets = 1024

// Set returns the Set of a name, or ErrUnknownSet.
func (m Map) Set(name string) (Set, error) {
	if i := m.index(name); i >= 0 {
		return m.Sets[i], nil
	}
	return Set{}, fmt.Errorf("%w: %q", ErrUnknownSet, name)
}

func (m Map) index(name string) int {
	return slices.IndexFunc(m.Sets, func(s Set) bool { return s.Name == name })
}

// Index returns the index of the Set that has the section, by the map. The root's is 0.
func (m Map) Index(id seq.SectionID) int {
	if int(id) < len(m.In) {
		return int(m.In[id])
	}
	return 0
}

// Ranges returns the sections of each Set, in the order of Sets. n is the number of all sections.
func (m Map) Ranges(n int) [][]Range {
	ids := make([][]seq.SectionID, max(1, len(m.Sets)))
	for id := range seq.SectionID(n) {
		i := m.Index(id)
		ids[i] = append(ids[i], id)
	}
	out := make([][]Range, len(ids))
	for i := range ids {
		out[i] = RangesOf(ids[i])
	}
	return out
}

// Open returns a move that is under way.
func (m Map) Open(id uint64) (Move, bool) {
	for _, move := range m.Moves {
		if move.ID == id {
			return move, true
		}
	}
	return Move{}, false
}

// Add returns the map with a Set added, or with other addresses of a Set that it has. root describes the
// root Set, which comes first in an empty map. Add returns seq.ErrBadArgument if the name or the cluster is
// another Set's.
func (m Map) Add(root, s Set) (next Map, changed bool, err error) {
	if err := CheckName(s.Name); err != nil {
		return m, false, err
	}
	if len(s.Addrs) == 0 || s.Cluster == "" {
		return m, false, fmt.Errorf("%w: Set %q of cluster %q at %d addresses, expected an address of its AllocSvr", seq.ErrBadArgument, s.Name, s.Cluster, len(s.Addrs))
	}
	next = m
	next.Sets = slices.Clone(m.Sets)
	if len(next.Sets) == 0 {
		next.Sets = append(next.Sets, root)
	}
	for i, old := range next.Sets {
		switch {
		case old.Name == s.Name && old.Cluster == s.Cluster:
			err := old.Incarnation.Check(s.Incarnation)
			if errors.Is(err, seq.ErrForeignCluster) && slices.Contains(m.In, uint16(i)) {
				return m, false, fmt.Errorf("Set %q has sections: %w", s.Name, err)
			}
			if !s.Incarnation.Known() || s.Incarnation.Newer(old.Incarnation) {
				s.Incarnation = old.Incarnation
			}
			if slices.Equal(old.Addrs, s.Addrs) && old.Incarnation == s.Incarnation {
				return m, false, nil
			}
			next.Sets[i], next.Version = s, m.Version+1
			return next, true, nil
		case old.Name == s.Name || old.Cluster == s.Cluster:
			return m, false, fmt.Errorf("%w: Set %q of cluster %q: there is Set %q of cluster %q", seq.ErrBadArgument, s.Name, s.Cluster, old.Name, old.Cluster)
		}
	}
	if len(next.Sets) >= MaxSets {
		return m, false, fmt.Errorf("%w: %d Sets, expected at most %d", seq.ErrBadArgument, len(next.Sets)+1, MaxSets)
	}
	next.Sets = append(next.Sets, s)
	next.Version++
	return next, true, nil
}

// Begin notes a move of sections to a Set. All of them must be in one other Set, and not moving. If a move
// of exactly these sections to that Set is open, Begin returns it. at is the time that people see.
func (m Map) Begin(to string, ranges []Range, at time.Time) (next Map, move Move, err error) {
	if err := CheckRanges(ranges); err != nil {
		return m, move, err
	}
	if m.Restored {
		return m, move, ErrMapRestored
	}
	if m.index(to) < 0 {
		return m, move, fmt.Errorf("%w: %q", ErrUnknownSet, to)
	}
	ids := Sections(ranges)
	from := m.Sets[m.Index(ids[0])].Name
	for _, id := range ids {
		if in := m.Sets[m.Index(id)].Name; in != from || in == to {
			return m, move, fmt.Errorf("%w: section %d is in Set %s, expected all in one, and not in %s", seq.ErrBadArgument, id, in, to)
		}
	}
	for _, open := range m.Moves {
		if open.To == to && slices.Equal(Sections(open.Sections), ids) {
			return m, open, nil
		}
		if slices.ContainsFunc(Sections(open.Sections), func(id seq.SectionID) bool { return slices.Contains(ids, id) }) {
			return m, move, fmt.Errorf("%w: move %d of sections %v from %s to %s", ErrMoveOpen, open.ID, open.Sections, open.From, open.To)
		}
	}
	next = m
	next.Last++
	next.Version++
	move = Move{ID: next.Last, From: from, To: to, Sections: slices.Clone(ranges), Begun: at.UnixMilli()}
	next.Moves = append(slices.Clone(m.Moves), move)
	return next, move, nil
}

// Arrive notes that sections of a move have arrived, with their ceilings. The move ends with the last of
// them. Sections that arrived before, and a move that has ended, change nothing.
func (m Map) Arrive(id uint64, ceilings map[seq.SectionID]uint64) (next Map, changed bool) {
	return m.without(id, func(s seq.SectionID) bool { _, there := ceilings[s]; return there }, func(next *Map, to int, s seq.SectionID) {
		next.put(s, to, id, ceilings[s])
	})
}

// Abort notes that sections of a move stay where they are. The move ends with the last of them.
func (m Map) Abort(id uint64, ranges []Range) (next Map, changed bool) {
	ids := Sections(ranges)
	return m.without(id, func(s seq.SectionID) bool { return slices.Contains(ids, s) }, func(*Map, int, seq.SectionID) {})
}

// AsRestored returns the map in a later era of the root. New moves get numbers above all moves of the eras
// between, which no other Set may know of. A Set that knows a newer map of one of these eras still accepts
// this one. A map that was heard stays as it is; otherwise the root's map would not be newer.
func (m Map) AsRestored(eras uint64) Map {
	if len(m.Sets) == 0 && !m.Restored || m.Heard {
		return m
	}
	m.Restored = true
	m.Last += eras << 32
	m.Version += eras << 32
	return m
}

// Number returns the map after it took a number for a settlement without a move. The number is above least
// and above all numbers before, and no move has it.
func (m Map) Number(least uint64) (next Map, id uint64) {
	next = m
	next.Last = max(m.Last, least) + 1
	next.Version++
	return next, next.Last
}

// Found holds where all Sets, when asked, said that sections are.
type Found struct {
	Number   uint64 // that was taken for it
	In       map[seq.SectionID]string
	Ceilings map[seq.SectionID]uint64 // at or above all that was handed out before
	// Seen is Map.By of the sections, before the Sets were asked. Zero means that no move brought it there.
	Seen map[seq.SectionID]uint64
	// Whole says that these are all sections, and Open all moves that are under way.
	Whole bool
	Open  []Move
}

// Settle notes where sections were found, whatever the map said of them. It notes nothing of a section that
// has moved since. Two kinds of moves stay open: moves from where a section is, because they may have
// sealed it, and moves to there, because the former Set does not know yet that it has gone. Once all
// sections were found the map is reliable again. If another settlement did that before, Settle notes
// nothing.
func (m Map) Settle(f Found) (Map, error) {
	next := m
	next.In, next.By, next.Ceilings = slices.Clone(m.In), slices.Clone(m.By), slices.Clone(m.Ceilings)
	next.Version++
	if f.Whole && !m.Restored {
		return next, nil
	}
	for s, name := range f.In {
		i := m.index(name)
		if i < 0 {
			return m, fmt.Errorf("%w: %q", ErrUnknownSet, name)
		}
		if !m.movedSince(s, f) {
			next.put(s, i, f.Number, max(f.Ceilings[s], m.Ceiling(s)))
		}
	}
	if f.Whole {
		for _, move := range f.Open {
			if move.ID == 0 || move.ID > f.Number || m.index(move.From) < 0 || m.index(move.To) < 0 || CheckRanges(move.Sections) != nil {
				return m, fmt.Errorf("%w: move %d from %q to %q of sections %v is not one of before number %d", seq.ErrBadArgument, move.ID, move.From, move.To, move.Sections, f.Number)
			}
		}
		next.Moves, next.Restored = f.Open, false
		return next, nil
	}
	next.Moves = nil
	for _, move := range m.Moves {
		move.Sections = RangesOf(slices.DeleteFunc(Sections(move.Sections), func(s seq.SectionID) bool {
			name, there := f.In[s]
			return there && !m.movedSince(s, f) && name != move.From && name != move.To
		}))
		if len(move.Sections) > 0 {
			next.Moves = append(next.Moves, move)
		}
	}
	return next, nil
}

// movedSince says whether a section has been moved, or settled by another, since the Sets were asked.
func (m Map) movedSince(s seq.SectionID, f Found) bool {
	by := m.LastOf(s)
	return by != f.Seen[s] && by != f.Number
}

// LastOf returns the number of the move or settlement that brought a section to its Set. Zero means that
// none did.
func (m Map) LastOf(s seq.SectionID) uint64 {
	if int(s) < len(m.By) {
		return m.By[s]
	}
	return 0
}

// Ceiling bounds every number of a section that was handed out before it came to its Set.
func (m Map) Ceiling(s seq.SectionID) uint64 {
	if int(s) < len(m.Ceilings) {
		return m.Ceilings[s]
	}
	return 0
}

// put notes where a section is. The map's lists must be its own.
func (m *Map) put(s seq.SectionID, in int, by, ceiling uint64) {
	for len(m.In) <= int(s) {
		m.In, m.By, m.Ceilings = append(m.In, 0), append(m.By, 0), append(m.Ceilings, 0)
	}
	m.In[s], m.By[s], m.Ceilings[s] = uint16(in), by, ceiling
}

// without takes sections out of an open move.
func (m Map) without(id uint64, out func(seq.SectionID) bool, each func(next *Map, to int, s seq.SectionID)) (next Map, changed bool) {
	at := slices.IndexFunc(m.Moves, func(move Move) bool { return move.ID == id })
	if at < 0 {
		return m, false
	}
	next = m
	next.Moves = slices.Clone(m.Moves)
	next.In, next.By, next.Ceilings = slices.Clone(m.In), slices.Clone(m.By), slices.Clone(m.Ceilings)
	var left []seq.SectionID
	for _, s := range Sections(m.Moves[at].Sections) {
		if !out(s) {
			left = append(left, s)
			continue
		}
		changed = true
		each(&next, m.index(m.Moves[at].To), s)
	}
	if !changed {
		return m, false
	}
	if next.Moves[at].Sections = RangesOf(left); len(left) == 0 {
		if next.Moves = slices.Delete(next.Moves, at, at+1); len(next.Moves) == 0 {
			next.Moves = nil
		}
	}
	next.Version++
	return next, true
}
