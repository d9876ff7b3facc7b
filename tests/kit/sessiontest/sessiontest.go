// Package sessiontest gives tests sessions that they can name: small numbers with secrets
// that are known. What belongs here: nothing that a daemon uses.
package sessiontest

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

var known sync.Map // seq.Session -> seq.Secret, of all that Session made

// Secret returns the secret of Session(n).
func Secret(n uint64) (s seq.Secret) {
	binary.BigEndian.PutUint64(s.Seed[8:], n)
	return s
}

// Session is the n-th session.
func Session(n uint64) seq.Session {
	secret := Secret(n)
	known.Store(secret.Session(), secret)
	return secret.Session()
}

// SecretOf is the secret of a session that Session made. It panics for every other one.
func SecretOf(session seq.Session) seq.Secret {
	secret, ok := known.Load(session)
	if !ok {
		panic(fmt.Sprintf("sessiontest: session %s was not made here", session))
	}
	return secret.(seq.Secret)
}

// Signed is the store with each request's secret filled in, if it has none and Session
// made its session.
func Signed(s quorum.Store) quorum.Store { return signed{s} }

type signed struct{ quorum.Store }

func sign(session seq.Session, given seq.Secret) seq.Secret {
	if secret, ok := known.Load(session); ok && given.IsZero() {
		return secret.(seq.Secret)
	}
	return given
}

// Prepare implements quorum.Store.
func (s signed) Prepare(ctx context.Context, req quorum.PrepareRequest) (quorum.Reply, error) {
	req.Secret = sign(req.Session, req.Secret)
	return s.Store.Prepare(ctx, req)
}

// Step implements quorum.Store.
func (s signed) Step(ctx context.Context, req quorum.StepRequest) (quorum.Reply, error) {
	req.Secret = sign(req.Session, req.Secret)
	return s.Store.Step(ctx, req)
}

// Renew implements quorum.Store.
func (s signed) Renew(ctx context.Context, req quorum.RenewRequest) (quorum.RenewReply, error) {
	req.Secret = sign(req.Session, req.Secret)
	return s.Store.Renew(ctx, req)
}

// Release implements quorum.Store.
func (s signed) Release(ctx context.Context, req quorum.ReleaseRequest) (string, error) {
	req.Secret = sign(req.Session, req.Secret)
	return s.Store.Release(ctx, req)
}
