package sets

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/seqsvr/seqsvr/seq"
)

// Run is neighbouring sections with the same Place.
type Run struct {
	Range
	Place
}

// Record says which sections one Set has. The zero Record belongs to a cluster that is alone and has all
// sections. A Record is never modified.
type Record struct {
	Name string   `json:"name,omitempty"` // of the Set; empty if the cluster is alone, or the root
	Root []string `json:"root,omitempty"` // gRPC addresses of AllocSvr of the root Set; empty in the root's own record
	// RootCluster is the root's cluster id. It is empty in the root's own record, and if the Set joined by
	// a build that did not note it.
	RootCluster string `json:"root_cluster,omitempty"`
	Rest        Place  `json:"rest"`           // of the sections of no run
	Runs        []Run  `json:"runs,omitempty"` // in order; no two that meet have the same place
}

// RootName is the Set that a cluster is before others are added to it.
const RootName = "main"

// NewRecord returns the record of an added Set, which has no sections. root holds addresses of the root
// Set.
func NewRecord(name string, root []string) Record {
	return Record{Name: name, Root: slices.Clone(root), Rest: Place{State: Inactive}}
}

// Join returns the Record of a cluster that was alone and becomes a Set without sections, or of a Set whose
// root is elsewhere now. root has addresses of the root. rootCluster is the root's cluster id, or empty if
// it is unknown. Join returns seq.ErrConflict for a Set of another name or root, and for a root.
func (r Record) Join(name string, root []string, rootCluster string) (next Record, changed bool, err error) {
	switch {
	case r.Alone():
		next = NewRecord(name, root)
		next.RootCluster = rootCluster
		return next, true, nil
	case r.IsRoot():
		return r, false, fmt.Errorf("%w: it is the root Set %s already", seq.ErrConflict, r.SetName())
	case r.Name != name:
		return r, false, fmt.Errorf("%w: it is Set %s already", seq.ErrConflict, r.Name)
	case r.RootCluster != "" && rootCluster != "" && r.RootCluster != rootCluster:
		return r, false, fmt.Errorf("%w: it is Set %s of the root in cluster %q already, and cannot be one of that in %q", seq.ErrConflict, name, r.RootCluster, rootCluster)
	}
	next = r
	next.Root, next.RootCluster = slices.Clone(root), cmp.Or(rootCluster, r.RootCluster)
	return next, !slices.Equal(next.Root, r.Root) || next.RootCluster != r.RootCluster, nil
}

// ParseRecord reads the output of Encode. An empty body is the record of a cluster that is alone.
// ParseRecord returns seq.ErrBadTable.
func ParseRecord(body []byte) (Record, error) {
	var r Record
	if len(body) == 0 {
		return r, nil
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return r, fmt.Errorf("%w: record of a Set: %w", seq.ErrBadTable, err)
	}
	for i, run := range r.Runs {
		if run.Sections == 0 || run.end() > seq.MaxSections || i > 0 && uint64(run.First) < r.Runs[i-1].end() {
			return r, fmt.Errorf("%w: record of a Set: sections %v out of order", seq.ErrBadTable, run.Range)
		}
	}
	return r, nil
}

// Encode returns the body of the document.
func (r Record) Encode() ([]byte, error) { return json.Marshal(r) }

// IsRoot reports whether the Set has the map, or is alone.
func (r Record) IsRoot() bool { return len(r.Root) == 0 }

// Alone reports whether the cluster is no Set, and was none before.
func (r Record) Alone() bool { return r.IsRoot() && r.Name == "" && len(r.Runs) == 0 }

// SetName returns the Set's name. For a cluster that is alone it returns RootName.
func (r Record) SetName() string {
	if r.Name == "" {
		return RootName
	}
	return r.Name
}

