package rpc

import (
	"context"
	"os"
	"sync"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/seqsvr/seqsvr/internal/wire/auth"
)

// TokenFile sends the token of a file with every call, over TLS only: a connection without
// it cannot be made. The file is looked at once a second, and read again when it has
// changed; while it cannot be used the former token stays. auth.ErrOpenFile,
// auth.ErrBadToken and the system's errors.
func TokenFile(path string) (credentials.PerRPCCredentials, error) {
	t := &tokenFile{path: path}
	if _, err := t.current(time.Now()); err != nil {
		return nil, err
	}
	return t, nil
}

type tokenFile struct {
	path string

	mu      sync.Mutex // guards all below
	looked  time.Time
	changed time.Time
	token   auth.Token
}

func (t *tokenFile) current(now time.Time) (auth.Token, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.token != "" && now.Sub(t.looked) < time.Second {
		return t.token, nil
	}
	t.looked = now
	info, err := os.Stat(t.path)
	if err == nil && t.token != "" && info.ModTime().Equal(t.changed) {
		return t.token, nil
	}
	token, err := auth.ReadToken(t.path)
	if err != nil && t.token == "" {
		return "", err
	}
	if err == nil {
		t.token, t.changed = token, info.ModTime()
	}
	return t.token, nil
}

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (t *tokenFile) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	token, err := t.current(time.Now())
	if err != nil {
		return nil, err
	}
	return map[string]string{AuthHeader: "Bearer " + token.Secret()}, nil
}

// RequireTransportSecurity implements credentials.PerRPCCredentials.
func (*tokenFile) RequireTransportSecurity() bool { return true }
