package placement

import (
	"fmt"

	"github.com/seqsvr/seqsvr/seq"
)

// Drain marks a node as drained, or with undo as fit again, in a copy of t. The
// sections are moved by the plans that follow. Without an error the result is
// never nil; it equals t where the mark was there already. seq.ErrUnknownNode: not
// in the table. seq.ErrNodeUnfit: no undrained node would be left.
func Drain(t *seq.RouteTable, name string, undo bool) (*seq.RouteTable, error) {
	i := t.Index(name)
	if i < 0 {
		return nil, fmt.Errorf("%w: drain %q", seq.ErrUnknownNode, name)
	}
	changed := t.Clone()
	changed.Nodes[i].Drained = !undo
	for _, n := range changed.Nodes {
		if !n.Drained {
			return changed, nil
		}
	}
	return nil, fmt.Errorf("%w: drain %q would leave no node undrained", seq.ErrNodeUnfit, name)
}

// Move pins a section to a node in a copy of t and makes it the owner at once, so
// that it works under a freeze too; name "" takes the pin away and leaves the
// section where it is. live must not be nil. Without an error the result is never
// nil. seq.ErrUnknownSection: outside of the table. seq.ErrUnknownNode: not in the
// table. seq.ErrNodeUnfit: not live, by the caller's word, or drained.
func Move(t *seq.RouteTable, section seq.SectionID, name string, live func(string) bool) (*seq.RouteTable, error) {
	if int(section) >= len(t.Sections) {
		return nil, fmt.Errorf("%w: move section %d, the table has %d", seq.ErrUnknownSection, section, len(t.Sections))
	}
	changed := t.Clone()
	if name == "" {
		delete(changed.Pins, section)
		return changed, nil
	}
	i := int16(t.Index(name))
	if i < 0 {
		return nil, fmt.Errorf("%w: move section %d to %q", seq.ErrUnknownNode, section, name)
	}
	if t.Nodes[i].Drained || !live(name) {
		return nil, fmt.Errorf("%w: %[3]q is dead or drained: move section %[2]d to %[3]q", seq.ErrNodeUnfit, section, name)
	}
	if changed.Pins == nil {
		changed.Pins = map[seq.SectionID]string{}
	}
	changed.Pins[section] = name

	changed.Cover(int(section) + 1)
	p := &changed.Sections[section]
	switch i { // a standby that becomes the owner trades places; a plan replaces an unfit one
	case p.Standby:
		p.Standby = p.Owner
	case p.Standby2:
		p.Standby2 = p.Owner
	}
	p.Owner = i
	return changed, nil
}
