package rpc

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/seqsvr/seqsvr/internal/wire/auth"
)

// TLSFiles names the PEM files of one process. They may be replaced while it runs: new
// connections go by the new ones, no restart is needed.
type TLSFiles struct {
	Cert string // chain of this process, its own certificate first
	Key  string // of Cert
	CA   string // certificates that sign the certificates of the other side; if empty, the system's
}

// ErrTLS is a certificate, key or CA file that cannot be used, or half of a pair.
var ErrTLS = errors.New("bad TLS files")

// TLS secures listeners and connections by the files. Each handshake gets a tls.Config of its own, made
// from the current files, so crypto/tls does all checks. A nil TLS means plaintext, and all its methods
// then return nil. Safe for concurrent use.
type TLS struct {
	files TLSFiles
	log   *slog.Logger

	// Set before use; see Identify and AllowPlaintext.
	cluster   string // if empty, identities are not read
	strict    bool
	sets      func(cluster string) bool // reports whether a cluster is a Set beside it; may be nil
	plaintext Plaintext
	complain  rateLimitedLog
	refused   *Refused // see CountRefused

	mu     sync.Mutex    // guards all below
	own    auth.Identity // the identity that the certificate must have; if empty, any
	stamps [3]time.Time
	loaded material
	told   string // the last complaint about files that cannot be used; empty if they can
}

// material is what the files had when they were last sound.
type material struct {
	cert *tls.Certificate // may be nil
	pool *x509.CertPool   // if nil, the system's
}

