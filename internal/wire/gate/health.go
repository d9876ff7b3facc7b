package gate

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

// namedHealth answers for the names of services, which balancers and probes ask for, as for
// the empty name where no other status was set.
type namedHealth struct {
	*health.Server
	services map[string]bool
}

func newNamedHealth(h *health.Server, srv *Server, more []string) namedHealth {
	n := namedHealth{h, map[string]bool{}}
	for name := range srv.GetServiceInfo() {
		n.services[name] = true
	}
	for _, name := range append(more, healthpb.Health_ServiceDesc.ServiceName) {
		n.services[name] = true
	}
	return n
}

// meant is the name under which the status is kept.
func (n namedHealth) meant(ctx context.Context, service string) string {
	if !n.services[service] {
		return service
	}
	if _, err := n.Server.Check(ctx, &healthpb.HealthCheckRequest{Service: service}); status.Code(err) == codes.NotFound {
		return ""
	}
	return service
}

// Check implements healthpb.HealthServer.
func (n namedHealth) Check(ctx context.Context, r *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	return n.Server.Check(ctx, &healthpb.HealthCheckRequest{Service: n.meant(ctx, r.GetService())})
}

// Watch implements healthpb.HealthServer.
func (n namedHealth) Watch(r *healthpb.HealthCheckRequest, stream healthpb.Health_WatchServer) error {
	return n.Server.Watch(&healthpb.HealthCheckRequest{Service: n.meant(stream.Context(), r.GetService())}, stream)
}
