package otlp

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/seqsvr/seqsvr/internal/wire/rpc"
)

// ErrConfig is returned by Validate and Start for settings that cannot be used; the
// text names the flag.
var ErrConfig = errors.New("bad trace settings")

// Config is where spans go, and which.
type Config struct {
	// Endpoint is the collector: host:port or http://host:port for plaintext,
	// https://host:port for TLS.
	Endpoint string
	// Sample is the share, from 0 to 1, of traces begun here that are kept. A trace that a caller began
	// follows the caller's decision. Rare events are always kept.
	Sample float64
	// Files secure https: CA is what the collector's certificate must be signed by, empty
	// for the system's; Cert and Key are shown if it asks for a certificate.
	Files rpc.TLSFiles

	Daemon   string // storesvr, allocsvr or router
	Instance string // tells two of one kind apart
	Logger   *slog.Logger
}

// Validate checks the settings without changing them. ErrConfig.
func (c Config) Validate() error {
	_, _, err := c.dial()
	if err == nil {
		err = checkSample(c.Sample)
	}
	return err
}

func checkSample(share float64) error {
	if !(share >= 0 && share <= 1) { // NaN is neither
		return fmt.Errorf("%w: --trace-sample %v: expected 0 to 1", ErrConfig, share)
	}
	return nil
}

// dial reads the endpoint.
func (c Config) dial() (target string, creds credentials.TransportCredentials, err error) {
	scheme, target, found := strings.Cut(c.Endpoint, "://")
	if !found {
		scheme, target = "http", c.Endpoint
	}
	if scheme == "http" && c.Files.CA != "" {
		return "", nil, fmt.Errorf("%w: --trace-ca needs a --trace-endpoint that begins with https://, not %q", ErrConfig, c.Endpoint)
	}
	host, port, err := net.SplitHostPort(target)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil || host == "" || port == "0" || strings.ContainsAny(host, "/@") || (scheme != "http" && scheme != "https") {
		return "", nil, fmt.Errorf("%w: --trace-endpoint %q: expected host:port, http://host:port or https://host:port", ErrConfig, c.Endpoint)
	}
	if scheme == "http" {
		return target, insecure.NewCredentials(), nil
	}
	creds, err = c.secured()
	if err != nil {
		return "", nil, fmt.Errorf("%w: --trace-ca: %w", ErrConfig, err)
	}
	return target, creds, nil
}

func (c Config) secured() (credentials.TransportCredentials, error) {
	secured, err := rpc.NewTLS(c.Files, c.Logger)
	if err != nil {
		return nil, err
	}
	if secured == nil { // no file: the system's CAs, and no certificate of its own
		return credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS12}), nil
	}
	return secured.Creds(), nil
}

// connect does not wait for the collector. No keepalive: a collector sends clients away
// that ping it more often than it likes.
func (c Config) connect() (*grpc.ClientConn, error) {
	target, creds, err := c.dial()
	if err != nil {
		return nil, err
	}
	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(creds), grpc.WithNoProxy())
	if err != nil {
		return nil, fmt.Errorf("%w: --trace-endpoint %q: %w", ErrConfig, c.Endpoint, err)
	}
	return conn, nil
}
