package line

import (
	"context"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seqsvr/seqsvr/internal/sdk/stream"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	"github.com/seqsvr/seqsvr/seq"
)

// loop serves all plain TCP connections in one goroutine. It reads the ready connections, sends all
// their commands as one batch, and polls again. The goroutine that receives the answers writes the
// replies of each connection in one system call. So a command costs no goroutine and no timer. The
// loop waits for its epoll descriptor in Go's poller, because a goroutine in epoll_wait would hold
// a processor.
//
// A busy connection belongs to the goroutine that answers it, and any other connection to the loop.
// Only the loop closes connections. It does not read a connection that is busy or has unsent
// replies.
type loop struct {
	s    *Server
	ctx  context.Context // of the calls
	epfd int
	file *os.File // epfd, in Go's poller
	poll syscall.RawConn
	bell int // eventfd that ends a wait

	// The loop's own.
	conns  []*looped // by descriptor; nil if the descriptor is not open
	open   int
	now    time.Time // when this turn began
	events [256]unix.EpollEvent
	got    int // events that came with the end of the wait
	orders []*stream.Order
	swept  time.Time

	leave atomic.Int32 // stay, leaving or cut

	mu     sync.Mutex // guards all below
	queue  []*looped  // connections to check; nil means that the loop checks all of them
	asleep bool
	ended  bool // takes no more
}

// How a loop leaves.
const (
	stay    = iota
	leaving // closes the connections that want nothing
	cut     // and those that do not take their replies
)

// newLoop makes a loop.
func newLoop(ctx context.Context, s *Server) (*loop, error) {
	epfd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	if err := unix.SetNonblock(epfd, true); err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	bell, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		_ = unix.Close(epfd)
		return nil, os.NewSyscallError("eventfd", err)
	}
	l := &loop{s: s, ctx: ctx, epfd: epfd, bell: bell, file: os.NewFile(uintptr(epfd), "epoll"), swept: time.Now()}
	if l.poll, err = l.file.SyscallConn(); err == nil {
		err = l.watch(bell, unix.EPOLLIN|unix.EPOLLET)
	}
	if err != nil {
		l.free()
		return nil, err
	}
	return l, nil
}

func (l *loop) free() {
	_ = l.file.Close()
	_ = unix.Close(l.bell)
}

func (l *loop) watch(fd int, events uint32) error {
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(l.epfd, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: events, Fd: int32(fd)}))
}

// add takes a connection over; false if it is none that a loop can serve.
func (l *loop) add(conn net.Conn, me *Conn) bool {
	below, first := rpc.Unread(conn)
	tcp, ok := below.(*net.TCPConn)
	if !ok {
		return false
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return false
	}
	fd := -1
	// Its own descriptor, of which Go's poller does not know.
	if err := raw.Control(func(of uintptr) { fd, err = unix.FcntlInt(of, unix.F_DUPFD_CLOEXEC, 0) }); err != nil || fd < 0 {
		return false
	}
	_ = conn.Close()
	c := &looped{Conn: me, l: l, fd: fd, since: time.Now()}
	c.order.Done = c.answered
	if len(first) > 0 {
		c.in.fill(copy(c.in.room(true), first))
	}
	if !l.enqueue(c) {
		_ = unix.Close(fd)
		l.s.left(me)
		return true
	}
	me.seat.EndBy(func() {
		c.state.Or(evicted)
		l.enqueue(c)
	})
	return true
}

// enqueue has the loop look at a connection; false if there is no loop any more.
func (l *loop) enqueue(c *looped) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return false
	}
	l.queue = append(l.queue, c)
	if l.asleep {
		l.asleep = false
		_, _ = unix.Write(l.bell, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	}
	return true
}

// stop has the loop end once no connection is left: how is leaving or cut.
func (l *loop) stop(how int32) {
	l.leave.Store(how)
	l.enqueue(nil)
}

// run serves until stop, and until no connection is left.
func (l *loop) run() {
	defer l.free()
	var tick *time.Timer
	tick = time.AfterFunc(l.s.waits.Sweep, func() {
		if l.enqueue(nil) {
			tick.Reset(l.s.waits.Sweep)
		}
	})
	for {
		l.now = time.Now()
		l.look()
		if len(l.orders) > 0 {
			// Callers that were woken with the last answers send now: let those come along.
			runtime.Gosched()
			l.look()
		}
		l.begin()
		if l.sweep() {
			return
		}
		l.wait()
	}
}

// wait ends when a connection has something, or the bell rings.
func (l *loop) wait() {
	l.mu.Lock()
	l.asleep = len(l.queue) == 0
	asleep := l.asleep
	l.mu.Unlock()
	if !asleep {
		return
	}
	err := l.poll.Read(func(fd uintptr) bool {
		l.got = l.pick()
		return l.got > 0
	})
	if err != nil {
		l.s.log.Error(l.s.dialect.Name()+" connections cannot be waited for", "error", err)
		time.Sleep(acceptPause)
	}
	l.mu.Lock()
	l.asleep = false
	l.mu.Unlock()
}

// pick takes the events that are there.
func (l *loop) pick() int {
	n, _ := unix.EpollWait(l.epfd, l.events[:], 0)
	return max(n, 0)
}

