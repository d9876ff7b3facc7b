package line

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seqsvr/seqsvr/internal/base/wake"
	"github.com/seqsvr/seqsvr/internal/process/telemetry"
	"github.com/seqsvr/seqsvr/internal/wire/auth"
	"github.com/seqsvr/seqsvr/internal/wire/gate"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	"github.com/seqsvr/seqsvr/seq"
)

// The Limits of a Server that is given none.
const (
	DefaultMaxConns    = 10_000
	DefaultMaxPipeline = 10_000
)

// Limits may change while a Server serves.
type Limits struct {
	MaxConns    int // open connections; zero means DefaultMaxConns
	MaxPipeline int // requests of one connection that are answered together; zero means DefaultMaxPipeline
}

// patience holds the deadlines of a connection.
type patience struct {
	Reply   time.Duration // until it takes more of its replies
	Request time.Duration // until the rest of a request comes
	Idle    time.Duration // until a request comes
	// Stranger is the time that a connection has to authenticate.
	Stranger time.Duration
	Sweep    time.Duration // how often connections are looked at for these
}

const (
	// maxReplies is about the size of the replies that are built for one connection before they are
	// sent. So it bounds the memory of a connection that reads nothing.
	maxReplies = 256 << 10
	// keepReply is the largest reply buffer that a connection keeps.
	keepReply = 64 << 10
	// acceptPause is the pause after a failed accept, such as one without free file descriptors.
	acceptPause = 50 * time.Millisecond
	// connShare is the largest share of the process's files for these connections, in eighths.
	connShare = 4
)

// Server answers the connections of one listener. Make it with New, run it once.
type Server struct {
	dialect Dialect
	from    Numbers
	log     *slog.Logger
	ids     atomic.Uint64 // of connections
	stats   stats
	guard   *auth.Guard // if nil, every client may do everything
	// refused counts the connections for which there is no place. If nil, none is counted.
	refused *rpc.Refused
	shown   func(*tls.ConnectionState) auth.Evidence
	waits   patience

	maxPipeline atomic.Int64
	seats       *gate.Seats
	budget      *gate.Budget // of the buffers of all connections

	// lives ends when the server begins to leave, and with it the requests that wait.
	lives context.Context
	end   context.CancelCauseFunc

	loop *loop // serves connections without TLS; if nil, each connection has a goroutine

	mu      sync.Mutex        // guards all below
	conns   map[net.Conn]bool // those with a goroutine each
	leaving bool
	serving sync.WaitGroup
}

// New makes a Server of a dialect. log may be nil.
func New(dialect Dialect, from Numbers, log *slog.Logger) *Server {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s := &Server{dialect: dialect, from: from, log: log, stats: stats{took: telemetry.Durations(), sizes: telemetry.Sizes(), begun: time.Now()}, conns: map[net.Conn]bool{}, budget: gate.NewBudget(DefaultMemory),
		waits: patience{Reply: 10 * time.Second, Request: 10 * time.Second, Idle: 15 * time.Minute, Stranger: 5 * time.Second, Sweep: time.Second}}
	s.CountRefused(nil)
	s.SetLimits(Limits{})
	return s
}

// SetLimits has an effect on new connections and requests. Open connections stay.
func (s *Server) SetLimits(l Limits) {
	most := gate.FilesFor(cmp.Or(l.MaxConns, DefaultMaxConns), connShare)
	s.stats.maxConns.Store(int64(most))
	s.seats.SetMost(most)
	s.maxPipeline.Store(int64(cmp.Or(l.MaxPipeline, DefaultMaxPipeline)))
}

// Serve accepts until ctx ends, then lets every connection have the replies to what it has
// sent, for at most bound, and returns nil. It closes the listener.
func (s *Server) Serve(ctx context.Context, lis net.Listener, bound time.Duration) error {
	work, abort := context.WithCancel(context.Background())
	defer abort()
	defer context.AfterFunc(ctx, func() { _ = lis.Close() })()
	s.lives, s.end = context.WithCancelCause(work)
	var failed error
	if s.loop, failed = newLoop(work, s); failed != nil {
		_ = lis.Close()
		return fmt.Errorf("serve %s on %s: %w", s.dialect.Name(), lis.Addr(), failed)
	}
	if s.loop != nil {
		s.serving.Go(s.loop.run)
	}
	for ctx.Err() == nil {
		c, err := lis.Accept()
		switch {
		case err == nil:
			s.begin(work, c)
		case ctx.Err() != nil:
		case errors.Is(err, net.ErrClosed):
			failed = fmt.Errorf("serve %s on %s: %w", s.dialect.Name(), lis.Addr(), err)
			s.leave(bound, abort)
			return failed
		default:
			s.log.Warn(s.dialect.Name()+" connection not accepted", "error", err)
			wake.Sleep(ctx, acceptPause)
		}
	}
	_ = lis.Close()
	s.leave(bound, abort)
	return nil
}

