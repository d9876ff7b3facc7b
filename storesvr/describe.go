package storesvr

import (
	"slices"
	"time"

	"github.com/seqsvr/seqsvr/internal/base/version"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/quorum"
)

// description is an identity with what only operators read.
type description struct {
	quorum.Identity
	registers  int
	free       uint64
	nearlyFull bool
	kept       time.Duration // until the store's clock is at the floor of worker ids
	uptime     time.Duration
	wall       time.Time
	keptOut    []*pb.KeptOut // nodes that were refused for their protocol
}

// describe works in every state of the store.
func (r *replica) describe() description {
	c := r.core
	full := r.writer.full(nil)
	free, err := r.writer.disk.Free()
	if err != nil {
		free = 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.clock.Now()
	voting, state := c.state()
	n, rq, w := c.members.quorums()
	nonce := uint64(0)
	if would, _ := c.standing(); would && !voting {
		nonce = c.witness.nonce
	}
	return description{
		Identity: quorum.Identity{
			UUID: c.identity.UUID, Name: c.identity.Name, BootCount: c.witness.boots, Start: c.witness.nonce, Ref: c.members.ref(),
			N: n, R: rq, W: w, Mapping: c.mapping,
			Members: slices.Clone(c.members.List), Pending: c.members.Pending, Voting: voting, State: state,
			MaxLease: c.maxLease, Grace: c.acceptor.Grace(now), Commits: c.witness.commits(),
			LeaseBound: c.acceptor.LeaseBound(), ListAge: now - c.members.since, Filled: c.members.Filled,
			Nonce: nonce, Remembered: c.witness.recollection(),
			Floors: c.acceptor.Floors(), Zone: c.zone, Incarnation: c.members.life, Protocol: version.Protocol, Required: c.gate.required,
		},
		wall:       c.wall(),
		keptOut:    c.gate.keptOut(now),
		registers:  c.acceptor.Registers(),
		free:       free,
		nearlyFull: full,
		kept:       keptBack(c.acceptor.Floors(), c.wall()),
		uptime:     now - r.started,
	}
}