// look reads all connections that have something.
func (l *loop) look() {
	n := l.got
	if l.got = 0; n == 0 {
		n = l.pick()
	}
	for _, e := range l.events[:n] {
		if int(e.Fd) >= len(l.conns) || l.conns[e.Fd] == nil {
			continue // the bell
		}
		news := uint32(again)
		if e.Events&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0 {
			news |= hung
		}
		l.visit(l.conns[e.Fd], news)
	}
	l.mu.Lock()
	queue := l.queue
	l.queue = nil
	l.mu.Unlock()
	for _, c := range queue {
		if c != nil && c.fd >= 0 && l.known(c) {
			l.visit(c, again)
		}
	}
}

// known begins to watch a connection that is new; false if that fails.
func (l *loop) known(c *looped) bool {
	if c.fd < len(l.conns) && l.conns[c.fd] == c {
		return true
	}
	if c.fd >= len(l.conns) {
		l.conns = append(l.conns, make([]*looped, c.fd+64-len(l.conns))...)
	}
	l.conns[c.fd] = c
	l.open++
	if err := l.watch(c.fd, unix.EPOLLIN|unix.EPOLLOUT|unix.EPOLLRDHUP|unix.EPOLLET); err != nil {
		l.s.log.Error(l.s.dialect.Name()+" connection cannot be watched", "error", err)
		l.close(c)
		return false
	}
	return true
}

// visit serves a connection, or leaves word for the goroutine that answers it.
func (l *loop) visit(c *looped, news uint32) {
	if c.state.Or(news)&busy != 0 {
		c.hear()
		return
	}
	c.state.And(^uint32(again))
	l.serve(c)
}

// serve reads a connection until it has a request, and begins its requests.
func (l *loop) serve(c *looped) {
	if c.flush(); c.ends() {
		l.close(c)
		return
	}
	if len(c.out) > 0 || c.fault != nil || c.quit {
		return // until its replies are taken
	}
	limit := min(c.limit(), seq.MaxBatch)
	for drained := false; ; {
		var more bool
		more, c.fault = c.gather(limit)
		if len(c.ops) > 0 || c.fault != nil {
			if c.fault == nil && !c.fits() {
				c.fault = errMemory
			}
			c.since = l.now
			if more || !drained {
				c.state.Or(again)
			}
			l.start(c)
			return
		}
		if drained || l.leave.Load() != stay {
			return
		}
		open := c.in.open()
		room := c.in.room(c.little())
		if !c.fits() {
			c.fault = errMemory
			l.start(c)
			return
		}
		n, err := unix.Read(c.fd, room)
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN:
			return
		case n <= 0:
			l.close(c)
			return
		}
		c.in.fill(n)
		drained = n < len(room) && c.state.Load()&hung == 0
		if !open {
			c.since = l.now
		}
	}
}

// start begins what a connection wants.
func (l *loop) start(c *looped) {
	c.started = l.now
	c.state.Or(busy)
	switch plain := c.sort(); {
	case !plain && c.ops[0].waits():
		var ctx context.Context
		ctx, c.giveUp = context.WithCancelCause(l.s.lives)
		c.hear()
		go func(end context.CancelCauseFunc) {
			run(ctx, l.s.from, c.ops)
			end(nil)
			c.answer()
		}(c.giveUp)
	case !plain:
		go func() {
			run(l.ctx, l.s.from, c.ops)
			c.answer()
		}()
	case len(c.order.UIDs) == 0:
		c.answer()
	default:
		var err error
		if c.place, err = l.s.from.Admit(l.ctx, &c.order); err != nil {
			c.fill(func(o *Op) { o.Err = err })
			c.answer()
			return
		}
		l.orders = append(l.orders, &c.order)
	}
}

// begin sends what all connections want.
func (l *loop) begin() {
	if len(l.orders) == 0 {
		return
	}
	l.s.from.Begin(l.ctx, l.orders...)
	clear(l.orders)
	l.orders = l.orders[:0]
}

// sweep ends the connections that have waited for too long, once in a while; true when the loop
// has ended.
func (l *loop) sweep() bool {
	how := l.leave.Load()
	if how == stay && l.now.Sub(l.swept) < l.s.waits.Sweep {
		return false
	}
	l.swept = l.now
	for _, c := range l.conns {
		if c == nil || c.state.Load()&(busy|again) != 0 {
			continue
		}
		limit := l.s.waits.Idle
		switch {
		case len(c.out) > 0:
			limit = l.s.waits.Reply
		case c.in.open():
			limit = l.s.waits.Request
		}
		if l.now.Sub(c.since) >= l.s.waits.Sweep { // others need the memory
			c.order.UIDs, c.order.Counts, c.order.Ranges = nil, nil, nil
			c.drop()
			c.fits()
		}
		if c.late(l.now) && how == stay {
			l.s.refused.Note(rpc.RefusedUnauthenticated, c.purse.address)
			limit = 0
		}
		if how == cut || how == leaving && len(c.out) == 0 || l.now.Sub(c.since) >= limit {
			l.close(c)
		}
	}
	if how == stay || l.open > 0 {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.queue { // those that came too late
		if c != nil && c.fd >= 0 {
			_ = unix.Close(c.fd)
			l.s.left(c.Conn)
		}
	}
	l.ended = true
	return true
}

func (l *loop) close(c *looped) {
	l.conns[c.fd] = nil
	l.open--
	_ = unix.Close(c.fd)
	c.fd = -1
	l.s.left(c.Conn)
}