// begin serves a connection, or tells it that there are too many.
func (s *Server) begin(ctx context.Context, c net.Conn) {
	seat := s.seats.Take(c.RemoteAddr().String())
	if seat == nil {
		s.stats.rejected.Add(1)
		if _, secured := c.(*tls.Conn); !secured { // it would wait for the handshake
			_ = c.SetWriteDeadline(time.Now().Add(time.Second))
			_, _ = io.WriteString(c, s.dialect.Full())
		}
		gate.CloseNow(c)
		return
	}
	s.stats.open.Add(1)
	s.stats.opened.Add(1)
	boundKernel(c)
	me := s.conn(seat, c.RemoteAddr().String())
	if s.loop != nil && s.loop.add(c, me) {
		return
	}
	seat.EndBy(func() { gate.CloseNow(c) })
	s.mu.Lock()
	s.conns[c] = true
	s.mu.Unlock()
	s.serving.Go(func() {
		defer func() {
			_ = c.Close()
			s.mu.Lock()
			delete(s.conns, c)
			s.mu.Unlock()
			s.left(me)
		}()
		s.serve(ctx, c, me)
	})
}

// boundKernel bounds what the kernel keeps of replies that a connection does not take; it would
// grow to megabytes each.
func boundKernel(c net.Conn) {
	if secured, ok := c.(*tls.Conn); ok {
		c = secured.NetConn()
	}
	c, _ = rpc.Unread(c)
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(maxReplies) // a system that refuses has its own bound
	}
}

// left is the end of a connection.
func (s *Server) left(c *Conn) {
	c.session.End()
	c.purse.hold(0)
	c.seat.Leave()
	s.stats.open.Add(-1)
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
	s.end(seq.ErrShuttingDown)
	if s.loop != nil {
		s.loop.stop(leaving)
	}
	late := time.AfterFunc(bound, func() {
		abort()
		if s.loop != nil {
			s.loop.stop(cut)
		}
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
func (s *Server) serve(ctx context.Context, nc net.Conn, c *Conn) {
	if !s.shake(ctx, nc, c) {
		return
	}
	waiting := false // for the rest of a request
	for !c.quit {
		switch open := c.in.open(); {
		case c.Stranger():
			s.until(nc, c.begun.Add(s.waits.Stranger))
		case !open:
			s.within(nc, s.waits.Idle)
		case !waiting:
			s.within(nc, s.waits.Request)
		}
		waiting = c.in.open()
		if c.purse.drawn > 0 { // the next request may come late, and others need the memory
			c.drop()
		}
		room := c.in.room(c.little())
		if !c.fits() {
			s.malformed(errMemory, c)
			s.send(nc, c)
			return
		}
		n, err := nc.Read(room)
		if n == 0 && err != nil {
			if c.late(time.Now()) {
				s.refused.Note(rpc.RefusedUnauthenticated, c.purse.address)
			}
			return
		}
		c.in.fill(n)
		for more := true; more && !c.quit; {
			more, err = c.gather(c.limit())
			if err == nil && !c.fits() {
				err = errMemory
			}
			if len(c.ops) > 0 {
				begun := time.Now()
				if c.ops[0].waits() {
					s.hold(nc, c)
					waiting = false
				} else {
					run(ctx, s.from, c.ops)
				}
				c.reply(begun)
			}
			if err != nil {
				s.malformed(err, c)
			}
			if len(c.out) > 0 && !s.send(nc, c) || err != nil {
				return
			}
		}
	}
}

// hold runs a request that waits, and goes on reading for as long as small requests fit, to see the caller leave.
func (s *Server) hold(nc net.Conn, c *Conn) {
	ctx, end := context.WithCancelCause(s.lives)
	defer end(nil)
	s.until(nc, time.Time{})
	var reading sync.WaitGroup
	reading.Go(func() {
		for len(c.in.unread()) < freely {
			n, err := nc.Read(c.in.room(true))
			c.in.fill(n)
			if err != nil {
				if !errors.Is(err, os.ErrDeadlineExceeded) {
					end(errLeft)
				}
				return
			}
		}
		end(errBehind)
	})
	run(ctx, s.from, c.ops)
	_ = nc.SetReadDeadline(time.Unix(1, 0))
	reading.Wait()
}

// within bounds the reads to come. A Server that leaves has ended them already.
func (s *Server) within(c net.Conn, d time.Duration) { s.until(c, time.Now().Add(d)) }

func (s *Server) until(c net.Conn, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.leaving {
		_ = c.SetReadDeadline(at)
	}
}

// shake waits for the handshake of TLS, and looks at what was shown.
func (s *Server) shake(ctx context.Context, nc net.Conn, c *Conn) bool {
	if secured, ok := nc.(*tls.Conn); ok {
		ctx, end := context.WithTimeout(ctx, s.waits.Stranger)
		defer end()
		if secured.HandshakeContext(ctx) != nil {
			return false
		}
	}
	c.who.Evidence = s.look(nc)
	return true
}

// malformed writes the error with which a connection ends.
func (s *Server) malformed(err error, c *Conn) {
	if errors.Is(err, errMemory) {
		s.refused.Note(rpc.RefusedUnfinished, c.purse.address)
	}
	s.dialect.Tallies()[Malformed][Failed].Add(1)
	c.out = c.session.Refuse(c.out, err)
}

// send gives the caller what was put together; false when it does not take it.
func (s *Server) send(nc net.Conn, c *Conn) bool {
	_ = nc.SetWriteDeadline(time.Now().Add(s.waits.Reply))
	_, err := nc.Write(c.out)
	c.sent()
	return err == nil
}
