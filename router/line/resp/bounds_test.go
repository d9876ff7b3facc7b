package resp

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/sdk/stream"
	"github.com/seqsvr/seqsvr/seq"
)

// wrapped is a listener whose connections are not *net.TCPConn, as those with TLS.
type wrapped struct{ net.Listener }

func (w wrapped) Accept() (net.Conn, error) {
	c, err := w.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return struct{ net.Conn }{c}, nil
}

// eachWay runs a test on a server with a loop, and on one with a goroutine for each connection.
func eachWay(t *testing.T, from func() Numbers, change func(*Server), test func(t *testing.T, s *Server, addr string, stop func())) {
	for _, way := range []string{"loop", "goroutines"} {
		t.Run(way, func(t *testing.T) {
			lis, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			if way == "goroutines" {
				lis = wrapped{lis}
			}
			s := New(NewDialect(), from(), nil)
			change(s)
			ctx, cancel := context.WithCancel(context.Background())
			done := make(chan error, 1)
			go func() { done <- s.Serve(ctx, lis, bound) }()
			stop := sync.OnceFunc(func() {
				cancel()
				if err := <-done; err != nil {
					t.Error(err)
				}
			})
			t.Cleanup(stop)
			test(t, s, lis.Addr().String(), stop)
		})
	}
}

// ended waits for the end of a connection.
func (c *caller) ended() error {
	_, err := io.Copy(io.Discard, c.in)
	if errors.Is(err, syscall.ECONNRESET) {
		return nil
	}
	return err
}

func TestConnectionsThatWaitForTooLongAreEnded(t *testing.T) {
	from := func() Numbers { return newCounters() }
	short := 200 * time.Millisecond
	for _, tc := range []struct {
		what   string
		change func(*patience)
		send   string
	}{
		{"half a command", func(p *patience) { p.request = short }, array("INCR", "seq:1") + "*2\r\n$4\r\nIN"},
		{"no command", func(p *patience) { p.idle = short }, array("INCR", "seq:1")},
	} {
		t.Run(tc.what, func(t *testing.T) {
			eachWay(t, from, func(s *Server) { s.waits.sweep = 20 * time.Millisecond; tc.change(&s.waits) }, func(t *testing.T, s *Server, addr string, _ func()) {
				c := dial(t, addr)
				began := time.Now()
				c.send(tc.send)
				if got := c.reply(); got != ":1" {
					t.Fatal(got)
				}
				if err := c.ended(); err != nil {
					t.Errorf("got %v, want the end", err)
				}
				if took := time.Since(began); took < short/2 {
					t.Errorf("ended after %v, expected about %v", took, short)
				}
			})
		})
	}
}

func TestBytesOfACommandThatNeverEndsDoNotProlongIt(t *testing.T) {
	eachWay(t, func() Numbers { return newCounters() }, func(s *Server) {
		s.waits.sweep, s.waits.request = 20*time.Millisecond, 300*time.Millisecond
	}, func(t *testing.T, s *Server, addr string, _ func()) {
		c := dial(t, addr)
		for began := time.Now(); ; {
			if _, err := io.WriteString(c.conn, "x"); err != nil {
				return // as expected
			}
			if time.Since(began) > bound/2 {
				t.Fatal("a command that never ends is waited for as long as bytes of it come")
			}
			time.Sleep(10 * time.Millisecond)
		}
	})
}

func TestAConnectionThatTakesNoRepliesIsNotReadAndThenEnded(t *testing.T) {
	eachWay(t, func() Numbers { return newCounters() }, func(s *Server) {
		s.waits.sweep, s.waits.reply = 20*time.Millisecond, 500*time.Millisecond
	}, func(t *testing.T, s *Server, addr string, _ func()) {
		c, other := dial(t, addr), dial(t, addr)
		text := array("ECHO", strings.Repeat("x", 60<<10))
		_ = c.conn.SetDeadline(time.Now().Add(bound))
		sent := 0
		for {
			n, err := io.WriteString(c.conn, text)
			sent += n
			if err != nil {
				if errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) {
					break
				}
				t.Fatalf("got %v after %d bytes, want the end of the connection", err, sent)
			}
			if sent > 256<<20 {
				t.Fatal("a connection that takes no replies is read on and on")
			}
		}
		other.want(":1", "INCR", "seq:1")
	})
}