// NewTLS reads the files. Nil for none; ErrTLS for files that are missing, malformed
// or do not fit each other. The log, which may be nil, is told when they are replaced.
func NewTLS(files TLSFiles, log *slog.Logger) (*TLS, error) {
	if files == (TLSFiles{}) {
		return nil, nil
	}
	if (files.Cert == "") != (files.Key == "") {
		return nil, fmt.Errorf("%w: certificate %q and key %q: expected both or none", ErrTLS, files.Cert, files.Key)
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	t := &TLS{files: files, log: log, plaintext: NoPlaintext}
	stamps, err := t.stat()
	if err != nil {
		return nil, err
	}
	t.stamps = stamps
	t.loaded, err = files.load()
	return t, err
}

func (f TLSFiles) load() (m material, err error) {
	if f.Cert != "" {
		pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
		if err != nil {
			return m, fmt.Errorf("%w: certificate %s, key %s: %w", ErrTLS, f.Cert, f.Key, err)
		}
		m.cert = &pair
	}
	if f.CA != "" {
		text, err := os.ReadFile(f.CA)
		if err != nil {
			return m, fmt.Errorf("%w: CA: %w", ErrTLS, err)
		}
		m.pool = x509.NewCertPool()
		if !m.pool.AppendCertsFromPEM(text) {
			return m, fmt.Errorf("%w: CA %s: no certificate in it", ErrTLS, f.CA)
		}
	}
	return m, nil
}

func (t *TLS) stat() (stamps [3]time.Time, err error) {
	for i, name := range []string{t.files.Cert, t.files.Key, t.files.CA} {
		if name == "" {
			continue
		}
		info, err := os.Stat(name)
		if err != nil {
			return stamps, fmt.Errorf("%w: %w", ErrTLS, err)
		}
		stamps[i] = info.ModTime()
	}
	return stamps, nil
}

// current is what the files have now. While they are being replaced, and a new
// certificate stands beside the old key, the last sound ones go on, and the next
// connection looks again.
func (t *TLS) current() material {
	t.mu.Lock()
	defer t.mu.Unlock()
	stamps, err := t.stat()
	if err == nil && stamps == t.stamps {
		return t.loaded
	}
	var m material
	if err == nil {
		m, err = t.files.load()
	}
	if err == nil && t.own.Role != "" {
		err = t.files.of(m, t.own)
	}
	if err != nil {
		if t.told != err.Error() { // not once more for each connection
			t.told = err.Error()
			t.log.Warn("the TLS files cannot be used, the former ones stay in use", "error", err)
		}
		return t.loaded
	}
	t.loaded, t.stamps, t.told = m, stamps, ""
	t.log.Info("the TLS files were replaced", "cert", t.files.Cert, "ca", t.files.CA)
	return t.loaded
}

// Plaintext says where plaintext is allowed beside TLS, while a cluster goes over to TLS.
type Plaintext string

// The steps, backwards. In each step, all processes understand the step before and the step after.
const (
	NoPlaintext     Plaintext = "no"
	AcceptPlaintext Plaintext = "accept" // listeners take both; what is dialled is TLS
	DialPlaintext   Plaintext = "dial"   // the same, and what is dialled is plaintext
)

// ParsePlaintext reads one.
func ParsePlaintext(text string) (Plaintext, error) {
	if p := Plaintext(text); p == NoPlaintext || p == AcceptPlaintext || p == DialPlaintext {
		return p, nil
	}
	return NoPlaintext, fmt.Errorf("plaintext %q: expected no, accept or dial", text)
}

// AllowPlaintext sets where plaintext is allowed. Call it before the first use.
func (t *TLS) AllowPlaintext(p Plaintext) { t.plaintext = p }

// Identify has listeners read the identities of who connects, who may then come without a
// certificate, since the calls are checked. Servers that are dialled with roles must have
// one of them in the cluster; where that is not strict, the log says of others that they
// do not. For before the first use; nothing for nil.
func (t *TLS) Identify(cluster string, strict bool) {
	if t != nil {
		t.cluster, t.strict = cluster, strict
	}
}

// TrustSets has DialSets take servers of the clusters that sets tells of as well, which are Sets
// of one system. For before the first use; nothing for nil.
func (t *TLS) TrustSets(sets func(cluster string) bool) {
	if t != nil {
		t.sets = sets
	}
}

// Expect is ErrTLS unless the certificate, if there is one, is of that cluster and role,
// and of that name if it is not empty. From then on a file with another one does not take
// its place: all others would refuse this process, and the stores its session. After Identify.
func (t *TLS) Expect(own auth.Identity) error {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.files.of(t.loaded, own); err != nil {
		return err
	}
	t.own = own
	return nil
}

// of is ErrTLS for a certificate that is another's.
func (f TLSFiles) of(m material, own auth.Identity) error {
	if m.cert == nil {
		return nil
	}
	want := own
	want.Name = cmp.Or(own.Name, "<name>")
	id, err := auth.IdentityOf(m.cert.Leaf, own.Cluster)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %s: %w: expected %s", ErrTLS, f.Cert, err, want.URI())
	case id.Role != own.Role || own.Name != "" && id.Name != own.Name:
		return fmt.Errorf("%w: %s is the certificate of %s: expected %s", ErrTLS, f.Cert, id.URI(), want.URI())
	}
	return nil
}

// Evidence reads what a connection of a Listener showed; state is nil for plaintext.
func (t *TLS) Evidence(state *tls.ConnectionState) auth.Evidence {
	if t == nil || state == nil {
		return auth.Evidence{}
	}
	return auth.Look(state.PeerCertificates, t.cluster)
}

// Clients says what certificate a listener wants of a client.
type Clients bool

// The two ways, when a CA is given; without one no client is asked for a certificate.
const (
	OptionalClients Clients = false // one that is shown must be signed by the CA
	RequireClients  Clients = true  // no client connects without one
)

// Listener is the configuration of a listener, for net/http and the like. ErrTLS
// without a certificate.
func (t *TLS) Listener(clients Clients) (*tls.Config, error) {
	if t == nil {
		return nil, nil
	}
	if t.files.Cert == "" {
		return nil, fmt.Errorf("%w: a listener needs a certificate and its key", ErrTLS)
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			m := t.current()
			cfg := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{*m.cert}, NextProtos: []string{"h2", "http/1.1"}}
			if m.pool != nil {
				cfg.ClientCAs, cfg.ClientAuth = m.pool, tls.VerifyClientCertIfGiven
				if clients == RequireClients && t.cluster == "" {
					cfg.ClientAuth = tls.RequireAndVerifyClientCert
				}
			}
			return cfg, nil
		},
		NextProtos: []string{"h2", "http/1.1"},
	}, nil
}

