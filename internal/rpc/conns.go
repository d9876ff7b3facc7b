package rpc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	protocodec "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/peer"
	"google.golang.org/protobuf/proto"

	"github.com/seqsvr/seqsvr/seq"
)

// Bounds of one connection. Of messages that have not come whole it may have as many bytes
// as two of the largest; one that sends more is closed. gRPC takes whole messages into
// memory before a handler sees them, so these are counted where the bytes pass. Replies that
// the peer does not read stay in memory after the handler has returned: each counts from
// when it is encoded until gRPC lets its bytes go, which it also does if the call is cancelled.
const (
	// maxUnread is how many bytes of replies a peer may leave unread before its calls are
	// refused. One reply counts as half of it at most: a large one that is on its way must not
	// have the calls beside it refused.
	maxUnread = 1 << 20
	// muchUnread is of all peers of a server together; beyond it each has fewUnread.
	muchUnread = 32 << 20
	fewUnread  = maxUnread / 8
	// overhead is taken off for each message beside its own bytes: headers and frames. It
	// errs on the side of the peer.
	overhead = 1 << 10
	// writeTimeout ends a connection whose peer takes nothing for so long.
	writeTimeout = 10 * time.Second
	// handshakeTimeout ends a connection that does not come to its first call.
	handshakeTimeout = 5 * time.Second
	// idleTimeout ends a connection that has had no call for so long. Callers connect again
	// by themselves.
	idleTimeout = 15 * time.Minute
	// maxHeader bounds the headers of one call in bytes.
	maxHeader = 16 << 10
)

// errUnfinished closes a connection.
var errUnfinished = errors.New("too many bytes of unfinished messages")

// errUnread refuses the calls of a peer that does not read.
var errUnread = fmt.Errorf("%w: replies that were not read", seq.ErrOverloaded)

// traffic is a connection that counts what of it is in memory.
type traffic struct {
	net.Conn
	limit      int64 // of unfinished
	refused    *Refused
	all        *atomic.Int64 // unread of all connections of the server
	closed     atomic.Bool
	unread     atomic.Int64 // bytes of replies that gRPC holds
	unfinished atomic.Int64 // bytes that were read and are not of a whole message
	calls      *watched     // the same connection above TLS; nil for one of a node
}

// Read implements net.Conn.
func (t *traffic) Read(b []byte) (int, error) {
	n, err := t.Conn.Read(b)
	if t.unfinished.Add(int64(n)) > t.limit {
		t.refused.Note(RefusedUnfinished, t.address())
		return 0, errUnfinished
	}
	return n, err
}

// Write implements net.Conn.
func (t *traffic) Write(b []byte) (int, error) {
	if err := t.Conn.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return 0, err
	}
	n, err := t.Conn.Write(b)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.refused.Note(RefusedUnread, t.address())
	}
	return n, err
}

func (t *traffic) address() string { return t.Conn.RemoteAddr().String() }

// Close implements net.Conn.
func (t *traffic) Close() error {
	t.closed.Store(true)
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

// came notes that a whole message has arrived.
func (t *traffic) came(m any) {
	if t != nil {
		lower(&t.unfinished, size(m)+overhead)
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
	return fmt.Errorf("%w: this connection has more than %d bytes of them", errUnread, limit)
}

// size is how many bytes a message travels as; 0 for what is no message.
func size(m any) int64 {
	if pm, ok := m.(proto.Message); ok {
		return int64(proto.Size(pm))
	}
	return 0
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

// AuthInfo is what the handshake found out about the peer of a call; nil for none.
func AuthInfo(ctx context.Context) credentials.AuthInfo {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return nil
	}
	if info, ok := p.AuthInfo.(connInfo); ok {
		return info.AuthInfo
	}
	return p.AuthInfo
}

// connInfo is an AuthInfo that knows its connection.
type connInfo struct {
	credentials.AuthInfo
	traffic *traffic
}

// GetCommonAuthInfo is how gRPC asks for the security level.
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
	limit int64         // of the bytes of unfinished messages of one
	all   *atomic.Int64 // bytes of replies that gRPC holds, of all
	// refused counts the connections that are closed. If nil, none is counted.
	refused *Refused
	by      *cancels
}

// countingCreds counts below creds; nil is plaintext.
func countingCreds(creds credentials.TransportCredentials, limit int, by *cancels) counting {
	if creds == nil {
		creds = insecure.NewCredentials()
	}
	return counting{creds, int64(limit), new(atomic.Int64), by.refused, by}
}

// ServerHandshake implements credentials.TransportCredentials.
func (c counting) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	t := &traffic{Conn: raw, limit: c.limit, all: c.all, refused: c.refused}
	conn, info, err := c.TransportCredentials.ServerHandshake(t)
	if err != nil {
		return nil, nil, err
	}
	if t.calls, err = c.by.watch(conn, info); err != nil {
		return nil, nil, err
	}
	if t.calls != nil {
		conn = t.calls
	}
	return conn, connInfo{info, t}, nil
}

