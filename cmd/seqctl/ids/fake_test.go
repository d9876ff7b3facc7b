package ids

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"strings"
	"sync"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/seqsvr/seqsvr/cmd/seqctl/ctl"
	"github.com/seqsvr/seqsvr/internal/wire/gate"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// answer is a node's answer to one call.
type answer struct {
	reply proto.Message
	err   error
}

// node is a made-up AllocSvr: it gives its answers in turn, the last one again and
// again, and keeps what it was asked.
type node struct {
	pb.UnimplementedSnowflakeServer
	pb.UnimplementedSegmentServer
	addr string

	mu      sync.Mutex // guards the fields below
	answers []answer
	asked   []proto.Message
}

func (n *node) say(answers ...answer) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.answers, n.asked = answers, nil
}

func (n *node) requests() []proto.Message {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]proto.Message{}, n.asked...)
}

func next[R proto.Message](n *node, req proto.Message) (reply R, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked = append(n.asked, req)
	a := n.answers[0]
	if len(n.answers) > 1 {
		n.answers = n.answers[1:]
	}
	reply, _ = a.reply.(R)
	return reply, a.err
}

func (n *node) Generate(_ context.Context, r *pb.SnowflakeGenerateRequest) (*pb.SnowflakeGenerateReply, error) {
	return next[*pb.SnowflakeGenerateReply](n, r)
}

func (n *node) Decode(_ context.Context, r *pb.SnowflakeDecodeRequest) (*pb.SnowflakeDecoded, error) {
	return next[*pb.SnowflakeDecoded](n, r)
}

func (n *node) Compose(_ context.Context, r *pb.SnowflakeComposeRequest) (*pb.SnowflakeDecoded, error) {
	return next[*pb.SnowflakeDecoded](n, r)
}

func (n *node) Namespaces(_ context.Context, r *pb.SnowflakeNamespacesRequest) (*pb.SnowflakeNamespacesReply, error) {
	return next[*pb.SnowflakeNamespacesReply](n, r)
}

func (n *node) PutNamespace(_ context.Context, r *pb.SnowflakePutNamespaceRequest) (*pb.SnowflakeNamespace, error) {
	return next[*pb.SnowflakeNamespace](n, r)
}

func (n *node) RetireNamespace(_ context.Context, r *pb.SnowflakeRetireNamespaceRequest) (*pb.SnowflakeNamespace, error) {
	return next[*pb.SnowflakeNamespace](n, r)
}

func (n *node) Retire(_ context.Context, r *pb.SegmentRetireRequest) (*pb.SegmentTag, error) {
	return next[*pb.SegmentTag](n, r)
}

func (n *node) Workers(_ context.Context, r *pb.SnowflakeWorkersRequest) (*pb.SnowflakeWorkersReply, error) {
	return next[*pb.SnowflakeWorkersReply](n, r)
}

func (n *node) Take(_ context.Context, r *pb.SegmentTakeRequest) (*pb.SegmentTakeReply, error) {
	return next[*pb.SegmentTakeReply](n, r)
}

func (n *node) Put(_ context.Context, r *pb.SegmentPutRequest) (*pb.SegmentPutReply, error) {
	return next[*pb.SegmentPutReply](n, r)
}

func (n *node) List(_ context.Context, r *pb.SegmentListRequest) (*pb.SegmentListReply, error) {
	return next[*pb.SegmentListReply](n, r)
}

// serve starts a node. Without services it is a server that knows nothing of IDs.
func serve(t *testing.T, services bool) *node {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &node{addr: lis.Addr().String()}
	srv := gate.NewServer(gate.ServerConfig{})
	if services {
		pb.RegisterSnowflakeServer(srv, n)
		pb.RegisterSegmentServer(srv, n)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(lis)
	}()
	t.Cleanup(func() { srv.Stop(); <-done })
	return n
}

// call runs a command line and gives what it printed.
func call(t *testing.T, args ...string) (stdout string, err error) {
	t.Helper()
	var out, log bytes.Buffer
	root := ctl.Root()
	root.AddCommand(Commands()...)
	err = ctl.Execute(t.Context(), root, args, &out, &log)
	if log.Len() > 0 && args[0] != "__complete" {
		t.Errorf("%q wrote on stderr: %q", args, log.String())
	}
	return out.String(), err
}

// fields splits a line into arguments.
func fields(line string, more ...string) []string { return append(strings.Fields(line), more...) }

// parsed is JSON with its numbers as they were written.
func parsed(t *testing.T, text string) any {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		t.Fatalf("printed %q: %v", text, err)
	}
	return v
}
