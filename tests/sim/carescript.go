package sim

import (
	"errors"
	"fmt"
	"strings"

	"github.com/seqsvr/seqsvr/internal/ops/storeadmin"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// care plays one command of an operator. The same order given to another one is taken up
// where it was left. stop= kills the operator as that step would begin.
func (s *stage) care(c command) (string, error) {
	h := s.w.hosts.named(c.arg(0))
	if h == nil || h.kind != operatorHost {
		return "", fmt.Errorf("line %d: no operator %q", c.line, c.arg(0))
	}
	key := strings.Join(c.args[1:], " ")
	o := s.orders[key]
	if o == nil {
		o = &order{verb: c.arg(1), host: c.arg(2), force: c.named["force"], copy: int(c.number("copy", 0))}
		s.orders[key] = o
	}
	s.w.mu.Lock()
	o.done = false // the same command once more
	if !h.up {
		h.boot()
	}
	life, ctx := h.life, h.ctx
	s.w.mu.Unlock()
	var b strings.Builder
	stop := c.number("stop", 0)
	err := s.w.ops.tryOrder(ctx, h, life, o, func(n int, name string) {
		if uint64(n) == stop {
			s.w.procs.kill(h, life)
			fmt.Fprintf(&b, "killed before step %d: %s\n", n, name)
		} else {
			fmt.Fprintf(&b, "%d %s\n", n, name)
		}
	})
	switch {
	case err == nil:
		b.WriteString("done\n")
	case ctx.Err() == nil:
		fmt.Fprintf(&b, "not done: %s\n", careSentinel(err))
	}
	return b.String(), nil
}

func careSentinel(err error) string {
	for _, e := range []error{errAgain, storeadmin.ErrUnderWay, storeadmin.ErrAlive, storeadmin.ErrNotNew, seq.ErrConflict, seq.ErrNoQuorum} {
		if errors.Is(err, e) {
			return e.Error()
		}
	}
	return "no answer"
}

// lists shows the member list that each store has on its disk.
func (s *stage) lists() string {
	var b strings.Builder
	for _, h := range s.w.hosts.of(storeHost) {
		id, m := h.disk.meta().Identity, h.disk.meta().Members
		if id.UUID == "" { // no store has been made here
			continue
		}
		l := quorum.MemberList{Version: m.Version, R: m.R, W: m.W, Members: m.List}
		if m.W == 0 {
			l.R, l.W = id.R, id.W
		}
		fmt.Fprintf(&b, "%s era %d list %d:", h.name, id.Era, l.Version)
		for _, member := range l.Members {
			b.WriteString(" " + member.Name)
			if member.Learner {
				b.WriteString(" (learner)")
			}
		}
		fmt.Fprintf(&b, ", N=%d R=%d W=%d\n", l.N(), l.R, l.W)
	}
	return b.String()
}
