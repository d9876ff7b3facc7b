package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/lab/history"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// nameSpace is the space of string keys in the history. The keys belong to the default space, and the
// number that the history keeps as UID is a part of their name.
const nameSpace = "names"

// namesPerRun is the number of string keys that callers use.
const namesPerRun = 4

func nameOf(key history.Key) string { return fmt.Sprintf("name-%d", key.UID) }

// callerKey returns the key of a request: of a UID, or of a string key if name is not empty.
func callerKey(space string, uid uint64, name string) history.Key {
	if name == "" {
		return history.Key{Space: space, UID: uid}
	}
	key := history.Key{Space: nameSpace}
	_, _ = fmt.Sscanf(name, "name-%d", &key.UID)
	return key
}

// lateSpace is a space that is not there from the start: a caller that misses it adds it, and adds
// it once more where a restored cluster does not know it.
const lateSpace = "late"

// late returns the space as callers add it.
func late() seq.Space { return seq.Space{Name: lateSpace, Sections: 2, Step: 20} }

// addLate adds the space if that is what a call missed. It returns the error of the call.
func (c *caller) addLate(ctx context.Context, key history.Key, err error) error {
	if key.Space != lateSpace || !errors.Is(err, seq.ErrUnknownSpace) {
		return err
	}
	space := late()
	added := c.try(ctx, history.Key{Space: "admin"}, func(ctx context.Context, at *conn) error {
		_, err := pb.NewAdminClient(at).AddSpace(ctx, &pb.AddSpaceRequest{Space: rpc.SpaceToProto(&space)})
		return err
	})
	return errors.Join(err, added)
}

// place returns the space of a key and its section.
func (w *world) place(key history.Key) (*seq.Space, seq.SectionID, error) {
	if key.Space == nameSpace {
		s, err := w.whole.Space("")
		if err != nil {
			return nil, 0, err
		}
		return s, s.SectionOf(seq.HashKey(nameOf(key))), nil
	}
	s, err := w.whole.Space(key.Space)
	if err != nil {
		return nil, 0, err
	}
	return s, s.SectionOf(seq.UID(key.UID)), nil
}

// batchOf asks for one key.
func batchOf(key history.Key) *pb.Batch {
	if key.Space == nameSpace {
		return &pb.Batch{Keys: []string{nameOf(key)}}
	}
	return &pb.Batch{Space: key.Space, Uids: []uint64{key.UID}}
}

func nextOf(key history.Key, count uint32) *pb.NextRequest {
	if key.Space == nameSpace {
		return &pb.NextRequest{Id: &pb.NextRequest_Key{Key: nameOf(key)}, Count: count}
	}
	return &pb.NextRequest{Space: key.Space, Id: &pb.NextRequest_Uid{Uid: key.UID}, Count: count}
}

func raiseOf(key history.Key, floor uint64) *pb.RaiseRequest {
	if key.Space == nameSpace {
		return &pb.RaiseRequest{Id: &pb.RaiseRequest_Key{Key: nameOf(key)}, AtLeast: floor}
	}
	return &pb.RaiseRequest{Space: key.Space, Id: &pb.RaiseRequest_Uid{Uid: key.UID}, AtLeast: floor}
}

// spaceKey is the key as the SDK has it.
func spaceKey(key history.Key) client.Key {
	if key.Space == nameSpace {
		return client.StringKey("", nameOf(key))
	}
	return client.Key{Space: key.Space, UID: seq.UID(key.UID)}
}

// injectRehash has the string keys of the default space hashed under a new secret. Each node goes
// by it from its next start on.
func injectRehash(w *world, _ Fault) {
	w.work.Go(func() {
		w.faults.admin(func(ctx context.Context, c pb.AdminClient) error {
			_, err := c.Rehash(ctx, &pb.RehashRequest{})
			return err
		})
	})
}

// extras are faults with a random source of their own, so that older seeds keep their faults: string keys
// that are hashed again, and in runs with operators the wall clock of one store.
func extras(o Options) (out []Fault) {
	if o.Torn {
		out = outages(o)
	}
	out = append(out, suspicions(o)...)
	rng := rand.New(rand.NewPCG(o.Seed, 0xe87a))
	for at := o.Calm; at < o.Length; at += time.Duration(20+rng.IntN(100)) * time.Second {
		if o.Rehash {
			out = append(out, Fault{At: at + time.Second, Verb: "rehash"})
		}
		if o.Care && o.StoreClock {
			out = append(out, Fault{At: at + 2*time.Second, Verb: "jump", Host: storeName(0), Arg: float64(rng.IntN(7200) - 3600)})
		}
	}
	return out
}
