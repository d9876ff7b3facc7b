package storeclient

import (
	"context"
	"sync"

	"github.com/seqsvr/seqsvr/quorum"
)

// vouch tells the stores that have just started and do not vote yet what their fellows
// remember of them. The fellows are asked anew: what they remembered before a store told
// the nonce of its start may be older than the disk that it had.
func vouch(ctx context.Context, stores []*candidate) {
	var waiting []*candidate
	for _, s := range answered(stores) {
		if s.id.Nonce != 0 && s.bound() {
			waiting = append(waiting, s)
		}
	}
	if len(waiting) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, describeTime)
	defer cancel()
	claims := make(map[string][]quorum.Claim) // by the uuid that they are about
	var mu sync.Mutex                         // guards claims
	var wg sync.WaitGroup
	for _, s := range answered(stores) {
		wg.Go(func() {
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
	}
	wg.Wait()
	for _, s := range waiting {
		wg.Go(func() {
			id, err := s.client.Vouch(ctx, s.id.Ref.Cluster, s.id.Nonce, claims[s.id.UUID])
			if err == nil {
				s.id = id
			}
		})
	}
	wg.Wait()
}
