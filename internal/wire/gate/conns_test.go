package gate

import (
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/waits"
)

// generous answers each key with a table of many nodes, and shows the connections.
type generous struct {
	pb.UnimplementedSequenceServer
	conns chan *traffic
	calls atomic.Int64
}

func (g *generous) Next(ctx context.Context, _ *pb.NextRequest) (*pb.NextReply, error) {
	g.calls.Add(1)
	g.show(ctx)
	return &pb.NextReply{First: 1, Last: 1, Routes: &pb.RouteTable{Owner: make([]int32, 200<<10)}}, nil
}

func (g *generous) show(ctx context.Context) {
	select {
	case g.conns <- trafficOf(ctx):
	default:
	}
}

func (g *generous) BatchNext(context.Context, *pb.BatchNextRequest) (*pb.BatchNextReply, error) {
	g.calls.Add(1)
	return &pb.BatchNextReply{}, nil
}

func (g *generous) Stream(stream grpc.BidiStreamingServer[pb.StreamRequest, pb.StreamReply]) error {
	g.show(stream.Context())
	for {
		r, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = stream.Send(&pb.StreamReply{Id: r.GetId()})
		}
		if err != nil {
			return err
		}
	}
}

// serveGenerous is a server and a connection to it whose bytes pass through wrap.
func serveGenerous(t *testing.T, wrap func(net.Conn) net.Conn) (*generous, pb.SequenceClient) {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &generous{conns: make(chan *traffic, 1)}
	srv := NewServer(ServerConfig{})
	pb.RegisterSequenceServer(srv, g)
	done := make(chan error, 1)
	go func() { done <- srv.Serve(lis) }()
	t.Cleanup(func() {
		srv.Stop()
		<-done
	})
	conn, err := rpc.Dial(lis.Addr().String(), grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
		if err != nil {
			return nil, err
		}
		return wrap(c), nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return g, pb.NewSequenceClient(conn)
}

// waitFor waits for a condition, a minute at most.
func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(waits.AtMost(t, time.Minute)); !ok(); {
		if time.Now().After(end) {
			t.Fatalf("waited for: %s", what)
		}
		<-time.After(time.Millisecond)
	}
}

func TestWhatIsInMemoryOfAConnectionIsCountedDownToNothing(t *testing.T) {
	g, client := serveGenerous(t, func(c net.Conn) net.Conn { return c })
	for range 20 {
		if _, err := client.Next(t.Context(), &pb.NextRequest{Id: &pb.NextRequest_Key{Key: "a key that is not short"}}); err != nil {
			t.Fatal(err)
		}
	}
	stream, err := client.Stream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for id := range uint64(20) {
		if err := stream.Send(&pb.StreamRequest{Id: id}); err != nil {
			t.Fatal(err)
		}
		if reply, err := stream.Recv(); err != nil || reply.GetId() != id {
			t.Fatalf("got %v, %v", reply, err)
		}
	}
	conn := <-g.conns
	waitFor(t, "nothing unread", func() bool { return conn.unread.Load() == 0 && conn.all.Load() == 0 })
	if n := conn.unfinished.Load(); n > overhead {
		t.Errorf("%d bytes are of unfinished messages, want none but of frames", n)
	}
}

// reader is a connection that reads nothing while it is paused.
type reader struct {
	net.Conn
	paused *atomic.Bool
	ended  chan struct{}
	once   sync.Once
}

func (r *reader) Read(b []byte) (int, error) {
	for r.paused.Load() {
		select {
		case <-r.ended:
			return 0, net.ErrClosed
		case <-time.After(time.Millisecond):
		}
	}
	return r.Conn.Read(b)
}

func (r *reader) Close() error {
	r.once.Do(func() { close(r.ended) })
	return r.Conn.Close()
}

