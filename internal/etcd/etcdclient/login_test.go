package etcdclient

import (
	"context"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestALoginThatTakesLongerThanItsCallersWaitIsSharedAndKept(t *testing.T) {
	slow := make(chan struct{})
	etcd := &tells{status: &pb.StatusResponse{}, refuses: status.Error(codes.Unauthenticated, "etcdserver: invalid auth token"), slow: slow}
	c := dial(t, Config{Endpoints: []string{etcd.listen(t)}, User: "seq", Password: "p"})
	c.token = "old"
	call := func(patience time.Duration) error {
		return c.once(t.Context(), c.ends[0], patience, func(ctx context.Context, e endpoint) error {
			_, err := pb.NewMaintenanceClient(e.conn).Status(ctx, &pb.StatusRequest{})
			return err
		})
	}
	var callers sync.WaitGroup
	for range 5 {
		callers.Go(func() {
			if err := call(time.Second); status.Code(err) != codes.DeadlineExceeded {
				t.Errorf("a call that did not wait: %v, want %v", err, codes.DeadlineExceeded)
			}
		})
	}
	callers.Wait()
	close(slow)
	if err := call(time.Minute); err != nil {
		t.Errorf("after the login: %v", err)
	}
	if got := etcd.logins.Load(); got != 1 {
		t.Errorf("%d logins, want 1", got)
	}
}
