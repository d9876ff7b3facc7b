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

// tellBound is the time that one node has to answer that it uses a change.
const tellBound = time.Second

// reread reads the documents of tags and namespaces again, and uses them.
func (n *Node) reread(ctx context.Context) error {
	return errors.Join(n.tags.Refresh(ctx), n.ids.Refresh(ctx))
}

// tell returns a function that makes the node of another session use a change. It returns within for a node
// of an older build, which cannot be told but reads the change within that time.
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
