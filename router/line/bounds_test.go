package line_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/sdk/stream"
	"github.com/seqsvr/seqsvr/router/line"
	"github.com/seqsvr/seqsvr/router/line/linetest"
	"github.com/seqsvr/seqsvr/router/line/resp"
	"github.com/seqsvr/seqsvr/seq"
)

func TestConnectionsThatWaitForTooLongAreEnded(t *testing.T) {
	from := func() line.Numbers { return linetest.NewCounters() }
	short := 200 * time.Millisecond
	for _, tc := range []struct {
		what   string
		change func(*line.Patience)
		send   string
	}{
		{"half a command", func(p *line.Patience) { p.Request = short }, linetest.Array("INCR", "seq:1") + "*2\r\n$4\r\nIN"},
		{"no command", func(p *line.Patience) { p.Idle = short }, linetest.Array("INCR", "seq:1")},
	} {
		t.Run(tc.what, func(t *testing.T) {
			linetest.EachWay(t, resp.New, from, func(s *line.Server) { s.Waits().Sweep = 20 * time.Millisecond; tc.change(s.Waits()) }, func(t *testing.T, s *line.Server, addr string, _ func()) {
				c := linetest.Dial(t, addr)
				began := time.Now()
				c.Send(tc.send)
				if got := c.Reply(); got != ":1" {
					t.Fatal(got)
				}
				if err := c.Ended(); err != nil {
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
	linetest.EachWay(t, resp.New, func() line.Numbers { return linetest.NewCounters() }, func(s *line.Server) {
		s.Waits().Sweep, s.Waits().Request = 20*time.Millisecond, 300*time.Millisecond
	}, func(t *testing.T, s *line.Server, addr string, _ func()) {
		c := linetest.Dial(t, addr)
		for began := time.Now(); ; {
			if _, err := io.WriteString(c.Conn, "x"); err != nil {
				return // as expected
			}
			if time.Since(began) > linetest.Bound/2 {
				t.Fatal("a command that never ends is waited for as long as bytes of it come")
			}
			time.Sleep(10 * time.Millisecond)
		}
	})
}

func TestAConnectionThatTakesNoRepliesIsNotReadAndThenEnded(t *testing.T) {
	linetest.EachWay(t, resp.New, func() line.Numbers { return linetest.NewCounters() }, func(s *line.Server) {
		s.Waits().Sweep, s.Waits().Reply = 20*time.Millisecond, 500*time.Millisecond
	}, func(t *testing.T, s *line.Server, addr string, _ func()) {
		c, other := linetest.Dial(t, addr), linetest.Dial(t, addr)
		text := linetest.Array("ECHO", strings.Repeat("x", 60<<10))
		_ = c.Conn.SetDeadline(time.Now().Add(linetest.Bound))
		sent := 0
		for {
			n, err := io.WriteString(c.Conn, text)
			sent += n
			if err != nil {
				if errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) {
					break
				}
				t.Fatalf("got %v after %d bytes, want the end of the connection", err, sent)
			}
			if sent > 24<<20 { // the buffers of two kernels hold some 9 MiB; unsent replies alone would end at 37
				t.Fatal("a connection that takes no replies is read on and on")
			}
		}
		other.Want(":1", "INCR", "seq:1")
	})
}

func TestRepliesThatAreTakenLateAreWholeAndInOrder(t *testing.T) {
	linetest.EachWay(t, resp.New, func() line.Numbers { return linetest.NewCounters() }, func(s *line.Server) { s.Waits().Sweep = 10 * time.Millisecond }, func(t *testing.T, s *line.Server, addr string, _ func()) {
		c := linetest.Dial(t, addr)
		const n = 400
		long := strings.Repeat("y", 50<<10)
		var sending sync.WaitGroup
		sending.Go(func() {
			for i := range n {
				if _, err := io.WriteString(c.Conn, linetest.Array("INCR", "seq:7")+linetest.Array("ECHO", strconv.Itoa(i)+long)+linetest.Array("GET", "seq:7")); err != nil {
					t.Error(err)
					return
				}
			}
		})
		for i := range n {
			for _, want := range []string{":" + strconv.Itoa(i+1), "$" + strconv.Itoa(i) + long, "$" + strconv.Itoa(i+1)} {
				if got := c.Reply(); got != want {
					t.Fatalf("round %d: got %.40s, want %.40s", i, got, want)
				}
			}
		}
		sending.Wait()
	})
}

// gated holds what is asked of one uid.
type gated struct {
	*linetest.Counters
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
	return g.Counters.Take(ctx, key, n)
}

func (g gated) NextBatch(ctx context.Context, space string, keys stream.Keys, counts []uint32, requests []client.Request) ([]client.Range, error) {
	g.wait(ctx, keys.Places...)
	return g.Counters.NextBatch(ctx, space, keys, counts, requests)
}

func (g gated) Begin(ctx context.Context, orders ...*stream.Order) {
	for _, o := range orders {
		go func() {
			g.wait(ctx, o.UIDs...)
			g.Counters.Begin(ctx, o)
		}()
	}
}

func TestASlowKeyHoldsItsOwnConnectionAlone(t *testing.T) {
	var gate chan struct{}
	from := func() line.Numbers {
		gate = make(chan struct{})
		return gated{linetest.NewCounters(), gate, make(chan struct{}, 1)}
	}
	linetest.EachWay(t, resp.New, from, func(*line.Server) {}, func(t *testing.T, s *line.Server, addr string, _ func()) {
		held, other := linetest.Dial(t, addr), linetest.Dial(t, addr)
		held.Send(linetest.Array("INCR", "seq:1") + linetest.Array("INCR", "seq:99") + linetest.Array("PING"))
		held.Send(linetest.Array("INCR", "seq:2"))
		for i := range 100 {
			other.Want(":"+strconv.Itoa(i+1), "INCR", "seq:5")
		}
		close(gate)
		for i, want := range []string{":1", ":1", "+PONG", ":1"} {
			if got := held.Reply(); got != want {
				t.Errorf("reply %d: got %s, want %s", i, got, want)
			}
		}
	})
}

func TestAServerThatStopsAnswersWhatItHasReadAndEndsTheRest(t *testing.T) {
	var gate, entered chan struct{}
	from := func() line.Numbers {
		gate, entered = make(chan struct{}), make(chan struct{}, 1)
		return gated{linetest.NewCounters(), gate, entered}
	}
	linetest.EachWay(t, resp.New, from, func(*line.Server) {}, func(t *testing.T, s *line.Server, addr string, stop func()) {
		held, idle, half := linetest.Dial(t, addr), linetest.Dial(t, addr), linetest.Dial(t, addr)
		idle.Want("+PONG", "PING")
		half.Send("*1\r\n$4\r\nPI")
		held.Send(linetest.Array("PING") + linetest.Array("INCR", "seq:99") + "*1\r\n$4\r\nPI")
		<-entered
		var stopping sync.WaitGroup
		stopping.Go(stop)
		if err := idle.Ended(); err != nil {
			t.Errorf("idle: got %v, want the end", err)
		}
		if err := half.Ended(); err != nil {
			t.Errorf("with half a command: got %v, want the end", err)
		}
		close(gate)
		for _, want := range []string{"+PONG", ":1"} {
			if got := held.Reply(); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
		if err := held.Ended(); err != nil {
			t.Errorf("answered: got %v, want the end", err)
		}
		stopping.Wait()
		if got := s.Stats().Conns; got != 0 {
			t.Errorf("after the end: got %d connections", got)
		}
	})
}
