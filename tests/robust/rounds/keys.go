package rounds

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/lab"
	"github.com/seqsvr/seqsvr/internal/lab/history"
	"github.com/seqsvr/seqsvr/seq"
)

// Callers use so many string keys. The history has each as a counter, whatever UID it is hashed to.
const stringKeys = 200

func stringKey(ctx context.Context, j lab.Job) {
	key, began := fmt.Sprint("room:", j.Random%stringKeys), j.Clock.Now()
	r, err := j.Client.Take(ctx, client.StringKey("", key), 1+uint32(j.Random>>8%4))
	j.Record(history.Key{Space: "key " + key}, began, r, err)
}

// rehash changes the hash of string keys, and restarts the allocators one after the other, as docs/security.md
// says. One of them is killed in place of that.
func (s *Site) rehash(ctx context.Context, sc *lab.Scene) error {
	hash := []seq.KeyHash{seq.SHA256Keys, seq.SecretKeys}[sc.Random.IntN(2)]
	err := s.until(ctx, "the keys are rehashed", func(ctx context.Context) error {
		_, err := s.command(ctx, "seqctl", "space", "rehash", seq.DefaultSpace, "--key-hash", string(hash), "--addr", s.Addrs(alloc)[0])
		return err
	})
	if err != nil {
		return err
	}
	sc.Note("string keys by %s", hash)
	allocs := s.Own.Processes(alloc)
	killed := sc.Random.IntN(len(allocs))
	for i, p := range allocs {
		if i == killed {
			sc.Note("%s killed", p.Name)
			err = errors.Join(p.Kill(), p.Start())
		} else {
			err = p.Restart(ctx)
		}
		if err = errors.Join(err, s.Recovered(ctx)); err != nil || ctx.Err() != nil {
			break
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return errors.Join(err, s.until(ctx, "all allocators hash as the stores say", func(ctx context.Context) error {
		list, err := s.command(ctx, "seqctl", "space", "list", "-o", "json", "--addr", s.Addrs(alloc)[0])
		if err != nil {
			return err
		}
		var rows []struct {
			Space           string
			KeyHash         seq.KeyHash `json:"key_hash"`
			Version, Latest uint64
		}
		err = json.Unmarshal([]byte(list), &rows)
		current := 0
		for _, r := range rows {
			if r.Space == seq.DefaultSpace && r.KeyHash == hash && r.Version == r.Latest {
				current++
			}
		}
		if err == nil && current < len(allocs) {
			err = fmt.Errorf("%w: %s", errNotYet, list)
		}
		return err
	}))
}
