package sim

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/seqsvr/seqsvr/allocsvr/section"
	"github.com/seqsvr/seqsvr/internal/lab/history"
	"github.com/seqsvr/seqsvr/internal/wire/storewire"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr/acceptor"
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
// test: what leaves a process is checked here; sections, eras and promises keep what more
// than one answer is needed for.
type checker struct {
	w        *world
	sections *sections
	eras     *eras
	promises *promises // of the whole run
	onces    *onces    // likewise: exact spaces are the root's
	places   *places   // of the whole run
	shelf    *shelf    // likewise
	*findings
}

// findings are the violations of a run.
type findings struct {
	failed chan struct{} // closed at the first violation
	mu     sync.Mutex    // guards found
	found  []Violation
}

func newChecker(w *world) *checker {
	c := &checker{findings: &findings{failed: make(chan struct{})},
		promises: &promises{w: w, ids: map[idKey]string{}, floors: map[history.Key]uint64{}, stretches: map[seq.Register][]stretch{}},
		onces:    &onces{w: w, all: map[history.Key][]*once{}, raised: map[history.Key][]uint64{}},
		shelf:    &shelf{w: w, keys: map[history.Key]*rows{}},
		places:   &places{w: w, records: map[*world]decided{}, newest: map[*world]decided{}, votes: map[vote]map[*host]bool{}}}
	return c.of(w)
}

// of is the checker of another cluster of the run.
func (c *checker) of(w *world) *checker {
	out := *c
	out.w = w
	out.sections = &sections{w: w, sessions: map[seq.Session]string{}, epochs: map[seq.SectionID]map[seq.Epoch]*ownership{}, last: map[seq.Session][]*ownership{}, past: map[seq.SectionID]uint64{}}
	out.eras = &eras{w: w, now: 1, lists: map[seq.Era]quorum.MemberList{}, issued: map[seq.Register]uint64{}, used: map[seq.Register]uint64{}, homes: map[string]*host{}}
	return &out
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
	case *pb.DescribeReply:
		if reply.GetVoting() {
			h.w.check.eras.bound(h, h.disk.meta().Members)
		}
	case *pb.NextReply:
		req := msg.(*pb.NextRequest)
		key := callerKey(req.GetSpace(), req.GetUid(), req.GetKey())
		c.kept(h, key, reply.GetLast())
		c.leased(h, key)
	case *pb.OpenReply:
		key := history.Key{Space: msg.(*pb.OpenRequest).GetSpace(), UID: msg.(*pb.OpenRequest).GetUid()}
		c.kept(h, key, reply.GetLast())
		c.leased(h, key)
	case *pb.RaiseReply:
		req := msg.(*pb.RaiseRequest)
		c.kept(h, callerKey(req.GetSpace(), req.GetUid(), req.GetKey()), reply.GetValue())
	case *pb.SegmentTakeReply:
		c.w.back.kept(h, seq.TagRegister(msg.(*pb.SegmentTakeRequest).GetTag()), reply.GetLast())
	case *pb.SnowflakeGenerateReply:
		c.made(h, reply)
	case *pb.SnowflakeDelegateReply:
		c.w.back.kept(h, lentSpace.register(reply.GetWorkerId()), reply.GetConfirmedUnixMs())
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
			key := history.Key{Space: b.GetSpace()}
			if uids := b.GetUids(); k < len(uids) {
				key.UID = uids[k]
			} else {
				key = callerKey("", 0, b.GetKeys()[k-len(uids)])
			}
			c.kept(h, key, last)
			if len(req.GetBatches()) == 1 && len(b.GetUids())+len(b.GetKeys()) == 1 {
				c.leased(h, key)
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
		c.w.back.kept(h, s.register(s.workerOf(id)), s.markOf(id))
		c.promises.alone(s, id, p)
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

// kept checks that a number of a key is on the disks that it must be on before it is told.
func (c *checker) kept(h *host, key history.Key, number uint64) {
	uid := key.UID
	if key.Space != exactSpace {
		c.w.back.kept(h, c.w.register(key), number)
		return
	}
	have := 0
	for _, s := range c.w.hosts.of(storeHost) {
		if s.disk.hadLast(seq.UID(uid), number) {
			have++
		}
	}
	if have < c.w.ident.W && !c.w.opts.Care {
		c.broken("X1", "%s hands out %d of uid %d, which is on %d disks, %d needed", h.name, number, uid, have, c.w.ident.W)
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
	if h.disk.distrusted() && c.w.procs.lives(h, life) {
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
		if (st.Promised.Less(e.epoch) || name == "step" && st.Max < e.max) && c.w.procs.lives(h, life) {
			c.broken("D", "%s says yes to %s of %s under %s and has promised %s, max %d on disk", h.name, name, e.register, e.epoch, st.Promised, st.Max)
		}
	}
}

// ballot is one item of a prepare or step.
type ballot struct {
	register seq.Register
	epoch    seq.Epoch
	max      uint64
}

// leased checks the rule SERVE: a number is taken under a lease that has not ended. No
// time passes between the taking and the answer, unless the answer waits for the stores, as
// it does in a strict space.
func (c *checker) leased(h *host, key history.Key) {
	s, id, err := c.w.place(key)
	if err != nil || s.Mode == seq.Strict || s.Mode == seq.UniqueOnly || s.Mode == seq.Exact {
		return
	}
	c.w.mu.Lock()
	p, up := h.alloc, h.up
	c.w.mu.Unlock()
	if !up || p == nil {
		return
	}
	now := h.clock.Now()
	for _, v := range p.node.Sections() {
		if v.Section == id {
			c.within(h, v, now)
		}
	}
}

// within checks that a section that answers now is leased. One without any lease was lost
// in this moment.
func (c *checker) within(h *host, v section.View, now time.Duration) {
	if v.Owned && v.Until > 0 && now >= v.Until {
		c.broken("lease", "%s answers with a number of section %d under %s, %v after the end of its lease", h.name, v.Section, v.Epoch, now-v.Until)
	}
}

// tells checks that a session tells a store what it has seen of its disk, by which an old
// disk is found out.
func (c *checker) tells(k *call, req *pb.RenewRequest, reply *pb.RenewReply) {
	told := uint64(0)
	for _, claim := range req.GetSeen() {
		told = max(told, claim.GetCommits())
	}
	if known := k.seen[saw{reply.GetStoreUuid(), req.GetRef().GetMembersVersion()}]; told < known {
		c.broken("D", "%s has seen %d transactions of %s and tells it of %d", k.from.name, known, k.to.name, told)
	}
}
