package rpc

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

// TLSFiles names the PEM files of one process. They may be replaced while it runs: new
// connections go by the new ones, no restart is needed.
type TLSFiles struct {
	Cert string // chain of this process, its own certificate first
	Key  string // of Cert
	CA   string // certificates that those of the other side must be signed by; empty: the system's
}

// ErrTLS is a certificate, key or CA file that cannot be used, or half of a pair.
var ErrTLS = errors.New("bad TLS files")

// TLS secures listeners and connections by the files. Nil is plaintext, and all its
// methods then give nil. Safe for concurrent use.
type TLS struct {
	files TLSFiles

	mu     sync.Mutex // guards all below
	stamps [3]time.Time
	loaded material
}

// material is what the files had when they were last sound.
type material struct {
	cert *tls.Certificate // nil: none
	pool *x509.CertPool   // nil: the system's
}

// NewTLS reads the files. Nil for none; ErrTLS for files that are missing, malformed
// or do not fit each other.
func NewTLS(files TLSFiles) (*TLS, error) {
	if files == (TLSFiles{}) {
		return nil, nil
	}
	if (files.Cert == "") != (files.Key == "") {
		return nil, fmt.Errorf("%w: certificate %q and key %q: expected both or none", ErrTLS, files.Cert, files.Key)
	}
	t := &TLS{files: files}
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
	if err != nil || stamps == t.stamps {
		return t.loaded
	}
	if m, err := t.files.load(); err == nil {
		t.loaded, t.stamps = m, stamps
	}
	return t.loaded
}

// Clients says what a listener wants of the certificates of those who connect.
type Clients bool

// The two ways, when a CA is given; without one nobody is asked for a certificate.
const (
	OptionalClients Clients = false // one that is shown must be signed by the CA
	RequireClients  Clients = true  // nobody connects without one
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
				if clients == RequireClients {
					cfg.ClientAuth = tls.RequireAndVerifyClientCert
				}
			}
			return cfg, nil
		},
		// For those who look before a connection is there.
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return t.current().cert, nil },
		NextProtos:     []string{"h2", "http/1.1"},
	}, nil
}

// ServerCreds is Listener for gRPC.
func (t *TLS) ServerCreds(clients Clients) (credentials.TransportCredentials, error) {
	cfg, err := t.Listener(clients)
	if cfg == nil || err != nil {
		return nil, err
	}
	return credentials.NewTLS(cfg), nil
}

// DialOptions secure the connections of Dial. The other side's certificate must be
// signed by the CA and name the host that was dialled.
func (t *TLS) DialOptions() []grpc.DialOption {
	if t == nil {
		return nil
	}
	return []grpc.DialOption{grpc.WithTransportCredentials(t.Creds())}
}

// Creds are DialOptions for who dials by himself.
func (t *TLS) Creds() credentials.TransportCredentials {
	if t == nil {
		return nil
	}
	return credentials.NewTLS(t.dialler())
}

func (t *TLS) dialler() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			if m := t.current(); m.cert != nil {
				return m.cert, nil
			}
			return &tls.Certificate{}, nil
		},
		// The standard check takes its CAs once and for all; VerifyConnection makes the
		// same one with those of now, for every connection, resumed ones too.
		InsecureSkipVerify: true,
		VerifyConnection:   func(state tls.ConnectionState) error { return t.verify(state) },
	}
}

func (t *TLS) verify(state tls.ConnectionState) error {
	if len(state.PeerCertificates) == 0 {
		return errors.New("verify the server: it showed no certificate")
	}
	opts := x509.VerifyOptions{Roots: t.current().pool, DNSName: state.ServerName, Intermediates: x509.NewCertPool()}
	for _, cert := range state.PeerCertificates[1:] {
		opts.Intermediates.AddCert(cert)
	}
	if _, err := state.PeerCertificates[0].Verify(opts); err != nil {
		by := "the system's CAs"
		if t.files.CA != "" {
			by = "the CA in " + t.files.CA
		}
		return fmt.Errorf("verify the certificate of %s by %s: %w", state.ServerName, by, err)
	}
	return nil
}
