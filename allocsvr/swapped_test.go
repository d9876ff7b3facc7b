package allocsvr

import (
	"context"
	"sync/atomic"

	"github.com/seqsvr/seqsvr/allocsvr/ownership"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// swapped are registers that a test may put others in place of while the node runs.
type swapped struct {
	now atomic.Pointer[ownership.Registers]
}

func swappable(r ownership.Registers) *swapped {
	s := &swapped{}
	s.now.Store(&r)
	return s
}

// through puts other registers in place of a node's.
func (n *node) through(r ownership.Registers) { n.probes.Registers.(*swapped).now.Store(&r) }

func (s *swapped) Probe(ctx context.Context, id seq.Session, regs []seq.Register) []quorum.Outcome {
	return (*s.now.Load()).Probe(ctx, id, regs)
}

func (s *swapped) Prepare(ctx context.Context, id seq.Session, items []quorum.PrepareItem) []quorum.Outcome {
	return (*s.now.Load()).Prepare(ctx, id, items)
}

func (s *swapped) Step(ctx context.Context, id seq.Session, items []quorum.StepItem) []quorum.Outcome {
	return (*s.now.Load()).Step(ctx, id, items)
}

func (s *swapped) Release(ctx context.Context, id seq.Session, items []quorum.LeaseItem, to seq.Session) error {
	return (*s.now.Load()).Release(ctx, id, items, to)
}

func (s *swapped) Copies(ctx context.Context, id seq.Session, regs []seq.Register, rounds []uint64) []quorum.Outcome {
	return (*s.now.Load()).Copies(ctx, id, regs, rounds)
}

func (s *swapped) EndSession(ctx context.Context, id seq.Secret) error {
	return (*s.now.Load()).EndSession(ctx, id)
}
