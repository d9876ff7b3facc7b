package placement

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/seqsvr/seqsvr/seq"
)

// Node is a live AllocSvr as the arbiter sees it.
type Node struct {
	Name     string // not empty; a second node of the same name is ignored
	Addr     string // gRPC address for callers and peers
	Session  seq.Session
	Weight   uint32        // for a node new to the table; 0 is NormalWeight
	Zone     string        // for a node new to the table; may be empty
	AliveFor time.Duration // how long it has been seen alive without a break
	// Awaited means that the planning node has not seen the node since its own start, and that the node may
	// still come. It would come as another session than Session, which may have left.
	Awaited bool
}

// NormalWeight is the weight of a node that states none.
const NormalWeight = 100

// Defaults of a Config.
const (
	DefaultDwell        = 30 * time.Second
	DefaultBudgetParts  = 16 // Budget is this part of all sections
	DefaultMassFraction = 1.0 / 3
	// massFloor is the least number of nodes in a mass loss, however small the cluster is.
	massFloor = 2
)

// Config limits the moves. The zero value means the defaults.
type Config struct {
	Dwell        time.Duration // how long a node must have been alive before sections move to it for balance
	Budget       int           // most sections moved for balance in one plan; at least 1
	MassFraction float64       // losing more than this part of the nodes within a minute freezes; 0 < MassFraction < 1
}

func (c Config) withDefaults(sections int) Config {
	if c.Dwell <= 0 {
		c.Dwell = DefaultDwell
	}
	if c.Budget <= 0 {
		c.Budget = max(1, sections/DefaultBudgetParts)
	}
	if c.MassFraction <= 0 || c.MassFraction >= 1 {
		c.MassFraction = DefaultMassFraction
	}
	return c
}

// Input is everything that a plan depends on.
type Input struct {
	Table    *seq.RouteTable // the newest; Version 0 before the first; never nil
	Sections int             // of the mapping, 1 to seq.MaxSections
	Live     []Node          // in any order
	Owners   []string        // effective owners by section, from the stores; may be nil or short, and "" means unknown

	LostWithinMinute int  // nodes lost within the last minute
	KnownNodes       int  // the nodes among which those were lost
	Force            bool // an operator's rebalance: no dwell, no budget, lifts a freeze

	Config
}

// Change is one decision for the log, with its reason. Moves between the same two
// nodes are one Change, so that a death does not flush the bounded log.
type Change struct {
	Kind    string // one of the Kind constants
	Subject string // a node, or what was moved: "section 17", "1365 sections"
	Reason  string
}

// Kinds of changes.
const (
	KindTable     = "table"     // the first table
	KindMove      = "move"      // owners changed
	KindStandby   = "standby"   // standbys changed where the owner stayed
	KindJoin      = "join"      // a node is new, or back with another session or address
	KindLost      = "lost"      // a node lost its places, or was removed from the table
	KindFreeze    = "freeze"    // mass suspicion: no moves from here on
	KindUnfreeze  = "unfreeze"  // moves are made again
	KindRebalance = "rebalance" // an operator had everything placed afresh
)

// Plan returns the table that should replace in.Table, and the changes with their reasons. It returns nil
// and nil if nothing is to change. It leaves next.Version for the writer to set.
func Plan(in Input) (next *seq.RouteTable, changes []Change) {
	if in.Sections <= 0 {
		return nil, nil
	}
	in.Config = in.Config.withDefaults(in.Sections)
	if !in.Force && len(in.Table.Sections) > 0 { // before the first table there is nothing to freeze
		if in.Table.Frozen != "" {
			return thaw(in)
		}
		if in.LostWithinMinute >= massFloor && exceeds(float64(in.LostWithinMinute), in.MassFraction*float64(in.KnownNodes)) {
			return freeze(in)
		}
	}
	p := newPlanner(in)
	if in.Force && p.next.Frozen != "" {
		p.note(KindUnfreeze, "", "an operator asked for a rebalance; was frozen: "+p.next.Frozen)
		p.next.Frozen = ""
	}
	switch {
	case p.live() > 0:
		p.assign()
		if !p.first && !in.Force {
			p.balance()
		}
		p.explain()
		p.forget()
	case p.first:
		return nil, nil
	}
	if same(p.next, in.Table) {
		return nil, nil
	}
	return p.next, p.changes
}

func freeze(in Input) (*seq.RouteTable, []Change) {
	next := in.Table.Clone()
	next.Frozen = fmt.Sprintf("mass suspicion: %d of %d nodes lost within a minute", in.LostWithinMinute, in.KnownNodes)
	return next, []Change{{Kind: KindFreeze, Reason: next.Frozen}}
}

// thaw lifts a freeze once no node was lost for a minute and enough nodes are live. The next plan makes
// moves again.
func thaw(in Input) (*seq.RouteTable, []Change) {
	enough := (1 - in.MassFraction) * float64(in.KnownNodes)
	if in.LostWithinMinute > 0 || exceeds(enough, float64(len(in.Live))) {
		return nil, nil
	}
	next := in.Table.Clone()
	next.Frozen = ""
	reason := fmt.Sprintf("no node lost for a minute, %d of %d live", len(in.Live), in.KnownNodes)
	return next, []Change{{Kind: KindUnfreeze, Reason: reason}}
}