// Clone implements credentials.TransportCredentials.
func (c counting) Clone() credentials.TransportCredentials {
	return counting{c.TransportCredentials.Clone(), c.limit, c.all, c.refused, c.by}
}

// reply is a message for a peer whose connection counts it.
type reply struct {
	m       any
	traffic *traffic
}

// reply is the message as it is to be handed to gRPC; a nil connection counts nothing.
func (t *traffic) reply(m any) any {
	if t == nil {
		return m
	}
	return reply{m, t}
}

// codec is the codec of protobuf that counts replies for as long as gRPC holds their bytes.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2(protocodec.Name)} }

// Marshal implements encoding.CodecV2. Replies that are too small for a pool are not counted:
// a connection has as many as it may have calls.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	r, ok := v.(reply)
	if !ok {
		return c.CodecV2.Marshal(v)
	}
	m, ok := r.m.(proto.Message)
	if !ok {
		return c.CodecV2.Marshal(r.m)
	}
	size := proto.Size(m)
	if mem.IsBelowBufferPoolingThreshold(size) {
		return c.CodecV2.Marshal(m)
	}
	buf := buffers.Get(size)
	if _, err := (proto.MarshalOptions{UseCachedSize: true}).MarshalAppend((*buf)[:0], m); err != nil {
		buffers.Put(buf)
		return nil, fmt.Errorf("encode a reply: %w", err)
	}
	return mem.BufferSlice{mem.NewBuffer(buf, r.traffic.hold(min(int64(cap(*buf)), maxUnread/2)))}, nil
}

// held is where the bytes of a reply go once gRPC has written or dropped them.
type held struct{ count *count }

// count is what a reply counts for, until it is over.
type count struct {
	traffic *traffic
	bytes   int64
	over    atomic.Bool
}

func (c *count) end() {
	if !c.over.Swap(true) {
		c.traffic.gone(c.bytes)
	}
}

// hold counts the bytes of a reply. gRPC now and then forgets the bytes of a call that was
// cancelled without giving them back; these count until they are collected as garbage.
func (t *traffic) hold(bytes int64) *held {
	t.goes(bytes)
	h := &held{&count{traffic: t, bytes: bytes}}
	runtime.AddCleanup(h, (*count).end, h.count)
	return h
}

// Get implements mem.BufferPool.
func (*held) Get(n int) *[]byte { return buffers.Get(n) }

// Put implements mem.BufferPool.
func (h *held) Put(b *[]byte) {
	h.count.end()
	buffers.Put(b)
}

// counted is a stream whose messages are counted.
type counted struct {
	grpc.ServerStream
	traffic *traffic
	begun   time.Time
	sending atomic.Int64 // since when a message waits to be sent, in ns after begun; 0: none
}

// now is the time since the stream began, in ns. It takes no part in jumps of the clock.
func (c *counted) now() int64 { return int64(time.Since(c.begun)) + 1 }

// SendMsg implements grpc.ServerStream. gRPC itself lets a stream have about 64 KiB and a
// message unread before it waits.
func (c *counted) SendMsg(m any) error {
	c.sending.Store(c.now())
	err := c.ServerStream.SendMsg(c.traffic.reply(m))
	c.sending.Store(0)
	return err
}

// RecvMsg implements grpc.ServerStream.
func (c *counted) RecvMsg(m any) error {
	err := c.ServerStream.RecvMsg(m)
	if err == nil {
		c.traffic.came(m)
	}
	return err
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
				return fmt.Errorf("%w: of this stream", errUnread)
			}
		}
	}
}
