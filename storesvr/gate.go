package storesvr

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/seqsvr/seqsvr/internal/base/version"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr/acceptor"
	"github.com/seqsvr/seqsvr/storesvr/disk"
)

// requirement is the protocol that the cluster requires of sessions, and what the sessions speak. A
// build that does not know a feature would undo it, so it gets no lease and no promise.
// core.mu guards it.
type requirement struct {
	required int                 // as committed; it never falls
	coming   int                 // being committed: sessions are held to it already
	spoken   map[seq.Session]int // of sessions that renewed since the start and said so
	refused  map[string]refused  // by node
}

type refused struct {
	protocol int
	at       time.Duration
}

// keptOutFor is the time for which a store reports a node that it refused.
const keptOutFor = 2 * time.Minute

func newRequirement(meta disk.Meta) requirement {
	return requirement{required: meta.Required, spoken: map[seq.Session]int{}, refused: map[string]refused{}}
}

// fits returns seq.ErrProtocol for a session whose protocol is older than the required one.
// Requests that name none are let in: builds of this module always do. The caller holds mu.
func (c *core) fits(ctx context.Context, session seq.Session, node string) error {
	need := max(c.gate.required, c.gate.coming)
	if need == 0 {
		return nil
	}
	own, said := rpc.CallerProtocol(ctx)
	if !said || own >= need {
		return nil
	}
	who := fmt.Sprintf("node %q", node)
	if node == "" { // such sessions may be many
		who = "a session that names no node"
	}
	now := c.clock.Now()
	if last, there := c.gate.refused[who]; !there || now-last.at > keptOutFor {
		c.log.Warn("a session is refused: its protocol is older than the cluster requires", "by", who, "speaks", own, "required", need)
	}
	c.gate.refused[who] = refused{own, now}
	maps.DeleteFunc(c.gate.refused, func(_ string, r refused) bool { return now-r.at > keptOutFor })
	return fmt.Errorf("store %s: %w: %s speaks %d, cluster %q requires %d: upgrade the node (session %s)", c.identity.Name, seq.ErrProtocol, who, own, c.identity.Cluster, need, session)
}

// renewed notes what the session speaks, adds it to the sessions that the store tells of, and
// forgets the others. The caller holds core.mu.
func (g *requirement) renewed(ctx context.Context, session seq.Session, live []quorum.SessionInfo) {
	if own, said := rpc.CallerProtocol(ctx); said {
		g.spoken[session] = own
	}
	for i := range live {
		live[i].Protocol = g.spoken[live[i].Session]
	}
	if len(g.spoken) > 2*len(live) {
		maps.DeleteFunc(g.spoken, func(s seq.Session, _ int) bool {
			return !slices.ContainsFunc(live, func(l quorum.SessionInfo) bool { return l.Session == s })
		})
	}
}

// ofBefore reports whether a session that has renewed answers by its lease in strict spaces. Builds of this
// module always say what they speak.
func (g *requirement) ofBefore(session seq.Session) bool {
	own, said := g.spoken[session]
	return said && own < version.Preempted
}

// keptOut lists the nodes that were refused lately.
func (g *requirement) keptOut(now time.Duration) (out []*pb.KeptOut) {
	for _, who := range slices.Sorted(maps.Keys(g.refused)) {
		if r := g.refused[who]; now-r.at <= keptOutFor {
			out = append(out, &pb.KeptOut{Name: who, Protocol: uint32(r.protocol), AgoUs: uint64((now - r.at).Microseconds())})
		}
	}
	return out
}

// require raises the required protocol. With check nothing is changed. Unless it was decided,
// a live session that is older, or may be, refuses it: the session would go on serving until
// its lease ends. Durable when it returns nil. Errors: seq.ErrForeignCluster,
// seq.ErrStaleEra, seq.ErrProtocol, seq.ErrOverloaded in the grace after the start,
// seq.ErrStoreFull.
func (r *replica) require(ctx context.Context, cluster string, era seq.Era, protocol int, check, decided bool) error {
	c, raised := r.core, false
	err := r.writer.submit(ctx, &write{
		apply: func(now time.Duration, full bool, u *disk.Update) error {
			if err := c.members.sameCluster(cluster, era); err != nil {
				return err
			}
			if protocol <= max(c.gate.required, c.gate.coming) {
				return nil
			}
			if protocol > version.Protocol {
				return fmt.Errorf("%w: this store speaks %d, %d is to be required: upgrade the store", seq.ErrProtocol, version.Protocol, protocol)
			}
			if !decided {
				if err := c.allFit(protocol, now); err != nil {
					return err
				}
			}
			switch {
			case check:
				return nil
			case full:
				return seq.ErrStoreFull
			}
			u.Required, c.gate.coming, raised = protocol, protocol, true
			return nil
		},
		committed: func() {
			if raised {
				c.log.Info("sessions must speak a protocol from now on", "required", protocol)
			}
		},
	})
	if err != nil {
		return fmt.Errorf("require protocol %d at store %s: %w", protocol, c.identity.Name, err)
	}
	return nil
}

// using raises the required protocol to what the features need that the update begins to use: a
// node of a build of before, which raises nothing, may be at work.
func (g *requirement) using(u *disk.Update) {
	used := u.Required
	if u.Mapping != nil {
		_, needs := version.OfMapping(*u.Mapping)
		used = max(used, needs)
	}
	if slices.ContainsFunc(u.Changes, func(ch acceptor.Change) bool { return ch.Register == seq.RecordRegister && ch.State.Max > 0 }) {
		used = max(used, version.SetsBefore)
	}
	if used > max(g.required, g.coming) {
		u.Required, g.coming = used, used
	}
}

// allFit returns an error if a live session speaks an older protocol, or may. The caller
// holds mu.
func (c *core) allFit(protocol int, now time.Duration) error {
	if left := c.acceptor.Grace(now); left > 0 {
		return fmt.Errorf("%w: it has just started, and knows in %v which sessions live", seq.ErrOverloaded, left)
	}
	for _, s := range c.acceptor.Live(now) {
		if own, said := c.gate.spoken[s.Session]; said && own < protocol {
			return fmt.Errorf("%w: node %q at %s speaks %d, %d is to be required: upgrade the node first", seq.ErrProtocol, s.Name, s.Addr, own, protocol)
		}
	}
	return nil
}

// requireUsed raises the required protocol of a store at its start to what the features need
// that the cluster uses already: builds of before wrote no such number.
func requireUsed(cfg Config, db Database, meta *disk.Meta, registers map[seq.Register]acceptor.State) error {
	_, used := version.OfMapping(meta.Mapping)
	if registers[seq.RecordRegister].Max > 0 {
		used = max(used, version.SetsBefore)
	}
	if used <= meta.Required {
		return nil
	}
	commits, err := db.Commit(disk.Update{Required: used})
	if err != nil {
		return fmt.Errorf("%w: required protocol: %w", ErrCommit, err)
	}
	cfg.Logger.Info("the cluster uses what older builds do not know: sessions must speak a protocol", "store", meta.Name, "required", used)
	meta.Required, meta.Commits = used, commits
	return nil
}