// exceeds reports whether a > b, with a margin for the rounding of fractions such as a third.
func exceeds(a, b float64) bool { return a > b+1e-9 }

func same(a, b *seq.RouteTable) bool {
	return a.Frozen == b.Frozen && slices.Equal(a.Nodes, b.Nodes) &&
		slices.Equal(a.Sections, b.Sections) && maps.Equal(a.Pins, b.Pins)
}

// node is the planner's view of the node of next.Nodes at the same index.
type node struct {
	hash     uint64
	weight   float64 // >= 1
	live     bool
	fit      bool // may be given sections; fit => live
	session  seq.Session
	aliveFor time.Duration
}

// planner builds one plan. len(nodes) == len(next.Nodes), and indices of in.Table stay valid until forget.
type planner struct {
	in     Input
	next   *seq.RouteTable
	before []seq.Placement // next.Sections at the start, with valid indices only
	nodes  []node

	first     bool // no table yet
	zoned     bool // nodes are in two zones at least
	makeshift bool // every live node is drained or leaves, so these nodes keep the sections
	changes   []Change
}

func newPlanner(in Input) *planner {
	p := &planner{in: in, next: in.Table.Clone(), first: in.Table.Version == 0 || len(in.Table.Sections) == 0}
	p.soundSections()
	p.adoptLive()
	p.judge()
	p.zoned = len(p.next.Zones()) > 1
	p.before = slices.Clone(p.next.Sections)
	return p
}

// soundSections makes the table cover the sections of the mapping, with indices that point to nodes. It
// changes only a damaged table.
func (p *planner) soundSections() {
	t := p.next
	t.Sections = t.Sections[:min(len(t.Sections), p.in.Sections)]
	t.Cover(p.in.Sections)
	sound := func(i int16) int16 {
		if i < 0 || int(i) >= len(t.Nodes) {
			return seq.NoNode
		}
		return i
	}
	for id, s := range t.Sections {
		t.Sections[id] = seq.Placement{Owner: sound(s.Owner), Standby: sound(s.Standby), Standby2: sound(s.Standby2)}
	}
	maps.DeleteFunc(t.Pins, func(id seq.SectionID, _ string) bool { return int(id) >= p.in.Sections })
}

// adoptLive brings addresses and sessions up to date and appends new nodes by name.
func (p *planner) adoptLive() {
	live := slices.Clone(p.in.Live)
	slices.SortFunc(live, func(a, b Node) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(b.AliveFor, a.AliveFor), cmp.Compare(a.Session, b.Session))
	})
	live = slices.CompactFunc(live, func(a, b Node) bool { return a.Name == b.Name })

	t := p.next
	index := make(map[string]int, len(t.Nodes)+len(live))
	for i, n := range t.Nodes {
		index[n.Name] = i
	}
	p.nodes = make([]node, len(t.Nodes), len(t.Nodes)+len(live))
	for _, n := range live {
		i, known := index[n.Name]
		switch {
		case n.Name == "":
			continue
		case !known && len(t.Nodes) > math.MaxInt16:
			continue // a Placement could not point to it
		case !known:
			i = len(t.Nodes)
			t.Nodes = append(t.Nodes, seq.Node{Name: n.Name, Addr: n.Addr, Session: n.Session, Weight: cmp.Or(n.Weight, NormalWeight), Zone: n.Zone})
			p.nodes = append(p.nodes, node{})
			p.note(KindJoin, n.Name, fmt.Sprintf("new at %s with weight %d", n.Addr, t.Nodes[i].Weight))
		default:
			p.refresh(&t.Nodes[i], n)
		}
		p.nodes[i].live, p.nodes[i].aliveFor = true, n.AliveFor
		if !n.Awaited {
			p.nodes[i].session = n.Session
		}
	}
}

func (p *planner) refresh(known *seq.Node, now Node) {
	switch {
	case known.Session != now.Session:
		p.note(KindJoin, now.Name, fmt.Sprintf("back at %s, session %s instead of %s", now.Addr, now.Session, known.Session))
	case known.Addr != now.Addr:
		p.note(KindJoin, now.Name, fmt.Sprintf("at %s instead of %s", now.Addr, known.Addr))
	}
	known.Addr, known.Session = now.Addr, now.Session
}

// judge marks the fit nodes. A node is fit if it is live and neither drained nor leaving. If no such node
// exists, all live nodes are fit.
func (p *planner) judge() {
	p.makeshift = true
	for i := range p.nodes {
		n, known := &p.nodes[i], p.next.Nodes[i]
		n.hash = uint64(seq.HashKey(known.Name))
		n.weight = float64(max(1, known.Weight))
		n.fit = n.live && known.Takes(n.session)
		p.makeshift = p.makeshift && !n.fit
	}
	for i := range p.nodes {
		if p.makeshift {
			p.nodes[i].fit = p.nodes[i].live
		}
	}
}

func (p *planner) fit(i int16) bool { return i != seq.NoNode && p.nodes[i].fit }

func (p *planner) note(kind, subject, reason string) {
	p.changes = append(p.changes, Change{Kind: kind, Subject: subject, Reason: reason})
}
