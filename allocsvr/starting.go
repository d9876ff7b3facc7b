package allocsvr

import (
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/internal/wire/gate"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// goodbye bounds how long calls at a starting server may take to end when the real server takes the
// listener over. Only a health.Watch takes any time.
const goodbye = 50 * time.Millisecond

// starting answers on the listener until the stores are reached. It refuses every call with the reason why
// nothing is served yet, and grpc.health.v1 answers NOT_SERVING.
type starting struct {
	lis  net.Listener
	srv  *gate.Server
	done chan struct{} // closed when Serve has returned

	mu  sync.Mutex // guards why
	why error
}

// startAnswering serves on the listener until stop, with the configuration of the real server.
func (s *Server) startAnswering() *starting {
	w := &starting{lis: s.lis, done: make(chan struct{})}
	w.missing(s.cfg.Stores)
	w.srv = gate.NewServer(gate.ServerConfig{Logger: s.cfg.Logger, Creds: s.creds, Auth: s.cfg.Guard, Refused: s.cfg.Refused},
		grpc.UnknownServiceHandler(func(any, grpc.ServerStream) error { return w.reason() }))
	h := gate.RegisterHealth(w.srv, pb.Sequence_ServiceDesc.ServiceName, pb.Snowflake_ServiceDesc.ServiceName, pb.Segment_ServiceDesc.ServiceName,
		pb.Admin_ServiceDesc.ServiceName, pb.Peer_ServiceDesc.ServiceName)
	h.SetServingStatus("", gate.Serving(false))
	h.SetServingStatus(rpc.QuorumHealth, gate.Serving(false))
	go func() {
		defer close(w.done)
		_ = w.srv.Serve(borrowed{s.lis}) // if the listener fails, it fails for the real server, too
	}()
	return w
}

// missing records the stores that the start waits for.
func (w *starting) missing(stores []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.why = fmt.Errorf("%w since the start: missing %s", seq.ErrNoQuorum, strings.Join(stores, ", "))
}

func (w *starting) reason() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.why
}

// stop ends the answers. The listener stays open, and connected callers connect again.
func (w *starting) stop() {
	ended := make(chan struct{})
	go func() {
		w.srv.GracefulStop()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(goodbye):
		w.srv.Stop()
		<-ended
	}
	<-w.done
	borrowed{w.lis}.giveBack()
}

// deadliner is a listener, like *net.TCPListener, whose Accept can be ended without closing it.
type deadliner interface{ SetDeadline(time.Time) error }

// borrowed is a listener that outlives its server. Its Close ends Accept and leaves the listener open, for
// connections that come meanwhile.
type borrowed struct{ net.Listener }

// giveBack makes Accept work again for the next server.
func (b borrowed) giveBack() {
	if d, ok := b.Listener.(deadliner); ok {
		_ = d.SetDeadline(time.Time{})
	}
}

// Close implements net.Listener.
func (b borrowed) Close() error {
	if d, ok := b.Listener.(deadliner); ok {
		return d.SetDeadline(time.Unix(1, 0))
	}
	return b.Listener.Close()
}
