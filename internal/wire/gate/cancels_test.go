package gate

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/seqsvr/seqsvr/internal/wire/auth"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/bubble"
	"github.com/seqsvr/seqsvr/tests/kit/rawcall"
)

const anyMethod = pb.Sequence_Next_FullMethodName

// bytesOf is a connection to a server from an address, of which the test gives the bytes.
type bytesOf struct {
	net.Conn
	from net.Addr
}

func (b bytesOf) RemoteAddr() net.Addr          { return b.from }
func (b bytesOf) Write(out []byte) (int, error) { return len(out), nil }
func (b bytesOf) Close() error                  { return nil }

// testPeer is a peer whose calls are counted by a server.
type testPeer struct {
	rawcall.Frames
	at *watched
}

func newPeer(t *testing.T, by *cancels, ip string) *testPeer {
	t.Helper()
	at, err := by.watch(bytesOf{from: &net.TCPAddr{IP: net.ParseIP(ip), Port: 1234}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &testPeer{at: at}
}

// open begins calls.
func (p *testPeer) open(calls int) (all []uint32) {
	for range calls {
		all = append(all, p.Open(anyMethod))
	}
	p.at.read(p.Take())
	return all
}

// reset cancels calls, and says whether the server closes the connection.
func (p *testPeer) reset(calls ...uint32) (closed bool) {
	for _, one := range calls {
		p.Reset(one)
	}
	return p.at.cancelled(p.at.read(p.Take()))
}

func testCancels(rate int, streams uint32) *cancels {
	return newCancels(ServerConfig{MaxCancels: rate, MaxConcurrentStreams: streams, Refused: rpc.NewRefused(nil)})
}

func TestAPeerMayCancelSoManyCallsASecondBeforeTheyAreServed(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		by := testCancels(100, 256)
		p := newPeer(t, by, "192.0.2.1")
		if p.reset(p.open(256)...) {
			t.Error("closed for all calls of a connection that were cancelled at once")
		}
		if !p.reset(p.open(1)...) {
			t.Error("open after one more")
		}
		if got := by.refused.Totals(); len(got) != 1 || got[0] != (rpc.Refusal{Reason: rpc.RefusedCancelled, Address: "192.0.2.1", Count: 1}) {
			t.Errorf("an operator sees %v", got)
		}
		if other := newPeer(t, by, "192.0.2.2"); other.reset(other.open(256)...) {
			t.Error("another peer has less for that")
		}
		for range 20 {
			time.Sleep(time.Second)
			if p.reset(p.open(100)...) {
				t.Fatal("closed for 100 in a second")
			}
		}
		time.Sleep(time.Second)
		if second := newPeer(t, by, "192.0.2.1"); !second.reset(second.open(101)...) {
			t.Error("a second connection of the peer has as much as the first")
		}
	})
}

// In an outage a connection with 512 callers cancels all of them at each of their deadlines.
func TestCallsThatWereOpenForLongMayBeCancelled(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		p := newPeer(t, testCancels(100, 256), "192.0.2.1")
		for range 100 {
			calls := p.open(512)
			time.Sleep(300 * time.Millisecond)
			if p.reset(calls...) {
				t.Fatal("closed after deadlines")
			}
		}
		var calls []uint32
		for i := range 10_000 { // a call each millisecond, for 300 ms
			calls = append(calls, p.open(1)...)
			time.Sleep(time.Millisecond)
			if i >= 300 && p.reset(calls[i-300]) {
				t.Fatalf("closed after %d calls", i)
			}
		}
		for range 10_000 {
			calls = append(calls, p.open(1)...)
			time.Sleep(time.Millisecond)
			if p.reset(calls[len(calls)-201]) {
				return
			}
		}
		t.Error("calls may be cancelled after a fifth of a second")
	})
}

func TestEachCallThatIsServedPaysForOneThatIsCancelled(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		p := newPeer(t, testCancels(100, 256), "192.0.2.1")
		for i := range 5000 { // hedged calls: one of two attempts is cancelled
			calls := p.open(2)
			p.at.serves()
			if p.reset(calls[0]) {
				t.Fatalf("closed after %d calls that were served", i)
			}
		}
		for range 100_000 {
			p.at.serves()
		}
		if !p.reset(p.open(2*256 + 1)...) {
			t.Error("what was served is saved up without end")
		}
	})
}

