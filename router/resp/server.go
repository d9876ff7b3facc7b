package resp

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seqsvr/seqsvr/internal/auth"
	"github.com/seqsvr/seqsvr/internal/wake"
)

// The Limits of a Server that is given none.
const (
	DefaultMaxConns    = 10_000
	DefaultMaxPipeline = 10_000
)

// Limits may change while a Server serves.
type Limits struct {
	MaxConns    int // connections at a time; 0: DefaultMaxConns
	MaxPipeline int // commands of one connection that are answered together; 0: DefaultMaxPipeline
}

const (
	// replyTimeout ends a connection that does not take its replies.
	replyTimeout = 30 * time.Second
	// keepReply is how large a reply's buffer may grow without being given up again.
	keepReply = 64 << 10
	// acceptPause is after an accept that failed for want of something, such as files.
	acceptPause = 50 * time.Millisecond
)

// Server answers the connections of one listener. Make it with New, run it once.
type Server struct {
	from  Numbers
	log   *slog.Logger
	ids   atomic.Uint64 // of connections
	stats *stats
	guard *auth.Guard // nil: everybody may do everything
	shown func(*tls.ConnectionState) auth.Shown

	maxConns, maxPipeline atomic.Int64

	mu      sync.Mutex // guards all below
	conns   map[net.Conn]bool
	leaving bool
	serving sync.WaitGroup
}

// New makes a Server. log may be nil.
func New(from Numbers, log *slog.Logger) *Server {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s := &Server{from: from, log: log, stats: newStats(), conns: map[net.Conn]bool{}}
	s.SetLimits(Limits{})
	return s
}

// SetLimits has an effect on new connections and commands. Open connections stay.
func (s *Server) SetLimits(l Limits) {
	s.maxConns.Store(int64(cmp.Or(l.MaxConns, DefaultMaxConns)))
	s.maxPipeline.Store(int64(cmp.Or(l.MaxPipeline, DefaultMaxPipeline)))
}

// Serve accepts until ctx ends, then lets every connection have the replies to what it has
// sent, for at most bound, and returns nil. It closes the listener.
func (s *Server) Serve(ctx context.Context, lis net.Listener, bound time.Duration) error {
	work, abort := context.WithCancel(context.Background())
	defer abort()
	defer context.AfterFunc(ctx, func() { _ = lis.Close() })()
	var failed error
	for ctx.Err() == nil {
		c, err := lis.Accept()
		switch {
		case err == nil:
			s.begin(work, c)
		case ctx.Err() != nil:
		case errors.Is(err, net.ErrClosed):
			failed = fmt.Errorf("serve RESP on %s: %w", lis.Addr(), err)
			s.leave(bound, abort)
			return failed
		default:
			s.log.Warn("RESP connection not accepted", "error", err)
			wake.Sleep(ctx, acceptPause)
		}
	}
	_ = lis.Close()
	s.leave(bound, abort)
	return nil
}

// begin serves a connection, or tells it that there are too many.
func (s *Server) begin(ctx context.Context, c net.Conn) {
	s.mu.Lock()
	full := len(s.conns) >= int(s.maxConns.Load())
	if s.leaving || full {
		s.mu.Unlock()
		if full {
			s.stats.rejected.Add(1)
			_ = c.SetWriteDeadline(time.Now().Add(time.Second))
			_, _ = io.WriteString(c, "-ERR max number of clients reached\r\n")
		}
		_ = c.Close()
		return
	}
	s.conns[c] = true
	s.mu.Unlock()
	s.stats.opened.Add(1)
	s.serving.Go(func() {
		defer func() {
			_ = c.Close()
			s.mu.Lock()
			delete(s.conns, c)
			s.mu.Unlock()
		}()
		s.serve(ctx, c)
	})
}

// leave has no connection read any more, waits until all are answered, and then ends
// what is left.
func (s *Server) leave(bound time.Duration, abort context.CancelFunc) {
	s.mu.Lock()
	s.leaving = true
	for c := range s.conns {
		_ = c.SetReadDeadline(time.Unix(1, 0))
	}
	s.mu.Unlock()
	late := time.AfterFunc(bound, func() {
		abort()
		s.mu.Lock()
		defer s.mu.Unlock()
		for c := range s.conns {
			_ = c.Close()
		}
	})
	s.serving.Wait()
	late.Stop()
}

// serve is one connection: read, answer all that is complete, and again.
func (s *Server) serve(ctx context.Context, c net.Conn) {
	me := &session{id: s.ids.Add(1), stats: s.stats, guard: s.guard}
	var in Parser
	var out writer
	var ops []op
	for !me.quit {
		n, err := c.Read(in.Room())
		if n == 0 && err != nil {
			return
		}
		in.Fill(n)
		if !me.looked {
			me.who.Shown, me.looked = s.look(c), true
		}
		for more := true; more && !me.quit; {
			limit := int(s.maxPipeline.Load())
			ops, err = gather(me, &in, ops[:0], limit)
			more = len(ops) == limit
			if len(ops) > 0 {
				s.answer(ctx, ops, &out)
			}
			if err != nil {
				s.stats.of(malformed)[wrong].Add(1)
				out.fault("ERR " + err.Error())
			}
			if len(out.buf) > 0 && !s.send(c, &out) || err != nil {
				return
			}
		}
	}
}

// answer gets what the commands want, and writes their replies.
func (s *Server) answer(ctx context.Context, ops []op, out *writer) {
	begun := time.Now()
	run(ctx, s.from, ops)
	for i := range ops {
		ops[i].tally[ops[i].reply(out)].Add(1)
	}
	s.stats.took.Observe(time.Since(begun))
	s.stats.sizes.Add(uint64(len(ops)), 1)
}

// gather reads the commands that are complete, up to QUIT and the limit.
func gather(me *session, in *Parser, ops []op, limit int) ([]op, error) {
	for len(ops) < limit && !me.quit {
		args, err := in.Next()
		if args == nil || err != nil {
			return ops, err
		}
		ops = append(ops, me.read(args))
	}
	return ops, nil
}

// send gives the caller what was put together; false when it does not take it.
func (s *Server) send(c net.Conn, out *writer) bool {
	_ = c.SetWriteDeadline(time.Now().Add(replyTimeout))
	_, err := c.Write(out.buf)
	if cap(out.buf) > keepReply {
		out.buf = nil
	}
	out.buf = out.buf[:0]
	return err == nil
}
