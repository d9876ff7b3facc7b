package rpc

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/seqsvr/seqsvr/internal/wire/auth"
)

// serverCreds are gRPC's TLS credentials that read the identity of who connects, once a
// connection, and let plaintext in while a cluster goes over to TLS.
type serverCreds struct {
	credentials.TransportCredentials
	tls *TLS
}

// ServerHandshake implements credentials.TransportCredentials.
func (c serverCreds) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	if c.tls.plaintext != NoPlaintext {
		peeked, secured, err := peek(conn)
		if err != nil {
			return nil, nil, err
		}
		if conn = peeked; !secured {
			return insecure.NewCredentials().ServerHandshake(conn)
		}
	}
	secured, info, err := c.TransportCredentials.ServerHandshake(conn)
	if bad := (*tls.CertificateVerificationError)(nil); errors.As(err, &bad) {
		c.tls.refused.Note(RefusedCertificate, conn.RemoteAddr().String())
		c.tls.complain.warn(c.tls.log, "a connection was refused for its certificate", "from", conn.RemoteAddr().String(), "error", err)
	}
	if shown, ok := info.(credentials.TLSInfo); ok && err == nil && c.tls.cluster != "" {
		who := auth.Look(shown.State.PeerCertificates, c.tls.cluster)
		return expiring(secured, who.Until), ShownInfo{shown, who}, nil
	}
	return secured, info, err
}

// CountRefused makes r count the handshakes and connections that are refused. Call it before the first use.
func (t *TLS) CountRefused(r *Refused) {
	if t != nil {
		t.refused = r
	}
}

// Clone implements credentials.TransportCredentials.
func (c serverCreds) Clone() credentials.TransportCredentials {
	return serverCreds{c.TransportCredentials.Clone(), c.tls}
}

// expireEarly is the time before the end of a certificate at which its connections are closed. A caller
// that has a new certificate by then meets no refusal.
const expireEarly = time.Second

// expiring closes a connection when its certificate ends. If end is zero, it never does. Its calls would be
// refused from then on, while gRPC connects again, with the current certificate.
func expiring(conn net.Conn, end time.Time) net.Conn {
	if end.IsZero() {
		return conn
	}
	return &lent{conn, time.AfterFunc(time.Until(end)-expireEarly, func() { _ = conn.Close() })}
}

// lent is a connection that is closed by a timer.
type lent struct {
	net.Conn
	end *time.Timer
}

// Close implements net.Conn.
func (l *lent) Close() error {
	l.end.Stop()
	return l.Conn.Close()
}

// rateLimitedLog logs at most one line a second, with how many were left out before it.
type rateLimitedLog struct {
	last atomic.Int64 // time of the latest line, in Unix nanoseconds
	left atomic.Uint64
}

func (s *rateLimitedLog) warn(log *slog.Logger, text string, args ...any) {
	now, last := time.Now().UnixNano(), s.last.Load()
	if now-last >= int64(time.Second) && s.last.CompareAndSwap(last, now) {
		log.Warn(text, append(args, "others_not_logged", s.left.Swap(0))...)
		return
	}
	s.left.Add(1)
}