func TestCallsThatAServerResetsCountAsCancelled(t *testing.T) {
	reset := func(stream, code uint32) []byte {
		out := binary.BigEndian.AppendUint32([]byte{0, 0, 4, byte(http2.FrameRSTStream), 0}, stream)
		return binary.BigEndian.AppendUint32(out, code)
	}
	p := newPeer(t, testCancels(1, 256), "192.0.2.1")
	for range 1000 {
		if _, err := p.at.Write(reset(p.open(1)[0], uint32(http2.ErrCodeNo))); err != nil {
			t.Fatalf("closed for calls that were answered early: %v", err)
		}
	}
	for i := range 1000 {
		if _, err := p.at.Write(reset(p.open(1)[0], 7)); err != nil {
			if i < 256 {
				t.Errorf("closed after %d", i)
			}
			return
		}
	}
	t.Error("calls may be refused without end")
}

// Frames are found wherever the bytes are cut.
func TestFramesAreFoundHoweverTheyCome(t *testing.T) {
	var sent rawcall.Frames
	var want []frame
	for range 50 {
		one := sent.Open(anyMethod)
		if len(want) == 0 {
			want = append(want, frame{kind: http2.FrameSettings})
		}
		sent.Send(one, make([]byte, rand.IntN(40)))
		sent.Reset(one)
		want = append(want, frame{kind: http2.FrameHeaders, stream: one}, frame{kind: http2.FrameData, stream: one}, frame{kind: http2.FrameRSTStream, stream: one, code: http2.ErrCodeCancel})
	}
	all := sent.Take()
	for round := range 200 {
		var got []frame
		f := frames{skip: preface}
		for b := all; len(b) > 0; {
			n := min(len(b), 1+rand.IntN(1+round))
			f.scan(b[:n], func(one frame) { got = append(got, frame{kind: one.kind, stream: one.stream, code: one.code}) })
			b = b[n:]
		}
		if !slices.Equal(got, want) {
			t.Fatalf("round %d: got %v, want %v", round, got, want)
		}
	}
}

func TestNodesThatProveTheirRoleMayCancelAsTheyLike(t *testing.T) {
	from := &net.TCPAddr{IP: net.ParseIP("192.0.2.1"), Port: 1234}
	shown := func(role auth.Role, name string) rpc.ShownInfo {
		return rpc.ShownInfo{Evidence: auth.Evidence{Identity: auth.Identity{Cluster: "c", Role: role, Name: name}}}
	}
	for _, role := range []auth.Role{auth.Store, auth.Alloc, auth.Router} {
		if who := peerKey(from, shown(role, "n")); who != nil {
			t.Errorf("a %s is bounded as %v", role, who)
		}
	}
	_, plain, _ := insecure.NewCredentials().ServerHandshake(nil)
	host := peerKey(from, plain)
	if host == nil || peerKey(from, shown("", "")) != host {
		t.Error("a connection that proves nothing is not bounded by its host")
	}
	one, other := peerKey(from, shown(auth.Caller, "one")), peerKey(from, shown(auth.Caller, "other"))
	if one == nil || one == host || one == other {
		t.Errorf("callers with certificates are bounded as %v and %v", one, other)
	}
	v6 := func(ip string) any { return peerKey(&net.TCPAddr{IP: net.ParseIP(ip), Port: 1}, nil) }
	if v6("2001:db8::1") != v6("2001:db8::2:3") || v6("2001:db8::1") == v6("2001:db8:1::1") || v6("::ffff:192.0.2.1") != host {
		t.Error("a host with many addresses is many peers, or many hosts are one")
	}
}

func TestPeersThatCancelAreRememberedInBoundedMemory(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		by := testCancels(100, 256)
		for i := range 3 * maxPeers {
			by.count("peer "+strconv.Itoa(i), 257, time.Now())
		}
		if n := len(by.peers); n > maxPeers {
			t.Errorf("%d peers", n)
		}
		time.Sleep(time.Minute) // all are calm
		added := 0
		for ; len(by.peers) < maxPeers; added++ {
			by.count("late peer "+strconv.Itoa(added), 1, time.Now())
		}
		if by.count("one more", 1, time.Now()); len(by.peers) != added+1 {
			t.Errorf("%d peers are remembered, want %d: the calm ones are dropped first", len(by.peers), added+1)
		}
	})
}

