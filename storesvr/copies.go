package storesvr

import (
	"context"
	"fmt"
	"time"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr/disk"
)

// readCopies shows whole copies of sections of exact spaces, with the promises, after the
// commit of all that they have by then.
func (r *replica) readCopies(ctx context.Context, req quorum.ReadRequest) (quorum.Reply, error) {
	var results []quorum.Result
	err := r.writer.submit(ctx, &write{
		apply: func(time.Duration, bool, *disk.Update) error {
			if req.Prefix != "" {
				return fmt.Errorf("%w: copies of all registers named %s..., expected a list of sections", seq.ErrBadArgument, req.Prefix)
			}
			return r.core.admit(req.Ref)
		},
		show: func() { results = r.core.copies(req.Registers, r.writer.disk) },
	})
	if err != nil {
		return quorum.Reply{}, fmt.Errorf("read copies: %w", err)
	}
	return quorum.Reply{UUID: r.core.identity.UUID, Results: results}, nil
}

// copies encodes the copies of sections. Only the goroutine that changes copies may call it. The
// encoding takes long, so it runs without c.mu and delays no lease.
func (c *core) copies(registers []seq.Register, db Database) []quorum.Result {
	results := make([]quorum.Result, len(registers))
	c.mu.Lock()
	for i, r := range registers {
		results[i] = c.acceptor.Position(r)
	}
	c.mu.Unlock()
	for i, r := range registers {
		if results[i].Verdict == quorum.VerdictOK {
			id, _ := r.Section()
			results[i].Payload, results[i].Time = db.Copy(id).Borrow().AppendTo(nil), c.wall().UnixMilli()
		}
	}
	return results
}

// copiesStep is the number of encoded copies in memory at a time.
const copiesStep = 64

// withCopies passes states to give, in order. It adds the copies to the states of exact sections.
func (r *replica) withCopies(ctx context.Context, mapping seq.Mapping, states []quorum.RegisterState, give func([]quorum.RegisterState) error) error {
	for len(states) > 0 {
		n, registers := 0, make([]seq.Register, 0, copiesStep)
		for ; n < len(states) && len(registers) < copiesStep; n++ {
			if id, ok := states[n].Register.Section(); ok && mapping.IsExact(id) {
				registers = append(registers, states[n].Register)
			}
		}
		if len(registers) > 0 {
			var results []quorum.Result
			err := r.writer.submit(ctx, &write{
				apply: func(time.Duration, bool, *disk.Update) error { return nil },
				show:  func() { results = r.core.copies(registers, r.writer.disk) },
			})
			if err != nil {
				return fmt.Errorf("dump: %w", err)
			}
			for i, k := 0, 0; k < len(results); i++ {
				if states[i].Register == registers[k] {
					states[i], k = stateOf(registers[k], results[k]), k+1
				}
			}
		}
		if err := give(states[:n]); err != nil {
			return err
		}
		states = states[n:]
	}
	return nil
}

// stateOf is an exact section's state as all pass it on that read whole stores.
func stateOf(r seq.Register, res quorum.Result) quorum.RegisterState {
	st := quorum.RegisterState{Register: r, Promised: res.Promised}
	if res.Index > 0 {
		st.Accepted, st.Payload, st.PayloadMax = res.Accepted, res.Payload, res.Index
	}
	return st
}
