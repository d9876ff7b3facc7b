package allocsvr

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seqsvr/seqsvr/seq"
)

// tellBound is for one node to answer that it goes by a change.
const tellBound = time.Second

// reread has this node go by the documents of tags and namespaces as they are after the call.
func (n *Node) reread(ctx context.Context) error {
	return errors.Join(n.tags.Refresh(ctx), n.ids.Refresh(ctx))
}

// tell returns a function that has the node of another session go by a change. A node of a build of before
// cannot be told: it goes by it within that time, which the function then returns.
func (n *Node) tell(within time.Duration) func(context.Context, seq.Session) (time.Duration, error) {
	return func(ctx context.Context, session seq.Session) (time.Duration, error) {
		for _, v := range n.leases.Sessions() {
			if v.Session != session || v.Dead {
				continue
			}
			asking, cancel := context.WithTimeout(ctx, tellBound)
			defer cancel()
			err := n.peers.Refresh(asking, v.Addr, session)
			if status.Code(err) == codes.Unimplemented {
				return within, nil
			}
			if err != nil {
				return 0, fmt.Errorf("node %s: %w", v.Name, err)
			}
			return 0, nil
		}
		return 0, fmt.Errorf("%w: session %v is not known here to live", seq.ErrNoRoute, session)
	}
}