func TestAPeerThatReadsNothingIsServedNoMoreThanFitsItsConnection(t *testing.T) {
	var paused atomic.Bool
	g, client := serveGenerous(t, func(c net.Conn) net.Conn { return &reader{Conn: c, paused: &paused, ended: make(chan struct{})} })
	if _, err := client.Next(t.Context(), &pb.NextRequest{}); err != nil {
		t.Fatal(err)
	}
	conn := <-g.conns
	paused.Store(true)
	const calls = 2000 // their replies are 400 MB
	var refused atomic.Int64
	var wg sync.WaitGroup
	for range calls {
		wg.Go(func() {
			if _, err := client.Next(t.Context(), &pb.NextRequest{}); errors.Is(err, seq.ErrOverloaded) {
				refused.Add(1)
			}
		})
	}
	waitFor(t, "too much is unread", func() bool { return conn.full() != nil })
	if n := conn.unread.Load(); n > maxUnread+256*(201<<10) {
		t.Errorf("%d bytes are unread", n)
	}
	paused.Store(false)
	wg.Wait()
	if refused.Load() == 0 {
		t.Errorf("all of %d calls were served", calls)
	}
	if _, err := client.Next(t.Context(), &pb.NextRequest{}); err != nil {
		t.Errorf("after it has read: %v", err)
	}
}

// Bytes of calls that were given up are never written, and must not count for ever.
func TestRepliesOfCallsThatWereCancelledAreForgotten(t *testing.T) {
	var paused atomic.Bool
	g, client := serveGenerous(t, func(c net.Conn) net.Conn { return &reader{Conn: c, paused: &paused, ended: make(chan struct{})} })
	// On a busy machine a connection that reads nothing may be given up before it is full: the
	// round is made again then, on the next one.
	for rounds, tries := 0, 0; rounds < 5; tries++ {
		if tries == 50 {
			t.Fatalf("in %d of %d tries a connection was full", rounds, tries)
		}
		select {
		case <-g.conns: // of the round before
		default:
		}
		if _, err := client.Next(t.Context(), &pb.NextRequest{}, grpc.WaitForReady(true)); err != nil {
			continue
		}
		conn := <-g.conns
		paused.Store(true)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range 300 { // 60 MB: the system alone may take half of that, of a connection that was fast
			wg.Go(func() { _, _ = client.Next(ctx, &pb.NextRequest{}) })
		}
		ended := make(chan struct{})
		go func() { wg.Wait(); close(ended) }()
		waitFor(t, "too much is unread", func() bool {
			select {
			case <-ended:
				return true
			default:
				return conn.full() != nil
			}
		})
		if conn.full() != nil {
			rounds++
		}
		cancel()
		<-ended
		paused.Store(false)
		waitFor(t, "nothing unread", func() bool {
			runtime.GC() // what gRPC did not give back counts until then
			return conn.unread.Load() == 0 && conn.all.Load() == 0
		})
	}
	if _, err := client.Next(t.Context(), &pb.NextRequest{}); err != nil {
		t.Errorf("after calls that were cancelled: %v", err)
	}
}

func TestAReplyThatIsNeverGivenBackCountsUntilItIsCollected(t *testing.T) {
	conn := newTraffic(nil, maxUnread)
	if _, err := newCodec().Marshal(conn.reply(&pb.NextRequest{Space: string(make([]byte, 100<<10))})); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "nothing unread", func() bool {
		runtime.GC()
		return conn.unread.Load() == 0 && conn.all.Load() == 0
	})
}

// A reply of many megabytes takes its time on a busy machine, in which leases are renewed.
func TestOneLargeReplyRefusesNoCallBesideIt(t *testing.T) {
	conn := newTraffic(nil, maxUnread)
	c := newCodec()
	large := conn.reply(&pb.NextRequest{Space: string(make([]byte, 8<<20))})
	first, err := c.Marshal(large)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.full(); err != nil {
		t.Errorf("with one under way: %v", err)
	}
	var more []mem.BufferSlice
	for range 2 {
		b, err := c.Marshal(large)
		if err != nil {
			t.Fatal(err)
		}
		more = append(more, b)
	}
	if err := conn.full(); !errors.Is(err, seq.ErrOverloaded) {
		t.Errorf("with three: got %v, want %v", err, seq.ErrOverloaded)
	}
	for _, b := range append(more, first) {
		b.Free()
	}
	if n := conn.unread.Load(); n != 0 {
		t.Errorf("%d bytes count after all were let go", n)
	}
}

