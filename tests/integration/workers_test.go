package integration

import (
	"context"
	"errors"
	"net"
	"testing"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// The callers of a router without a certificate are told apart by the address that it saw.
func TestOneCallerOfARouterLeavesWorkerIDsForTheOthers(t *testing.T) {
	c := start(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	from := func(host string) pb.SnowflakeClient {
		dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(host)}}
		if probe, err := dialer.DialContext(ctx, "tcp", c.router.Addr()); err != nil {
			t.Skipf("no address %s here: %v", host, err)
		} else {
			_ = probe.Close()
		}
		conn, err := rpc.Dial(c.router.Addr(), grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
			return dialer.DialContext(ctx, "tcp", addr)
		}))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return pb.NewSnowflakeClient(conn)
	}
	greedy, polite := from("127.0.0.2"), from("127.0.0.3")
	if _, err := greedy.PutNamespace(ctx, &pb.SnowflakePutNamespaceRequest{Name: "s", Layout: "time:40,worker:5,sequence:1;unit=1s;epoch=1700000000000;overflow=borrow;rollback=borrow"}); err != nil {
		t.Fatal(err)
	}
	ask := func(as pb.SnowflakeClient) error {
		_, err := as.Delegate(ctx, &pb.SnowflakeDelegateRequest{Namespace: "s"})
		return err
	}
	got, refused := 0, 0
	for refused < 8 { // at both nodes
		switch err := ask(greedy); {
		case err == nil:
			got++
		case errors.Is(err, seq.ErrQuota):
			refused++
		default:
			t.Fatal(err)
		}
	}
	if got < 10 || got > 18 {
		t.Errorf("one address got %d of 32", got)
	}
	if err := ask(polite); err != nil {
		t.Errorf("another address behind the same router: %v", err)
	}
}
