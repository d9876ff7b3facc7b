package gate

import (
	"context"
	"strings"

	"google.golang.org/grpc"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// maxAside bounds the control calls in work at once: the calls by which a cluster lives and is looked at.
const maxAside = 256

// controlAdmission lets these calls in by places of their own: no number of callers takes them, and no
// one peer has more than his share of them.
type controlAdmission struct{ places *Admission }

func newAside() controlAdmission { return controlAdmission{NewAdmission(maxAside * CallCost)} }

// has says whether the method is one of these.
func (controlAdmission) has(method string) bool {
	if method == pb.Store_Renew_FullMethodName {
		return true
	}
	for _, service := range []string{"/" + pb.Peer_ServiceDesc.ServiceName, "/" + pb.Admin_ServiceDesc.ServiceName, "/" + pb.Router_ServiceDesc.ServiceName, "/grpc.health.v1.Health"} {
		if strings.HasPrefix(method, service+"/") {
			return true
		}
	}
	return false
}

func (a controlAdmission) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	if !a.has(info.FullMethod) {
		return next(ctx, req)
	}
	place, err := a.places.Try(ctx, 0)
	if err != nil {
		return nil, err
	}
	defer place.Leave()
	return next(ctx, req)
}