// writer is a connection that writes so many bytes and no more.
type writer struct {
	net.Conn
	left  atomic.Int64
	ended chan struct{}
	once  sync.Once
}

func (w *writer) Write(b []byte) (int, error) {
	if w.left.Add(-int64(len(b))) < 0 {
		<-w.ended
		return 0, net.ErrClosed
	}
	return w.Conn.Write(b)
}

func (w *writer) Close() error {
	w.once.Do(func() { close(w.ended) })
	return w.Conn.Close()
}

func TestAConnectionWithTooManyUnfinishedMessagesIsClosed(t *testing.T) {
	g, client := serveGenerous(t, func(c net.Conn) net.Conn {
		w := &writer{Conn: c, ended: make(chan struct{})}
		w.left.Store(2*rpc.MaxRecv + 8<<20)
		return w
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	keys := []string{string(make([]byte, 15<<20))}
	var wg sync.WaitGroup
	for range 80 {
		wg.Go(func() {
			_, err := client.BatchNext(ctx, &pb.BatchNextRequest{Batches: []*pb.Batch{{Keys: keys}}})
			if status.Code(err) == codes.DeadlineExceeded { // a few may come whole before
				t.Errorf("got %v, want the connection closed", err)
			}
		})
	}
	wg.Wait()
	if n := g.calls.Load(); n > 2 {
		t.Errorf("%d messages arrived whole", n)
	}
}

func TestACallOfAPeerThatReadsNothingIsRefusedBeforeAndAfterItsHandler(t *testing.T) {
	conn := newTraffic(nil, maxUnread)
	ctx := peer.NewContext(t.Context(), &peer.Peer{AuthInfo: connInfo{traffic: conn}})
	info := &grpc.UnaryServerInfo{FullMethod: pb.Sequence_Next_FullMethodName}
	call := func(during func()) (called bool, err error) {
		_, err = Guard(ServerConfig{})(ctx, &pb.NextRequest{}, info, func(context.Context, any) (any, error) {
			during()
			called = true
			return &pb.NextReply{First: 1}, nil
		})
		return called, rpc.FromStatus(err)
	}
	if called, err := call(func() { conn.unread.Store(maxUnread + 1) }); !called || !errors.Is(err, seq.ErrOverloaded) {
		t.Errorf("full when it is done: called %v, %v", called, err)
	}
	if called, err := call(func() {}); called || !errors.Is(err, seq.ErrOverloaded) {
		t.Errorf("full when it comes: called %v, %v", called, err)
	}
	conn.unread.Store(maxUnread)
	if called, err := call(func() {}); !called || err != nil {
		t.Errorf("not full: called %v, %v", called, err)
	}
}

func TestWhenMuchIsUnreadEachConnectionMayLeaveLess(t *testing.T) {
	var all atomic.Int64
	raw, other := net.Pipe()
	defer other.Close()
	conn, full := newTraffic(raw, 0), newTraffic(nil, 0)
	conn.all, full.all = &all, &all
	conn.goes(fewUnread + 1)
	if err := conn.full(); err != nil {
		t.Errorf("with little unread elsewhere: %v", err)
	}
	all.Add(muchUnread)
	if err := conn.full(); !errors.Is(err, seq.ErrOverloaded) {
		t.Errorf("with much unread elsewhere: got %v, want %v", err, seq.ErrOverloaded)
	}
	if err := full.full(); err != nil {
		t.Errorf("one that has read all: %v", err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	conn.goes(7)
	if n := all.Load(); n != muchUnread {
		t.Errorf("%d bytes of a closed connection count as unread", n-muchUnread)
	}
}
