package gate

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/tap"

	"github.com/seqsvr/seqsvr/internal/wire/auth"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	"github.com/seqsvr/seqsvr/seq"
)

// Bounds of one connection. Of messages that have not come whole it may have as many bytes
// as two of the largest, and maxStranger until it has shown who it is, where it must; one that
// sends more is closed. gRPC takes whole messages into memory before a handler sees them, so these
// are counted where the bytes pass. Replies that
// the peer does not read stay in memory after the handler has returned: each counts from
// when it is encoded until gRPC lets its bytes go, which it also does if the call is cancelled.
const (
	maxStranger = 64 << 10
	// strangerTimeout closes a connection that has not shown who it is, if no message of it has
	// come whole for so long.
	strangerTimeout = 5 * time.Second
	// maxUnread bounds the bytes of replies that a peer may leave unread before its calls are refused. One
	// reply counts as half of it at most, so that a large reply on its way does not refuse the calls beside
	// it.
	maxUnread = 1 << 20
	// muchUnread bounds the unread bytes of all peers of a server together. Beyond it, each peer has
	// fewUnread.
	muchUnread = 32 << 20
	fewUnread  = maxUnread / 8
	// overhead is taken off for each message beside its own bytes, and a 64th of these: frames. It
	// errs on the side of the peer.
	overhead = 1 << 10
	// writeTimeout ends a connection whose peer takes nothing for so long.
	writeTimeout = 10 * time.Second
	// handshakeTimeout ends a connection that does not come to its first call.
	handshakeTimeout = 5 * time.Second
	// idleTimeout ends a connection that has had no call for so long. Callers connect again
	// by themselves.
	idleTimeout = 15 * time.Minute
	// maxNewcomers bounds a server's connections that have had no call yet, and newcomersShare their share of
	// the files of the process, in eighths.
	maxNewcomers   = 1024
	newcomersShare = 1
	// maxHeader bounds the headers of one call in bytes, maxHeaders their names.
	maxHeader  = 16 << 10
	maxHeaders = 64
)

// The errors that refuse a call of a connection, or close it.
var (
	errUnfinished = fmt.Errorf("%w: too many bytes of unfinished messages", seq.ErrOverloaded)
	errHeaders    = fmt.Errorf("%w: a call with more than %d headers", seq.ErrBadArgument, maxHeaders)
	errStranger   = fmt.Errorf("%w: more than %d bytes of unfinished messages, and no certificate or token", seq.ErrUnauthenticated, maxStranger)
)

// traffic is a connection that counts what of it is in memory.
type traffic struct {
	net.Conn
	memory
	seat    *Seat // nil has none
	called  atomic.Bool
	limit   int64 // of unfinished
	refused *rpc.Refused
	all     *atomic.Int64 // unread of all connections of the server
	closed  atomic.Bool
	unread  atomic.Int64 // bytes of replies that gRPC holds
	wire    *watched     // the same connection above TLS; nil for one of a node
	answers answers
}

// arrived counts bytes of a message that is not whole, or the cost of its call.
func (t *traffic) arrived(n int64, control bool) error {
	limit, err := t.limit, errUnfinished
	if t.stranger.Load() {
		limit, err = maxStranger, errStranger
	}
	if t.unfinished.Add(n) > limit {
		t.refused.Note(rpc.RefusedUnfinished, t.address())
		return err
	}
	return t.draw(control)
}

// draw draws from the account if that is needed.
func (t *traffic) draw(control bool) error {
	if t.held() <= t.drawn.Load()+freely {
		return nil
	}
	return t.account.draw(t, control)
}

// met notes that the connection had a call.
func (t *traffic) met() {
	if t.seat != nil && !t.called.Load() && !t.called.Swap(true) {
		t.seat.Called()
	}
}

// drop closes the connection for a reason of the server's.
func (t *traffic) drop(why rpc.Reason) {
	t.refused.Note(why, t.address())
	_ = t.Close()
}

