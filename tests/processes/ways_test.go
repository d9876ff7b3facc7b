package processes

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/seqsvr/seqsvr/internal/localcluster"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// reconnect is how soon a proxy looks for its AllocSvr again: it must not be seen to be slower.
const reconnect = 10 * time.Millisecond

// ways are proxies before AllocSvr, which tell others the proxies' addresses in place of their own. They
// pass calls on as they are, and can be told to do something at a step of a move between Sets.
type ways struct {
	t     *testing.T
	addrs map[string]string // by the name of the AllocSvr
	all   []*grpc.Server

	mu    sync.Mutex // guards all below
	step  string     // "": nothing is to be done
	after bool       // once the node has taken it, and before the answer is passed on; else before
	act   func()
}

func newWays(t *testing.T) *ways {
	w := &ways{t: t, addrs: map[string]string{}}
	t.Cleanup(func() {
		for _, s := range w.all {
			s.Stop()
		}
	})
	return w
}

// wrap has an AllocSvr, of a cluster whose names begin so, tell others the address of a proxy.
func (w *ways) wrap(prefix string) func(name string, argv []string) []string {
	return func(name string, argv []string) []string {
		at := slices.Index(argv, "--listen")
		if !strings.HasPrefix(name, string(localcluster.RoleAlloc)) || at < 0 {
			return argv
		}
		lis, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			w.t.Fatal(err)
		}
		conn, err := grpc.NewClient(argv[at+1], grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.ForceCodec(asIs{})),
			grpc.WithIdleTimeout(0), grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: reconnect, Multiplier: 1, MaxDelay: reconnect}, MinConnectTimeout: attempt}))
		if err != nil {
			w.t.Fatal(err)
		}
		s := grpc.NewServer(grpc.ForceServerCodec(asIs{}), grpc.UnknownServiceHandler(func(_ any, in grpc.ServerStream) error { return w.pass(conn, in) }),
			grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Millisecond, PermitWithoutStream: true}))
		go func() { _ = s.Serve(lis) }()
		w.addrs[prefix+name], w.all = lis.Addr().String(), append(w.all, s)
		return append(slices.Clone(argv), "--advertise", lis.Addr().String())
	}
}

// of are the proxies of a cluster.
func (w *ways) of(prefix string) (list []string) {
	for name, addr := range w.addrs {
		if strings.HasPrefix(name, prefix) {
			list = append(list, addr)
		}
	}
	slices.Sort(list)
	return list
}

// at has act done once, when that step comes by.
func (w *ways) at(step string, after bool, act func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.step, w.after, w.act = step, after, act
}

// waits says whether the step is still to come.
func (w *ways) waits() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.step != ""
}

// meet does what is to be done at the step of a call, before or after it.
func (w *ways) meet(method string, request []byte, after bool) {
	w.mu.Lock()
	act := w.act
	if w.step == "" || w.step != stepOf(method, request) || w.after != after {
		act = nil
	} else {
		w.step = ""
	}
	w.mu.Unlock()
	if act != nil {
		act()
	}
}

// moveSteps are the steps of a move of which a node hears, in their order.
var moveSteps = []string{"begin", "seal", "stop", "open", "finish", "arrive"}

// stepOf is the step of a move that a call is; "": none.
func stepOf(method string, request []byte) string {
	service, name, _ := strings.Cut(strings.TrimPrefix(method, "/"), "/")
	if service != pb.Sets_ServiceDesc.ServiceName {
		return ""
	}
	switch name {
	case "Stop", "Open":
		return strings.ToLower(name)
	case "Step":
		var r pb.SetStepRequest
		if proto.Unmarshal(request, &r) == nil {
			return map[pb.SetOp]string{pb.SetOp_SET_OP_SEAL: "seal", pb.SetOp_SET_OP_FINISH: "finish"}[r.GetOp()]
		}
	case "ChangeMap":
		var r pb.ChangeSetMapRequest
		if proto.Unmarshal(request, &r) == nil && r.GetBegin() != nil {
			return "begin"
		} else if r.GetArrive() != nil {
			return "arrive"
		}
	}
	return ""
}

// pass passes one call on.
func (w *ways) pass(conn *grpc.ClientConn, in grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(in)
	md, _ := metadata.FromIncomingContext(in.Context())
	ctx, cancel := context.WithCancel(metadata.NewOutgoingContext(in.Context(), md.Copy()))
	defer cancel()
	out, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method)
	if err != nil {
		return err
	}
	var mu sync.Mutex // guards request
	var request []byte
	go func() {
		for {
			var message []byte
			if err := in.RecvMsg(&message); err != nil {
				if errors.Is(err, io.EOF) {
					_ = out.CloseSend()
				} else {
					cancel()
				}
				return
			}
			mu.Lock()
			request = message
			mu.Unlock()
			w.meet(method, message, false)
			if out.SendMsg(&message) != nil {
				return // the other way has the reason
			}
		}
	}()
	header, err := out.Header()
	if err == nil {
		err = in.SendHeader(header)
	}
	for err == nil {
		var message []byte
		if err = out.RecvMsg(&message); err == nil {
			mu.Lock()
			asked := request
			mu.Unlock()
			w.meet(method, asked, true)
			err = in.SendMsg(&message)
		}
	}
	in.SetTrailer(out.Trailer())
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// asIs leaves messages as they travel.
type asIs struct{}

func (asIs) Marshal(v any) ([]byte, error) { return *v.(*[]byte), nil }

func (asIs) Unmarshal(data []byte, v any) error {
	*v.(*[]byte) = slices.Clone(data)
	return nil
}

func (asIs) Name() string { return "proto" }