// At returns the place of a section.
func (r Record) At(id seq.SectionID) Place {
	i, found := slices.BinarySearchFunc(r.Runs, id, func(run Run, id seq.SectionID) int {
		switch {
		case run.end() <= uint64(id):
			return -1
		case run.First > id:
			return 1
		}
		return 0
	})
	if !found {
		return r.Rest
	}
	return r.Runs[i].Place
}

// Has reports whether nodes of the Set may serve the section.
func (r Record) Has(id seq.SectionID) bool { return r.At(id).State == Active }

// Apply takes a step with all of the sections, or with none if it returns seq.ErrMoveOver.
func (r Record) Apply(s Step, ranges []Range) (next Record, changed bool, err error) {
	if err := CheckRanges(ranges); err != nil {
		return r, false, err
	}
	if s.Move == 0 || s.Op == 0 || (s.Op == Seal || s.Op == Give) && s.To == "" {
		return r, false, fmt.Errorf("%w: step %v of move %d to %q", seq.ErrBadArgument, s.Op, s.Move, s.To)
	}
	if s.Op == Settle {
		return r.settled(s.Move, ranges)
	}
	var made []Run
	for _, id := range Sections(ranges) {
		old := r.At(id)
		now, err := old.after(s, s.Above[id])
		if err != nil {
			return r, false, fmt.Errorf("section %d of Set %s: %w", id, r.SetName(), err)
		}
		changed = changed || now != old
		made = append(made, Run{Range{id, 1}, now})
	}
	if !changed {
		return r, false, nil
	}
	next = r
	next.Runs = overlay(r, made)
	return next, true, nil
}

// settled is Apply of Settle.
func (r Record) settled(number uint64, all []Range) (Record, bool, error) {
	for _, id := range Sections(all) {
		if p := r.At(id); p.State == Limbo {
			return r, false, fmt.Errorf("%w: section %d of Set %s is %v, expected it to be settled", seq.ErrMoveOver, id, r.SetName(), p)
		}
	}
	if r.Rest.State != Limbo {
		return r, false, nil
	}
	if r.Rest = (Place{State: Inactive, Move: number}); r.IsRoot() {
		r.Rest.State = Active
	}
	r.Runs = slices.DeleteFunc(slices.Clone(r.Runs), func(run Run) bool { return run.Place == r.Rest })
	return r, true, nil
}

// Last returns the highest number of a move in the record.
func (r Record) Last() uint64 {
	last := r.Rest.Move
	for _, run := range r.Runs {
		last = max(last, run.Move)
	}
	return last
}

// Restored returns the record in a new era. All sections that the Set had, or may have had, are in limbo.
// The record of a cluster that is alone stays as it is, because no section ever left it.
func (r Record) Restored() Record {
	if r.Alone() {
		return r
	}
	r.Rest = Place{State: Limbo, Move: r.Rest.Move}
	r.Runs = slices.Clone(r.Runs)
	for i, run := range r.Runs {
		r.Runs[i].Place = Place{State: Limbo, Move: run.Move}
	}
	return r
}

// overlay is the runs of r with made, which are in order, in place of what was there.
func overlay(r Record, made []Run) []Run {
	var out []Run
	put := func(run Run) {
		if n := len(out); n > 0 && out[n-1].end() == uint64(run.First) && out[n-1].Place == run.Place {
			out[n-1].Sections += run.Sections
		} else if run.Sections > 0 && run.Place != r.Rest {
			out = append(out, run)
		}
	}
	old := r.Runs
	for _, run := range made {
		for len(old) > 0 && uint64(old[0].First) < run.end() {
			head := old[0]
			if head.First < run.First {
				part := head
				part.Sections = uint32(min(head.end(), uint64(run.First)) - uint64(head.First))
				put(part)
			}
			if head.end() <= run.end() {
				old = old[1:]
				continue
			}
			old = slices.Clone(old)
			old[0].Sections = uint32(head.end() - run.end())
			old[0].First = seq.SectionID(run.end())
		}
		put(run)
	}
	for _, run := range old {
		put(run)
	}
	return out
}
