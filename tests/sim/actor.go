package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/section"
	"github.com/seqsvr/seqsvr/internal/lab/history"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// actor is a session of a scenario that does what it is told, over the real quorum code.
type actor struct {
	s       *stage
	h       *host
	session seq.Session // of secretOf(name)
	group   *quorum.Group
	leases  *quorum.Leases
	holds   map[seq.Register]*quorum.Hold
	stop    context.CancelFunc
}

// actor finds a session by name, or makes it. Names that come later in the alphabet are
// larger sessions.
func (s *stage) actor(name string) (*actor, error) {
	if a := s.actors[name]; a != nil {
		return a, nil
	}
	w := s.w
	w.mu.Lock()
	h := w.hosts.add(callerHost, name, len(w.hosts.all))
	h.boot()
	w.mu.Unlock()
	a := &actor{s: s, h: h, session: secretOf(name).Session(), holds: map[seq.Register]*quorum.Hold{}}
	id := w.ident
	stores := w.net.stores(h, h.life, id.Members)
	var err error
	if a.group, err = quorum.NewGroup(quorum.Config{Ref: id.Ref, N: id.N, R: id.R, W: id.W, Secret: secretOf(name)}, stores); err != nil {
		return nil, err
	}
	a.leases, err = quorum.NewLeases(quorum.LeaseConfig{Ref: id.Ref, Session: a.session, Secret: secretOf(name), Name: name, Addr: name,
		Lease: w.opts.Lease, N: id.N, W: id.W, Clock: h.clock}, stores)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(w.life)
	a.stop = cancel
	w.work.Go(func() { _ = a.leases.Run(ctx) }) // it only ever ends with its context
	s.actors[name] = a
	return a, nil
}

func (a *actor) close() {
	a.stop()
	a.group.Close()
}

func secretOf(name string) (s seq.Secret) {
	copy(s.Seed[:], name)
	return s
}

// epoch is an epoch with the name of its session.
func (s *stage) epoch(e seq.Epoch) string {
	if e.IsZero() {
		return "-"
	}
	for name, a := range s.actors {
		if a.session == e.Session {
			return fmt.Sprintf("%d@%s", e.Round, name)
		}
	}
	s.w.check.mu.Lock()
	defer s.w.check.mu.Unlock()
	return fmt.Sprintf("%d@%s", e.Round, s.w.check.sections.sessions[e.Session])
}

// act plays a command of a session. at= lists the stores that it reaches meanwhile.
func (s *stage) act(c command) (string, error) {
	a, err := s.actor(c.arg(0))
	if err != nil {
		return "", err
	}
	defer s.w.sleep(20 * time.Millisecond) // the slowest store has it as well, then
	defer s.only(a.h.name, c.named["at"])()
	ctx, cancel := context.WithTimeout(s.w.life, 3*time.Second)
	defer cancel()
	reg, round := seq.SectionRegister(seq.SectionID(c.number("section", 0))), c.number("round", 1)
	if c.named["round"] == "above" { // all that it sees, as sections are taken
		round = a.group.Probe(ctx, a.session, []seq.Register{reg})[0].Promised.Round + 1
	}
	switch c.verb {
	case "prepare":
		return s.outcome(a.group.Prepare(ctx, a.session, []quorum.PrepareItem{{Register: reg, Round: round}})[0]), nil
	case "step":
		return s.outcome(a.group.Step(ctx, a.session, []quorum.StepItem{{Register: reg, Round: round, Max: c.number("max", 0)}})[0]), nil
	case "hold":
		a.holds[reg] = a.leases.Attach(reg, round)
		s.w.sleep(50 * time.Millisecond)
	case "release":
		if h := a.holds[reg]; h != nil {
			h.Drop()
		}
		var to seq.Session
		if c.named["to"] != "" {
			to = secretOf(c.named["to"]).Session()
		}
		if err := a.group.Release(ctx, a.session, []quorum.LeaseItem{{Register: reg, Round: round}}, to); err != nil {
			return "", err
		}
		return "released", nil
	}
	switch h := a.holds[reg]; {
	case h == nil || h.Lost():
		return "lost", nil
	case a.h.clock.Now() < h.Until():
		return "leased", nil
	}
	return "not leased", nil
}

// only cuts a host off from all stores but those listed, until the result is called.
func (s *stage) only(name, at string) (restore func()) {
	if at == "" {
		return func() {}
	}
	var cut []link
	for _, h := range s.w.hosts.of(storeHost) {
		if !slices.Contains(strings.Split(at, ","), h.name) {
			cut = append(cut, link{name, h.name})
		}
	}
	change := func(by int) {
		s.w.mu.Lock()
		defer s.w.mu.Unlock()
		for _, l := range cut {
			if s.w.links.cuts[l] += by; s.w.links.cuts[l] <= 0 {
				delete(s.w.links.cuts, l)
			}
		}
	}
	change(1)
	return func() { change(-1) }
}

