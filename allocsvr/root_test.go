package allocsvr

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/allocsvr/api"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/tests/kit/bubble"
)

// at is a connection to one node of the root.
type at string

func (at) Invoke(context.Context, string, any, any, ...grpc.CallOption) error { return nil }
func (at) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, nil
}
func (at) Close() error { return nil }

// In virtual time: a machine that takes no packets leaves a caller the time to ask another.
func TestANodeOfTheRootThatIsMuteLeavesTimeForTheOthers(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		for _, patience := range []time.Duration{300 * time.Millisecond, time.Minute, 0} {
			ctx, cancel := context.WithCancel(t.Context())
			if patience > 0 {
				ctx, cancel = context.WithTimeout(t.Context(), patience)
			}
			asked := 0
			err := atRoot(ctx, []string{"a", "b", "c"}, func(addr string) (api.PeerConn, error) { return at(addr), nil },
				func(ctx context.Context, _ pb.SetsClient) error {
					if asked++; asked == 3 {
						return ctx.Err()
					}
					<-ctx.Done()
					return context.Cause(ctx)
				})
			if err != nil {
				t.Errorf("with %v to go: %v after %d were asked", patience, err, asked)
			}
			err = atRoot(ctx, []string{"a"}, func(addr string) (api.PeerConn, error) { return at(addr), nil }, func(ctx context.Context, _ pb.SetsClient) error {
				<-ctx.Done()
				return context.Cause(ctx)
			})
			if rpc.CodeOf(err) != pb.ErrorCode_ERROR_CODE_NO_ROUTE {
				t.Errorf("with %v to go, none answers: %v", patience, err)
			}
			cancel()
		}
	})
}