func TestTheNextConnectionsOfAPeerThatWasClosedWait(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		by := testCancels(100, 256)
		p := newPeer(t, by, "192.0.2.1")
		p.reset(p.open(257)...)
		begun, done := time.Now(), make(chan time.Duration, maxPaused)
		for range maxPaused {
			go func() {
				_, err := by.watch(bytesOf{from: p.at.RemoteAddr()}, nil)
				if err != nil {
					t.Error(err)
				}
				done <- time.Since(begun)
			}()
		}
		time.Sleep(closedFor / 2)
		if _, err := by.watch(bytesOf{from: p.at.RemoteAddr()}, nil); !errors.Is(err, errPaused) {
			t.Errorf("one more than may wait: got %v", err)
		}
		newPeer(t, by, "192.0.2.2")
		if waited := time.Since(begun); waited != closedFor/2 {
			t.Error("another peer waits")
		}
		for range maxPaused {
			if waited := <-done; waited != closedFor {
				t.Errorf("a connection waited for %v", waited)
			}
		}
	})
}

// serveCounted is where a server answers.
func serveCounted(t *testing.T, cfg ServerConfig, by pb.SequenceServer) (addr string) {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := NewServer(cfg)
	pb.RegisterSequenceServer(srv, by)
	done := make(chan error, 1)
	go func() { done <- srv.Serve(lis) }()
	t.Cleanup(func() {
		srv.Stop()
		<-done
	})
	return lis.Addr().String()
}

// flood makes calls until the server closes the connection or most of them were made, and gives
// their number.
func flood(t *testing.T, addr string, most int, call func(*rawcall.Conn)) (calls int) {
	t.Helper()
	c, err := rawcall.Dial(addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for ; calls < most; calls += 50 {
		for range 50 {
			call(c)
		}
		if c.Flush() != nil {
			return calls
		}
	}
	return calls
}

func TestAFloodOfCallsThatAreNotServedEndsItsConnection(t *testing.T) {
	request, err := proto.Marshal(&pb.BatchNextRequest{Batches: []*pb.Batch{{Uids: []uint64{1}}}})
	if err != nil {
		t.Fatal(err)
	}
	const most = 1 << 17
	for name, call := range map[string]func(*rawcall.Conn){
		"cancelled before its message": func(c *rawcall.Conn) { c.Reset(c.Open(pb.Sequence_BatchNext_FullMethodName)) },
		"cancelled after its message": func(c *rawcall.Conn) {
			one := c.Open(pb.Sequence_BatchNext_FullMethodName)
			c.Send(one, request)
			c.Reset(one)
		},
		"whose deadline has passed":    func(c *rawcall.Conn) { c.Open(pb.Sequence_BatchNext_FullMethodName, "grpc-timeout", "1n") },
		"beyond those of a connection": func(c *rawcall.Conn) { c.Open(pb.Sequence_BatchNext_FullMethodName) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, refused := &generous{conns: make(chan *traffic, 1)}, rpc.NewRefused(nil)
			addr := serveCounted(t, ServerConfig{MaxCancels: 1, Refused: refused}, g)
			begun := time.Now()
			if calls := flood(t, addr, most, call); calls == most {
				t.Fatal("it goes on")
			}
			if n, most := g.calls.Load(), int64(2*256+time.Since(begun)/time.Second+1); n > most {
				t.Errorf("%d calls were served, want at most %d", n, most)
			}
			conn, err := rpc.Dial(addr)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if _, err := pb.NewSequenceClient(conn).BatchNext(ctx, &pb.BatchNextRequest{}); err != nil {
				t.Errorf("the next connection: %v", err)
			}
			cancelled := slices.ContainsFunc(refused.Totals(), func(r rpc.Refusal) bool { return r.Reason == rpc.RefusedCancelled })
			if waited := time.Since(begun); cancelled && waited < closedFor {
				t.Errorf("the next connection was served %v after the first began", waited)
			}
		})
	}
}

// stranger refuses each call.
type stranger struct {
	pb.UnimplementedSequenceServer
}

func (stranger) Next(context.Context, *pb.NextRequest) (*pb.NextReply, error) {
	return nil, seq.ErrUnauthenticated
}

func TestAConnectionWhoseCallsAreRefusedForTheirCallerIsClosed(t *testing.T) {
	conn, err := rpc.Dial(serveCounted(t, ServerConfig{MaxCancels: 1}, stranger{}))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	client := pb.NewSequenceClient(conn)
	for i := range 10_000 {
		switch _, err := client.Next(t.Context(), &pb.NextRequest{}); status.Code(err) {
		case codes.Unauthenticated:
		case codes.Unavailable:
			if i < 256 {
				t.Errorf("closed after %d calls", i)
			}
			return
		default:
			t.Fatalf("got %v", err)
		}
	}
	t.Error("strangers call without end")
}