// ServerCreds is Listener for gRPC.
func (t *TLS) ServerCreds(clients Clients) (credentials.TransportCredentials, error) {
	cfg, err := t.Listener(clients)
	if cfg == nil || err != nil {
		return nil, err
	}
	return serverCreds{credentials.NewTLS(cfg), t}, nil
}

// DialOptions secure the connections of Dial. The other side's certificate must be
// signed by the CA and name the host that was dialled; after Identify, it must have one of
// the roles, if there are any.
func (t *TLS) DialOptions(roles ...auth.Role) []grpc.DialOption {
	if t == nil || t.plaintext == DialPlaintext {
		return nil
	}
	return []grpc.DialOption{grpc.WithTransportCredentials(t.Creds(roles...))}
}

// DialSets is DialOptions for servers that may be of another Set; see TrustSets. Do not send through it
// what only the own Set may receive, such as a section or a ceiling.
func (t *TLS) DialSets(roles ...auth.Role) []grpc.DialOption {
	if t == nil || t.plaintext == DialPlaintext {
		return nil
	}
	creds := dialCreds{credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS12}), t, t.sets, roles}
	return []grpc.DialOption{grpc.WithTransportCredentials(creds)}
}

// Creds are DialOptions for connections that are not made by Dial.
func (t *TLS) Creds(roles ...auth.Role) credentials.TransportCredentials {
	if t == nil {
		return nil
	}
	return dialCreds{credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS12}), t, nil, roles}
}

// dialCreds are gRPC's TLS credentials with a configuration for each handshake. A client's
// tls.Config cannot change by itself, as a server's can: its RootCAs are fixed.
type dialCreds struct {
	credentials.TransportCredentials // all but the handshake
	tls                              *TLS
	sets                             func(cluster string) bool // whose servers are accepted beside the own cluster's; may be nil
	roles                            []auth.Role               // of the server; if empty, any
}

// ClientHandshake implements credentials.TransportCredentials.
func (c dialCreds) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	m := c.tls.current()
	secured, info, err := credentials.NewTLS(&tls.Config{
		MinVersion:       tls.VersionTLS12,
		RootCAs:          m.pool,
		VerifyConnection: func(state tls.ConnectionState) error { return c.verify(authority, state) },
		// Certificates would keep back what the server's CA did not sign, and the server
		// would say that there is none.
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			if m.cert == nil {
				return &tls.Certificate{}, nil
			}
			return m.cert, nil
		},
	}).ClientHandshake(ctx, authority, conn)
	if bad := (*tls.CertificateVerificationError)(nil); errors.As(err, &bad) {
		by := "the system's CAs"
		if c.tls.files.CA != "" {
			by = "the CA in " + c.tls.files.CA
		}
		err = fmt.Errorf("verify the certificate of %s by %s: %w", authority, by, err)
	}
	return secured, info, err
}

// Clone implements credentials.TransportCredentials.
func (c dialCreds) Clone() credentials.TransportCredentials {
	return dialCreds{c.TransportCredentials.Clone(), c.tls, c.sets, c.roles}
}

// verify checks the server's role, after crypto/tls has verified its chain and name.
func (c dialCreds) verify(authority string, state tls.ConnectionState) error {
	if c.tls.cluster == "" || len(c.roles) == 0 {
		return nil
	}
	err := auth.VerifyServer(state.PeerCertificates, c.tls.cluster, c.sets, c.roles...)
	if err != nil && !c.tls.strict {
		c.tls.complain.warn(c.tls.log, "a server would be refused for its certificate", "addr", authority, "error", err)
		return nil
	}
	return err
}