func (s *stage) outcome(o quorum.Outcome) string {
	text := o.State.String()
	switch o.State {
	case quorum.Won:
		return fmt.Sprintf("%s: highest accepted %s, highest max %d", text, s.epoch(o.Accepted), o.Max)
	case quorum.Refused:
		switch {
		case errors.Is(o.Err, quorum.ErrNack):
			return fmt.Sprintf("%s: promised to %s", text, s.epoch(o.Promised))
		case errors.Is(o.Err, quorum.ErrHeld):
			return text + ": held by another session, or in the grace"
		}
		return text + ": " + o.Err.Error()
	}
	return text
}

// stores shows a section's register on every disk.
func (s *stage) stores(c command) string {
	reg := seq.SectionRegister(seq.SectionID(c.number("section", 0)))
	var b strings.Builder
	for _, h := range s.w.hosts.of(storeHost) {
		if h.blank {
			continue
		}
		st := h.disk.state(reg)
		fmt.Fprintf(&b, "%s promised %s accepted %s max %d\n", h.name, s.epoch(st.Promised), s.epoch(st.Accepted), st.Max)
	}
	return b.String()
}

// nodes shows who owns which section.
func (s *stage) nodes() string {
	var b strings.Builder
	for _, h := range s.w.hosts.of(allocHost) {
		s.w.mu.Lock()
		p, up := h.alloc, h.up
		s.w.mu.Unlock()
		if !up || p == nil {
			fmt.Fprintf(&b, "%s down\n", h.name)
			continue
		}
		views := p.node.Sections()
		if len(views) == 0 {
			fmt.Fprintf(&b, "%s owns nothing\n", h.name)
		}
		for _, v := range views {
			state := "sealed"
			if v.Owned {
				state = "owned, lease over"
			}
			if v.Owned && h.clock.real() < v.Until {
				state = "owned and leased"
			}
			fmt.Fprintf(&b, "%s section %d %s: base %d, high %d, confirmed %d\n", h.name, v.Section, state, v.Base, v.High, v.Confirmed)
		}
	}
	return b.String()
}

// ask plays a command of a caller: at one node, or wherever it can be had.
func (s *stage) ask(c command) (string, error) {
	where := c.arg(0)
	key := history.Key{Space: seq.DefaultSpace, UID: c.number("uid", 1)}
	once := func(ctx context.Context, at string) (string, error) {
		one, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		to := &conn{w: s.w, from: s.caller.h, life: s.caller.h.life, to: at}
		if c.verb == "id" {
			return s.ids(one, to, int(c.number("count", 1)))
		}
		start, floor := s.w.now(), s.w.check.promises.floor(key)
		reply, err := pb.NewSequenceClient(to).Next(one, &pb.NextRequest{Space: key.Space, Id: &pb.NextRequest_Uid{Uid: key.UID}, Count: 1})
		s.caller.took(key, start, floor, reply.GetFirst(), reply.GetLast(), false, err)
		return fmt.Sprint(reply.GetFirst()), err
	}
	if c.verb == "serving" {
		ok := s.patiently(func(context.Context) bool {
			h := s.w.hosts.named(where)
			s.w.mu.Lock()
			p := h.alloc
			s.w.mu.Unlock()
			if p == nil { // it has not found its stores yet
				return false
			}
			views := p.node.Sections()
			return len(views) == s.w.ident.Mapping.Sections() && !slices.ContainsFunc(views, func(v section.View) bool {
				return !v.Owned || h.clock.Now() >= v.Until
			})
		})
		return fmt.Sprint(ok), nil
	}
	if where != "anywhere" {
		text, err := once(s.w.life, where)
		if err != nil {
			return "refused: " + sentinel(err), nil
		}
		return text, nil
	}
	var text string
	ok := s.patiently(func(ctx context.Context) bool {
		for _, h := range s.w.hosts.of(allocHost) {
			var err error
			if text, err = once(ctx, h.name); err == nil {
				return true
			}
		}
		return false
	})
	if !ok {
		return "nobody answers", nil
	}
	return text, nil
}

func (s *stage) ids(ctx context.Context, to *conn, count int) (string, error) {
	if !s.named {
		_, err := pb.NewSnowflakeClient(to).PutNamespace(ctx, &pb.SnowflakePutNamespaceRequest{Name: nodeSpace.name, Layout: nodeSpace.layout})
		if err != nil && !errors.Is(err, seq.ErrConflict) {
			return "", err
		}
		s.named = true
	}
	reply, err := pb.NewSnowflakeClient(to).Generate(ctx, &pb.SnowflakeGenerateRequest{Namespace: nodeSpace.name, Count: uint32(count)})
	if err != nil {
		return "", err
	}
	for _, id := range reply.GetIds() {
		s.w.check.promises.unique(nodeSpace, id, to.to)
	}
	return fmt.Sprintf("%d new IDs", len(reply.GetIds())), nil
}

// sentinel is the name of an error, without its text.
func sentinel(err error) string {
	for _, e := range []error{seq.ErrNotOwner, seq.ErrNoQuorum, seq.ErrNoLease, seq.ErrShuttingDown, context.DeadlineExceeded} {
		if errors.Is(err, e) {
			return e.Error()
		}
	}
	return "no answer"
}
