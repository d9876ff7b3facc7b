package storeclient

import (
	"context"
	"slices"
	"sync"

	"github.com/seqsvr/seqsvr/quorum"
)

// vouch tells the stores that have just started and do not vote yet what their fellows remember of them. It
// asks the fellows again, because an earlier memory may be older than the disk that the store had then.
func vouch(ctx context.Context, stores []*candidate) {
	waiting := slices.DeleteFunc(answered(stores), func(s *candidate) bool { return s.id.Nonce == 0 || !s.bound() })
	if len(waiting) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, describeTime)
	defer cancel()
	claims := make(map[string][]quorum.Claim) // by the uuid that they are about
	var mu sync.Mutex                         // guards claims
	each(ctx, answered(stores), func(ctx context.Context, s *candidate) {
		id, err := s.client.Describe(ctx)
		if err != nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		for _, c := range id.Remembered {
			claims[c.Store] = append(claims[c.Store], c)
		}
	})
	each(ctx, waiting, func(ctx context.Context, s *candidate) {
		if id, err := s.client.Vouch(ctx, s.id.Ref.Cluster, s.id.Nonce, claims[s.id.UUID]); err == nil {
			s.id = id
		}
	})
}