func TestRepliesThatAreTakenLateAreWholeAndInOrder(t *testing.T) {
	eachWay(t, func() Numbers { return newCounters() }, func(s *Server) { s.waits.sweep = 10 * time.Millisecond }, func(t *testing.T, s *Server, addr string, _ func()) {
		c := dial(t, addr)
		const n = 400
		long := strings.Repeat("y", 50<<10)
		var sending sync.WaitGroup
		sending.Go(func() {
			for i := range n {
				if _, err := io.WriteString(c.conn, array("INCR", "seq:7")+array("ECHO", strconv.Itoa(i)+long)+array("GET", "seq:7")); err != nil {
					t.Error(err)
					return
				}
			}
		})
		for i := range n {
			for _, want := range []string{":" + strconv.Itoa(i+1), "$" + strconv.Itoa(i) + long, "$" + strconv.Itoa(i+1)} {
				if got := c.reply(); got != want {
					t.Fatalf("round %d: got %.40s, want %.40s", i, got, want)
				}
			}
		}
		sending.Wait()
	})
}

// gated holds what is asked of one uid.
type gated struct {
	*counters
	gate    chan struct{} // lets it go
	entered chan struct{} // says that it was asked for
}

const slow = seq.UID(99)

func (g gated) wait(ctx context.Context, uids ...seq.UID) {
	if slices.Contains(uids, slow) {
		g.entered <- struct{}{}
		select {
		case <-g.gate:
		case <-ctx.Done():
		}
	}
}

func (g gated) Take(ctx context.Context, key client.Key, n uint32) (client.Range, error) {
	g.wait(ctx, key.UID)
	return g.counters.Take(ctx, key, n)
}

func (g gated) NextBatchIdempotent(ctx context.Context, space string, uids []seq.UID, counts []uint32, requests []client.Request) ([]client.Range, error) {
	g.wait(ctx, uids...)
	return g.counters.NextBatchIdempotent(ctx, space, uids, counts, requests)
}

func (g gated) Begin(ctx context.Context, orders ...*stream.Order) {
	for _, o := range orders {
		go func() {
			g.wait(ctx, o.UIDs...)
			g.counters.Begin(ctx, o)
		}()
	}
}

func TestASlowKeyHoldsItsOwnConnectionAlone(t *testing.T) {
	var gate chan struct{}
	from := func() Numbers {
		gate = make(chan struct{})
		return gated{newCounters(), gate, make(chan struct{}, 1)}
	}
	eachWay(t, from, func(*Server) {}, func(t *testing.T, s *Server, addr string, _ func()) {
		held, other := dial(t, addr), dial(t, addr)
		held.send(array("INCR", "seq:1") + array("INCR", "seq:99") + array("PING"))
		held.send(array("INCR", "seq:2"))
		for i := range 100 {
			other.want(":"+strconv.Itoa(i+1), "INCR", "seq:5")
		}
		close(gate)
		for i, want := range []string{":1", ":1", "+PONG", ":1"} {
			if got := held.reply(); got != want {
				t.Errorf("reply %d: got %s, want %s", i, got, want)
			}
		}
	})
}

func TestAServerThatStopsAnswersWhatItHasReadAndEndsTheRest(t *testing.T) {
	var gate, entered chan struct{}
	from := func() Numbers {
		gate, entered = make(chan struct{}), make(chan struct{}, 1)
		return gated{newCounters(), gate, entered}
	}
	eachWay(t, from, func(*Server) {}, func(t *testing.T, s *Server, addr string, stop func()) {
		held, idle, half := dial(t, addr), dial(t, addr), dial(t, addr)
		idle.want("+PONG", "PING")
		half.send("*1\r\n$4\r\nPI")
		held.send(array("PING") + array("INCR", "seq:99") + "*1\r\n$4\r\nPI")
		<-entered
		var stopping sync.WaitGroup
		stopping.Go(stop)
		if err := idle.ended(); err != nil {
			t.Errorf("idle: got %v, want the end", err)
		}
		if err := half.ended(); err != nil {
			t.Errorf("with half a command: got %v, want the end", err)
		}
		close(gate)
		for _, want := range []string{"+PONG", ":1"} {
			if got := held.reply(); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
		if err := held.ended(); err != nil {
			t.Errorf("answered: got %v, want the end", err)
		}
		stopping.Wait()
		if got := s.stats.open.Load(); got != 0 {
			t.Errorf("after the end: got %d connections", got)
		}
	})
}
