package sim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/seqsvr/seqsvr/internal/history"
	"github.com/seqsvr/seqsvr/internal/storewire"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr/acceptor"

	"github.com/seqsvr/seqsvr/allocsvr"
)

// Violation is one broken promise or invariant.
type Violation struct {
	Kind string  // I1 to I7, U, M, liveness, invariant, start
	At   float64 // seconds of virtual time
	Text string
}

// String is the violation in one line.
func (v Violation) String() string { return fmt.Sprintf("%s at %.6f s: %s", v.Kind, v.At, v.Text) }

// maxViolations bounds what one run reports.
const maxViolations = 20

// checker holds the invariants against what can be seen from outside the code under
// test: disks, messages, answers, and the sections of each node.
type checker struct {
	w       *world
	history history.Recorder
	failed  chan struct{} // closed at the first violation

	mu        sync.Mutex // guards all below
	found     []Violation
	sessions  map[seq.Session]string
	epochs    map[seq.SectionID]map[seq.Epoch]*ownership
	last      map[seq.Session][]*ownership // by section: what each session was last seen to own
	ids       map[idKey]string             // snowflake IDs handed out, and to whom
	floors    map[history.Key]uint64
	eras      eras
	stretches map[seq.Register][]stretch // of worker ids, in the order of time
}

// ownership is one epoch of a section in which a node owned it.
type ownership struct {
	epoch           seq.Epoch
	base            uint64
	high, confirmed uint64
	owned           bool // as it was last seen
}

func newChecker(w *world) *checker {
	return &checker{w: w, failed: make(chan struct{}), sessions: map[seq.Session]string{},
		epochs: map[seq.SectionID]map[seq.Epoch]*ownership{}, last: map[seq.Session][]*ownership{}, ids: map[idKey]string{}, floors: map[history.Key]uint64{}, stretches: map[seq.Register][]stretch{},
		eras: eras{now: 1, lists: map[seq.Era]quorum.MemberList{}, issued: map[seq.Register]uint64{}, past: map[seq.SectionID]uint64{}, homes: map[string]*host{}}}
}

// broken notes a violation.
func (c *checker) broken(kind, format string, args ...any) {
	v := Violation{Kind: kind, At: c.w.now().Seconds(), Text: fmt.Sprintf(format, args...)}
	c.w.trace.add("VIOLATION %s", v)
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.found) < maxViolations {
		c.found = append(c.found, v)
	}
	if len(c.found) == 1 {
		close(c.failed)
	}
}

func (c *checker) violations() []Violation {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.found)
}

// started checks I4: no session is ever used twice, so that an epoch has one proposer.
func (c *checker) started(h *host, p *allocProc) {
	c.mu.Lock()
	before, twice := c.sessions[p.session]
	c.sessions[p.session] = h.name
	c.mu.Unlock()
	if twice {
		c.broken("I4", "session %s of %s was %s's", p.session, h.name, before)
	}
}

// durable checks I1 to I3 at every change of a register on a disk.
func (c *checker) durable(h *host, r seq.Register, was, next acceptor.State) {
	switch {
	case next.Promised.Less(was.Promised):
		c.broken("I1", "%s %s: promised %s after %s", h.name, r, next.Promised, was.Promised)
	case next.Max < was.Max:
		c.broken("I2", "%s %s: max %d after %d", h.name, r, next.Max, was.Max)
	case next.Promised.Less(next.Accepted):
		c.broken("I3", "%s %s: accepted %s above promised %s", h.name, r, next.Accepted, next.Promised)
	}
}

// answer looks at an answer as it leaves a process that lives its life-th life.
func (c *checker) answer(h *host, life int, k *call, msg, reply proto.Message) {
	if h.kind == routerHost { // allocators have been asked, and checked
		return
	}
	switch reply := reply.(type) {
	case *pb.NextReply:
		req := msg.(*pb.NextRequest)
		c.onDisk(h, c.w.register(req.GetSpace(), req.GetUid()), reply.GetLast())
		c.leased(h, req.GetSpace(), req.GetUid())
	case *pb.RaiseReply:
		req := msg.(*pb.RaiseRequest)
		c.onDisk(h, c.w.register(req.GetSpace(), req.GetUid()), reply.GetValue())
	case *pb.SegmentTakeReply:
		c.onDisk(h, seq.TagRegister(msg.(*pb.SegmentTakeRequest).GetTag()), reply.GetLast())
	case *pb.SnowflakeGenerateReply:
		c.made(h, reply)
	case *pb.SnowflakeDelegateReply:
		c.onDisk(h, lentSpace.register(reply.GetWorkerId()), reply.GetConfirmedUnixMs())
	case *pb.BatchNextReply:
		c.batch(h, msg.(*pb.BatchNextRequest), reply)
	case *pb.RenewReply:
		c.tells(k, msg.(*pb.RenewRequest), reply)
	case *pb.ResultsReply:
		c.vote(h, life, k, msg, reply)
	}
}