// watch closes a stranger that sends nothing that counts.
func (t *traffic) watch() {
	switch {
	case !t.stranger.Load() || t.closed.Load():
	case t.heard.Swap(false) || t.work.Load() > 0:
		time.AfterFunc(strangerTimeout, t.watch)
	default:
		t.drop(rpc.RefusedStranger)
	}
}

// Write implements net.Conn.
func (t *traffic) Write(b []byte) (int, error) {
	if err := t.Conn.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return 0, err
	}
	due := t.answers.take()
	n, err := t.Conn.Write(b)
	t.answers.written(due)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.refused.Note(rpc.RefusedUnread, t.address())
	}
	return n, err
}

func (t *traffic) address() string { return t.Conn.RemoteAddr().String() }

// Close implements net.Conn.
func (t *traffic) Close() error {
	if !t.closed.Swap(true) {
		t.account.leave(t)
		if t.seat != nil {
			t.seat.Leave()
		}
	}
	t.forget()
	return t.Conn.Close()
}

// forget no longer counts what is unread: the connection is closed.
func (t *traffic) forget() { t.all.Add(-t.unread.Swap(0)) }

// lower takes n off, down to 0, and says how much that was.
func lower(v *atomic.Int64, n int64) int64 {
	for {
		old := v.Load()
		if off := min(old, n); v.CompareAndSwap(old, old-off) {
			return off
		}
	}
}

// goes notes that gRPC holds so many bytes of a reply, gone that it has let them go.
func (t *traffic) goes(n int64) {
	t.unread.Add(n)
	t.all.Add(n)
	if t.closed.Load() {
		t.forget()
	}
}

func (t *traffic) gone(n int64) { t.all.Add(-lower(&t.unread, n)) }

// full is seq.ErrOverloaded while the peer leaves too much unread.
func (t *traffic) full() error {
	if t == nil {
		return nil
	}
	limit := int64(maxUnread)
	if t.all.Load() > muchUnread {
		limit = fewUnread
	}
	if t.unread.Load() <= limit {
		return nil
	}
	return fmt.Errorf("%w: this connection has more than %d bytes of them", rpc.ErrUnread, limit)
}

// trafficOf is the connection that a call came by; nil for other transports.
func trafficOf(ctx context.Context) *traffic {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return nil
	}
	info, _ := p.AuthInfo.(connInfo)
	return info.traffic
}

// connInfo is an AuthInfo that knows its connection.
type connInfo struct {
	credentials.AuthInfo
	traffic *traffic
}

// Handshake returns the AuthInfo of the handshake, for rpc.AuthInfo.
func (i connInfo) Handshake() credentials.AuthInfo { return i.AuthInfo }

// GetCommonAuthInfo returns the security level for gRPC.
func (i connInfo) GetCommonAuthInfo() credentials.CommonAuthInfo {
	if c, ok := i.AuthInfo.(interface {
		GetCommonAuthInfo() credentials.CommonAuthInfo
	}); ok {
		return c.GetCommonAuthInfo()
	}
	return credentials.CommonAuthInfo{}
}

// counting are credentials of a listener that count the bytes of each connection.
type counting struct {
	credentials.TransportCredentials
	limit   int64         // of the bytes of unfinished messages of one
	all     *atomic.Int64 // bytes of replies that gRPC holds, of all
	account *account
	seats   *Seats
	guard   *auth.Guard
	// refused counts the connections that are closed. If nil, none is counted.
	refused *rpc.Refused
	by      *cancels
	// answered is ServerConfig.Answered.
	answered func(caller string, took time.Duration)
}

// countingCreds counts below creds; nil is plaintext.
func countingCreds(creds credentials.TransportCredentials, limit int, guard *auth.Guard, by *cancels) counting {
	if creds == nil {
		creds = insecure.NewCredentials()
	}
	return counting{creds, int64(limit), new(atomic.Int64), newAccount(memoryBudget, strangersBudget),
		silentSeats(FilesFor(maxNewcomers, newcomersShare), by.refused), guard, by.refused, by, nil}
}

