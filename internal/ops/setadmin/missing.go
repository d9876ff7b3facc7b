package setadmin

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
)

// ErrSetMissing: the map of a root that was restored lacks a Set, which has sections perhaps. Add it
// again before the root is settled.
var ErrSetMissing = fmt.Errorf("%w: the map of the root lacks a Set", seq.ErrConflict)

// missing is ErrSetMissing if a Set has heard of another one that is not in the root's map, or has
// sent sections to it.
func (s *Settlement) missing(ctx context.Context) error {
	for _, one := range s.m.Sets {
		r := s.records[one.Name]
		places := []sets.Place{r.Rest}
		for _, run := range r.Runs {
			places = append(places, run.Place)
		}
		for _, p := range places {
			if _, err := s.m.Set(p.To); p.To != "" && err != nil {
				return fmt.Errorf("%w: Set %s, of which Set %s says that sections are %v: seqctl set add it again", ErrSetMissing, p.To, one.Name, p)
			}
		}
	}
	for _, one := range s.m.Sets[1:] {
		heard, err := s.all[one.Name].heard(ctx)
		if err != nil {
			return err
		}
		for _, other := range heard {
			known := slices.ContainsFunc(s.m.Sets, func(k sets.Set) bool { return k.Name == other.Name && k.Cluster == other.Cluster })
			if !known {
				return fmt.Errorf("%w: Set %s in cluster %q at %v, of which Set %s has heard: seqctl set add it again", ErrSetMissing, other.Name, other.Cluster, other.Addrs, one.Name)
			}
		}
	}
	return nil
}

// heard returns the Sets that nodes of this one have heard of. Each node that answers is asked: one may
// know an older map.
func (s *Set) heard(ctx context.Context) (out []sets.Set, err error) {
	if _, err := s.Table(ctx); err != nil { // knows all its nodes
		return nil, err
	}
	var mu sync.Mutex // guards out
	err = s.all(ctx, func(ctx context.Context, conn grpc.ClientConnInterface) error {
		reply, err := pb.NewSetsClient(conn).Map(ctx, &pb.SetMapRequest{})
		if err != nil {
			return err
		}
		m, err := rpc.SetMapFromProto(reply.GetSets())
		mu.Lock()
		defer mu.Unlock()
		out = append(out, m.Sets...)
		return err
	})
	return out, err
}