// batch looks at the numbers of several keys. One that is alone was not kept waiting by
// others after it was taken.
func (c *checker) batch(h *host, req *pb.BatchNextRequest, reply *pb.BatchNextReply) {
	for i, r := range reply.GetResults() {
		b := req.GetBatches()[i]
		for k, first := range r.GetFirst() {
			if first == 0 { // an error, or to come in another part
				continue
			}
			last := first
			if k < len(r.GetLast()) {
				last = r.GetLast()[k]
			}
			c.onDisk(h, c.w.register(b.GetSpace(), b.GetUids()[k]), last)
			if len(req.GetBatches()) == 1 && len(b.GetUids()) == 1 {
				c.leased(h, b.GetSpace(), b.GetUids()[k])
			}
		}
	}
}

// made looks at IDs as they leave a node.
func (c *checker) made(h *host, reply *pb.SnowflakeGenerateReply) {
	s := idSpaceOf(reply.GetNamespace())
	c.w.mu.Lock()
	p := h.alloc
	c.w.mu.Unlock()
	look := func(id uint64) {
		c.onDisk(h, s.register(s.workerOf(id)), s.markOf(id))
		c.alone(s, id, p)
	}
	for _, id := range reply.GetIds() {
		look(id)
	}
	for _, r := range reply.GetRuns() {
		for id := r.GetFirst(); id <= r.GetLast(); id += r.GetStride() {
			look(id)
		}
	}
}

// onDisk checks I5: what is handed out is at or below what W disks have.
func (c *checker) onDisk(h *host, r seq.Register, value uint64) {
	if c.w.opts.Care {
		c.kept(h, r, value)
		return
	}
	have := 0
	for _, s := range c.w.of(storeHost) {
		if s.disk.had(r) >= value {
			have++
		}
	}
	if have < c.w.ident.W {
		c.broken("I5", "%s hands out %d of %s, which is on %d disks, %d needed", h.name, value, r, have, c.w.ident.W)
	}
}

// vote checks that an empty or old disk never votes, and that a promise or an accepted
// value is on the disk when it is told (I1, I2 over a power cut). The answer of a process
// that is killed meanwhile goes nowhere, and the disk may be another one by then.
func (c *checker) vote(h *host, life int, k *call, msg proto.Message, reply *pb.ResultsReply) {
	if h.disk == nil {
		return
	}
	name := k.name.point
	if name != "prepare" && name != "step" {
		return
	}
	if h.disk.distrusted() && c.w.lives(h, life) {
		c.broken("D", "%s votes with an old disk", h.name)
	}
	decoded, err := storewire.ReplyFromProto(reply)
	if err != nil {
		c.broken("wire", "%s answers what cannot be read: %v", h.name, err)
		return
	}
	for i, e := range ballots(msg) {
		if i >= len(decoded.Results) || decoded.Results[i].Verdict != quorum.VerdictOK {
			continue
		}
		st := h.disk.state(e.register)
		if (st.Promised.Less(e.epoch) || name == "step" && st.Max < e.max) && c.w.lives(h, life) {
			c.broken("D", "%s says yes to %s of %s under %s and has promised %s, max %d on disk", h.name, name, e.register, e.epoch, st.Promised, st.Max)
		}
	}
}

