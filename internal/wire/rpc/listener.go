package rpc

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"time"
)

// Bounds of connections that have not said yet whether they speak TLS.
const (
	firstByte = 30 * time.Second // then one that was silent is closed
	maxSilent = 1024             // more are closed at once
)

// Listen secures a listener for net/http and the like: what it accepts is a *tls.Conn, or
// plaintext where AllowPlaintext lets that in and the first byte of the connection says so.
// Nil gives the listener back. ErrTLS without a certificate.
func (t *TLS) Listen(lis net.Listener, clients Clients) (net.Listener, error) {
	cfg, err := t.Listener(clients)
	switch {
	case err != nil:
		return nil, err
	case cfg == nil:
		return lis, nil
	case t.plaintext == NoPlaintext:
		return tls.NewListener(lis, cfg), nil
	}
	e := &eitherListener{Listener: lis, cfg: cfg, refuse: t.refused, ready: make(chan accepted), silent: make(chan struct{}, maxSilent)}
	e.open, e.close = context.WithCancel(context.Background())
	go e.accept()
	return e, nil
}

// eitherListener takes TLS and plaintext. The first byte of each connection is waited for
// beside the others: one that is silent holds up no other.
type eitherListener struct {
	net.Listener
	cfg    *tls.Config
	refuse *Refused
	ready  chan accepted
	silent chan struct{}   // one for each connection whose first byte is waited for
	open   context.Context // ends with Close
	close  context.CancelFunc
}

// accepted is what Accept gives.
type accepted struct {
	conn net.Conn
	err  error
}

// accept takes connections until Close.
func (l *eitherListener) accept() {
	for l.open.Err() == nil {
		conn, err := l.Listener.Accept()
		if err != nil {
			l.give(accepted{err: err})
			continue
		}
		select {
		case l.silent <- struct{}{}:
			go l.look(conn)
		default:
			l.refuse.Note(RefusedConnections, conn.RemoteAddr().String())
			_ = conn.Close()
		}
	}
}

// look gives a connection once its first byte has come.
func (l *eitherListener) look(conn net.Conn) {
	_ = conn.SetReadDeadline(time.Now().Add(firstByte))
	awake := context.AfterFunc(l.open, func() { _ = conn.SetReadDeadline(time.Unix(1, 0)) })
	peeked, secured, err := peek(conn)
	<-l.silent
	if !awake() || err != nil {
		_ = conn.Close()
		return
	}
	_ = conn.SetReadDeadline(time.Time{})
	if secured {
		peeked = tls.Server(peeked, l.cfg)
	}
	l.give(accepted{conn: peeked})
}

// give waits until it is taken, or the listener has ended.
func (l *eitherListener) give(a accepted) {
	select {
	case l.ready <- a:
	case <-l.open.Done():
		if a.conn != nil {
			_ = a.conn.Close()
		}
	}
}

// Accept implements net.Listener.
func (l *eitherListener) Accept() (net.Conn, error) {
	select {
	case a := <-l.ready:
		return a.conn, a.err
	case <-l.open.Done():
		return nil, &net.OpError{Op: "accept", Net: l.Addr().Network(), Addr: l.Addr(), Err: net.ErrClosed}
	}
}

// Close implements net.Listener.
func (l *eitherListener) Close() error {
	l.close()
	return l.Listener.Close()
}

// handshakeRecord is the first byte of every TLS connection. No HTTP begins with it, and no
// command of Redis.
const handshakeRecord = 0x16

// peek waits for the first byte of a connection, and says whether it begins TLS.
func peek(conn net.Conn) (same net.Conn, secured bool, err error) {
	first := make([]byte, 1)
	if _, err := io.ReadFull(conn, first); err != nil {
		return nil, false, err
	}
	return &begun{conn, first}, first[0] == handshakeRecord, nil
}

// begun is a connection whose first byte was read.
type begun struct {
	net.Conn
	first []byte // until it is read again
}

// Read implements net.Conn.
func (b *begun) Read(p []byte) (int, error) {
	if len(b.first) == 0 || len(p) == 0 {
		return b.Conn.Read(p)
	}
	n := copy(p, b.first)
	b.first = b.first[n:]
	return n, nil
}

// Unread is the connection that conn reads from, and what conn has read of it beforehand, for
// readers that go on by other means. below is conn itself where nothing was read of it.
func Unread(conn net.Conn) (below net.Conn, first []byte) {
	if b, ok := conn.(*begun); ok {
		return b.Conn, b.first
	}
	return conn, nil
}
