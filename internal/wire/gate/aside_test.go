package gate

import (
	"context"
	"errors"
	"testing"

	"google.golang.org/grpc"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

func TestCallsByWhichAClusterLivesHavePlacesOfTheirOwn(t *testing.T) {
	a := newAside()
	end, busy := make(chan struct{}), make(chan struct{})
	call := func(who, method string, do grpc.UnaryHandler) error {
		_, err := a.unary(WithCaller(t.Context(), who), nil, &grpc.UnaryServerInfo{FullMethod: method}, do)
		return err
	}
	const most = maxAside - maxAside/8 // of one peer, alone
	done := make(chan error, most)
	for range most {
		go func() {
			done <- call("greedy", pb.Admin_Status_FullMethodName, func(context.Context, any) (any, error) {
				busy <- struct{}{}
				<-end
				return nil, nil
			})
		}()
	}
	for range most {
		<-busy
	}
	none := func(context.Context, any) (any, error) { return nil, nil }
	for _, method := range []string{pb.Admin_Leases_FullMethodName, pb.Peer_Offer_FullMethodName, pb.Store_Renew_FullMethodName, pb.Router_Status_FullMethodName, "/grpc.health.v1.Health/Check"} {
		if err := call("greedy", method, none); !errors.Is(err, seq.ErrOverloaded) {
			t.Errorf("%s of one who has his share: got %v, want %v", method, err, seq.ErrOverloaded)
		}
		if err := call("polite", method, none); err != nil {
			t.Errorf("%s of another one: %v", method, err)
		}
	}
	for _, method := range []string{pb.Sequence_Next_FullMethodName, pb.Store_Step_FullMethodName} {
		if err := call("greedy", method, none); err != nil {
			t.Errorf("%s takes none of these places: %v", method, err)
		}
	}
	close(end)
	for range most {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