// inspect checks I6 and I7 over all nodes.
func (c *checker) inspect() {
	type claim struct {
		host *host
		view *allocsvr.SectionView
	}
	leased := make([]claim, c.w.ident.Mapping.Sections())
	era := c.present()
	for _, h := range c.w.of(allocHost) {
		c.w.mu.Lock()
		p, up := h.alloc, h.up
		c.w.mu.Unlock()
		if !up || p == nil {
			continue
		}
		now := h.clock.real()
		views := p.node.Sections()
		if p.era == era { // whoever is left of an era before may only still hand out, which I5, I7 and M judge
			c.seen(h, p.session, views)
		}
		for i := range views {
			v := &views[i]
			if !v.Owned || now >= v.Until {
				continue
			}
			if other := leased[v.Section]; other.host != nil && !c.w.opts.Beyond {
				c.broken("I7", "section %d is leased to %s under %s and to %s under %s", v.Section,
					other.host.name, other.view.Epoch, h.name, v.Epoch)
			}
			leased[v.Section] = claim{h, v}
		}
	}
}

// seen takes in what a session owns: at most one epoch of a section, and none of those
// that it owned before and does not list any more.
func (c *checker) seen(h *host, session seq.Session, views []allocsvr.SectionView) {
	c.mu.Lock()
	last := c.last[session]
	if last == nil {
		last = make([]*ownership, c.w.ident.Mapping.Sections())
		c.last[session] = last
	}
	for s, rec := range last {
		if rec != nil && !slices.ContainsFunc(views, func(v allocsvr.SectionView) bool { return int(v.Section) == s && v.Epoch == rec.epoch }) {
			rec.owned, last[s] = false, nil
		}
	}
	why, at := "", 0
	for i := range views {
		if text := c.own(last, &views[i]); text != "" {
			why, at = text, i
		}
	}
	c.mu.Unlock()
	if why != "" {
		c.broken("I6", "section %d at %s under %s: %s", views[at].Section, h.name, views[at].Epoch, why)
	}
}

// own keeps the owned epochs of a section and checks I6 between neighbours, if anything
// has changed; over more than one step it follows by induction. Needs c.mu.
func (c *checker) own(last []*ownership, v *allocsvr.SectionView) (why string) {
	if v.High > v.Confirmed || v.Base > v.High {
		why = fmt.Sprintf("base %d, high %d, confirmed %d", v.Base, v.High, v.Confirmed)
	}
	rec := last[v.Section]
	if rec != nil && rec.confirmed == v.Confirmed && rec.owned == v.Owned {
		rec.high = v.High
		return why
	}
	all := c.epochs[v.Section]
	if all == nil {
		all = map[seq.Epoch]*ownership{}
		c.epochs[v.Section] = all
	}
	if rec = all[v.Epoch]; rec == nil {
		rec = &ownership{epoch: v.Epoch, base: v.Base, high: v.High}
		all[v.Epoch] = rec
	}
	last[v.Section] = rec
	first := rec.high
	rec.high, rec.confirmed, rec.owned = v.High, v.Confirmed, v.Owned
	if past := c.eras.past[v.Section]; v.Base < past {
		why = cmp.Or(why, fmt.Sprintf("base %d, an era before has confirmed %d", v.Base, past))
	}
	return cmp.Or(why, c.neighbours(all, rec, first))
}

// neighbours says what is wrong between an epoch and those next to it; high is what the
// section stood at when the epoch was first seen.
func (c *checker) neighbours(all map[seq.Epoch]*ownership, rec *ownership, high uint64) string {
	sorted := slices.SortedFunc(maps.Keys(all), seq.Epoch.Compare)
	at := slices.Index(sorted, rec.epoch)
	if at > 0 {
		if why := succeeds(all[sorted[at-1]], rec, high); why != "" {
			return why
		}
	}
	if at+1 < len(sorted) {
		next := all[sorted[at+1]]
		return succeeds(rec, next, next.high)
	}
	return ""
}

// succeeds checks that nothing of before can be handed out again: after starts above
// all that was confirmed, or goes on from where before was sealed.
func succeeds(before, after *ownership, high uint64) string {
	switch {
	case after.base >= before.confirmed:
		return ""
	case before.owned:
		return fmt.Sprintf("%s starts at %d and %s, which confirmed %d, is not sealed", after.epoch, after.base, before.epoch, before.confirmed)
	case high < before.high:
		return fmt.Sprintf("%s goes on from %d and %s stood at %d", after.epoch, high, before.epoch, before.high)
	}
	return ""
}

// ended forgets that a process owned anything: it will not hand out a number again.
func (c *checker) ended(h *host, session seq.Session) { c.seen(h, session, nil) }

// ballot is one item of a prepare or step.
type ballot struct {
	register seq.Register
	epoch    seq.Epoch
	max      uint64
}
