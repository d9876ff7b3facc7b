package globalid

import (
	"context"
	"errors"
	"fmt"

	"github.com/seqsvr/seqsvr/allocsvr/globalid/namespaces"
	"github.com/seqsvr/seqsvr/allocsvr/globalid/workers"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

// Issue holds the IDs of one call, all of one worker.
type Issue struct {
	*workers.Lease                   // whose they are
	Batches        []snowflake.Batch // count IDs over all
}

// Generate hands out count IDs, 1 to seq.MaxIDs. Errors: seq.ErrBadCount,
// seq.ErrUnknownNamespace, seq.ErrWorkersExhausted, seq.ErrClockOff,
// seq.ErrClockRollback, seq.ErrTimeExhausted, seq.ErrDatacenterTaken, seq.ErrNodeUnfit,
// seq.ErrTickUsedUp (policy), seq.ErrOverloaded, seq.ErrNoQuorum, seq.ErrStoreFull, seq.ErrShuttingDown,
// or ctx's. Safe to retry: a repeated call gets others.
func (s *Service) Generate(ctx context.Context, ref namespaces.Ref, count int) (Issue, error) {
	if err := seq.CheckIDs("count", uint64(count)); err != nil {
		return Issue{}, fmt.Errorf("generate: %w", err)
	}
	ns, err := s.names.Find(ctx, ref)
	if err != nil {
		return Issue{}, fmt.Errorf("generate: %w", err)
	}
	i := s.workers.Of(ns.Name)
	i.Touch()
	for {
		l, err := i.Lease(ctx)
		if err != nil {
			return Issue{}, fmt.Errorf("generate: %w", err)
		}
		batches, err := l.Draw(ctx, count)
		if errors.Is(err, snowflake.ErrSealed) {
			continue
		}
		if err != nil {
			return Issue{}, fmt.Errorf("generate: namespace %q worker %d: %w", ns.Name, l.Worker, err)
		}
		i.Issued.Add(uint64(count))
		return Issue{Lease: l, Batches: batches}, nil
	}
}