// ServerHandshake implements credentials.TransportCredentials.
func (c counting) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	t := &traffic{Conn: raw, limit: c.limit, all: c.all, refused: c.refused, memory: memory{account: c.account}, answers: answers{observe: c.answered}}
	conn, info, err := c.TransportCredentials.ServerHandshake(t)
	if err != nil {
		return nil, nil, err
	}
	if shown, ok := info.(rpc.ShownInfo); c.guard.Mode() == auth.Require && (!ok || !proves(c.guard, auth.Credentials{Evidence: shown.Evidence})) {
		t.stranger.Store(true)
		time.AfterFunc(strangerTimeout, t.watch)
	}
	if t.wire, err = c.by.watch(conn, info); err != nil {
		return nil, nil, err
	}
	if t.wire != nil {
		conn = t.wire
	}
	if t.seat = c.seats.Take(t.address()); t.seat != nil {
		t.seat.EndBy(func() { _ = t.Close() })
	}
	return &framed{Conn: conn, traffic: t, in: frames{skip: preface}}, connInfo{info, t}, nil
}

// proves reports whether there is somebody for whom w speaks.
func proves(guard *auth.Guard, w auth.Credentials) bool {
	_, role := guard.Holder(w)
	return role != ""
}

// tap is a grpc.InTapHandle. It closes a connection with headers that nobody needs, and looks at who
// calls before the message comes, for as long as the connection has not shown it.
func (c counting) tap(ctx context.Context, info *tap.Info) (context.Context, error) {
	if c.answered != nil {
		ctx = withArrival(ctx)
	}
	many := len(info.Header) > maxHeaders
	if !many && c.guard.Mode() != auth.Require {
		return ctx, admitOpen(ctx, info)
	}
	switch t := trafficOf(ctx); {
	case t == nil:
	case many: // gRPC keeps the headers of a call that is refused here until its connection ends
		if !t.closed.Load() {
			t.drop(rpc.RefusedUnfinished)
		}
		return ctx, rpc.ToStatus(errHeaders)
	case t.stranger.Load() && proves(c.guard, rpc.WhoOf(ctx)):
		t.stranger.Store(false)
	}
	return ctx, admitOpen(ctx, info)
}

// Clone implements credentials.TransportCredentials.
func (c counting) Clone() credentials.TransportCredentials {
	c.TransportCredentials = c.TransportCredentials.Clone()
	return c
}

// counted is a stream whose messages are counted.
type counted struct {
	grpc.ServerStream
	traffic *traffic
	call    *call
	begun   time.Time
	messages
	sending atomic.Int64 // since when a message waits to be sent, in ns after begun; zero if none waits
}

// now is the time since the stream began, in ns. It takes no part in jumps of the clock.
func (c *counted) now() int64 { return int64(time.Since(c.begun)) + 1 }

// SendMsg implements grpc.ServerStream. gRPC itself lets a stream have about 64 KiB and a
// message unread before it waits.
func (c *counted) SendMsg(m any) error {
	c.traffic.answers.add(c.goes(m))
	c.sending.Store(c.now())
	err := c.ServerStream.SendMsg(c.traffic.reply(m))
	c.sending.Store(0)
	return err
}

// RecvMsg implements grpc.ServerStream.
func (c *counted) RecvMsg(m any) error {
	if err := c.call.receive(c.ServerStream.RecvMsg, m); err != nil {
		return err
	}
	c.comes(m)
	return nil
}

// run lets the handler serve the stream, and ends it with seq.ErrOverloaded if its peer
// does not read for writeTimeout: a handler that sends would wait for ever, with all that
// it holds. The handler ends soon after, as the context of its stream does.
func (c *counted) run(handler func() error) error {
	done := make(chan error, 1)
	go func() { done <- handler() }()
	look := time.NewTicker(writeTimeout / 4)
	defer look.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-look.C:
			if at := c.sending.Load(); at != 0 && c.now()-at > int64(writeTimeout) {
				return fmt.Errorf("%w: of this stream", rpc.ErrUnread)
			}
		}
	}
}
