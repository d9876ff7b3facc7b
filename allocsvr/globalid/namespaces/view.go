package namespaces

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seqsvr/seqsvr/seq"
)

// View is the document of one version, and what a node offers beside it. Immutable.
type View struct {
	directory
	All     []Namespace // recorded and offered, by name
	byName  map[string]*Namespace
	byAlias map[uint32]*Namespace
}

func newView(d directory, offers []Namespace) *View {
	v := &View{directory: d, All: d.all(offers), byName: map[string]*Namespace{}, byAlias: map[uint32]*Namespace{}}
	for i := range v.All {
		ns := &v.All[i]
		v.byName[ns.Name] = ns
		if ns.Alias != 0 {
			v.byAlias[ns.Alias] = ns
		}
	}
	return v
}

// Find gives the namespace that is meant, nil if there is none such. It is fast for names.
func (v *View) Find(ref Ref) *Namespace {
	if ns := v.byName[ref.Name]; ns != nil && ref.Alias == 0 { // no name is all digits
		return ns
	}
	ref = ref.normal()
	ns := v.byName[ref.Name]
	if ref.Name == "" {
		ns = v.byAlias[ref.Alias]
	}
	if ns == nil || !ref.matches(*ns) {
		return nil
	}
	return ns
}

// Named returns the namespace of exactly that name: seq.ErrUnknownNamespace.
func (v *View) Named(name string) (*Namespace, error) {
	if ns := v.byName[name]; ns != nil {
		return ns, nil
	}
	return nil, Ref{Name: name}.unknown()
}

// lacks reports whether there is something for a node to ask the root for, at another Set, before it makes
// IDs of a namespace.
func (v *View) lacks(name string, n Node) bool {
	ns, recorded := v.find(name)
	_, binds, err := v.bind(n.Datacenter)
	return !recorded || binds || err == nil && !n.of(v.own(ns.Layout, name, n.DatacenterIn(ns.Layout)))
}

// Elsewhere reports whether other Sets have worker ids of a namespace.
func (v *View) Elsewhere(name string) bool {
	return !v.Member && slices.ContainsFunc(v.Allotments, func(a Allotment) bool { return a.Namespace == name })
}

// Select returns the namespaces that are meant, by name: all of them if the reference is empty.
// seq.ErrUnknownNamespace.
func (v *View) Select(ref Ref) ([]Namespace, error) {
	if ref == (Ref{}) {
		return v.All, nil
	}
	if ns := v.Find(ref); ns != nil {
		return []Namespace{*ns}, nil
	}
	return nil, ref.normal().unknown()
}

// Ready is nil if the node can hand out IDs in some namespace of the view, as far as its
// configuration goes: seq.ErrNodeUnfit otherwise, with the reason of each.
func (v *View) Ready(n Node) error {
	var why []string
	for _, ns := range v.All {
		err := n.Fits(ns.Layout)
		if err == nil {
			return nil
		}
		why = append(why, fmt.Sprintf("namespace %q: %s", ns.Name, strings.TrimPrefix(err.Error(), seq.ErrNodeUnfit.Error()+": ")))
	}
	const most = 4 // named: there may be a thousand
	if more := len(why) - most; more > 0 {
		why = append(slices.Clip(why[:most]), fmt.Sprintf("and %d more", more))
	}
	return fmt.Errorf("%w for every namespace: %s", seq.ErrNodeUnfit, strings.Join(why, "; "))
}

// retire has the namespace that is meant hand out nothing from now on, or undoes that, and
// returns it as it is then; changed is false if it was so before. One that is only offered
// is recorded with it. seq.ErrUnknownNamespace, seq.ErrTimeExhausted: an undone one has a
// layout that has ended; seq.ErrBadArgument: no room to record it.
func (v *View) retire(ref Ref, now time.Time, undo bool) (next directory, ns Namespace, changed bool, err error) {
	d, known := v.directory, v.Find(ref)
	if known == nil {
		return d, ns, false, ref.normal().unknown()
	}
	if ns = *known; undo == (ns.Retired == 0) {
		return d, ns, false, nil
	}
	if ns.Retired = now.UnixMilli(); undo {
		ns.Retired = 0
		if err := ns.lasts(now); err != nil {
			return d, ns, false, err
		}
	}
	ns.Version++
	next, err = d.with(ns)
	return next, ns, true, err
}
