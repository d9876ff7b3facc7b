package rpc

import (
	"cmp"
	"context"
	"net"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/seqsvr/seqsvr/internal/wire/auth"
)

// AuthHeader is the metadata key, and the HTTP header, with "Bearer" and a token.
const AuthHeader = "authorization"

// ShownInfo is the AuthInfo of a connection whose certificate was looked at.
type ShownInfo struct {
	credentials.TLSInfo
	Evidence auth.Evidence
}

// AuthInfo is what the handshake found out about the peer of a call; nil for none.
func AuthInfo(ctx context.Context) credentials.AuthInfo {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return nil
	}
	if info, ok := p.AuthInfo.(interface{ Handshake() credentials.AuthInfo }); ok {
		return info.Handshake()
	}
	return p.AuthInfo
}

// WhoOf is what the caller of a call shows.
func WhoOf(ctx context.Context) (w auth.Credentials) {
	if info, ok := AuthInfo(ctx).(ShownInfo); ok {
		w.Evidence = info.Evidence
	}
	w.Token, w.Err = auth.Bearer(metadata.ValueFromIncomingContext(ctx, AuthHeader))
	return w
}

// CallerOf is whom an Admission takes the one for whom w speaks for: his token or the
// identity in his certificate; nil for neither.
func CallerOf(w auth.Credentials) any {
	switch {
	case w.Token != "":
		return w.Token
	case w.Evidence.Identity.Role != "":
		return w.Evidence.Identity
	}
	return nil
}

// ForHeader is the metadata key by which a router names the caller that it asks for. It gives
// no right: it keeps the shares of those behind one router apart, and names them in changes.
const ForHeader = "seqsvr-for"

// Asker names the caller of a call, for what is bounded by caller: the principal, and behind a
// router also the caller that it asks for; without a principal the host that the call comes
// from, and "" where callers cannot be told apart. A router is believed by its certificate alone:
// if a host without a principal names a caller, via is that host, and the name may be made up.
func Asker(ctx context.Context, guard *auth.Guard) (name, via string) {
	id, role := guard.Holder(WhoOf(ctx))
	behind := behindOf(ctx)
	switch {
	case role == auth.Router && behind != "":
		return id + " for " + behind, ""
	case id != "":
		return id, ""
	}
	host := hostOf(ctx)
	if host == "" || behind == "" {
		return host, ""
	}
	return host + " for " + behind, host
}

// maxFor bounds what is kept of a ForHeader, in bytes.
const maxFor = 256

func behindOf(ctx context.Context) string {
	for _, behind := range metadata.ValueFromIncomingContext(ctx, ForHeader) {
		return behind[:min(len(behind), maxFor)]
	}
	return ""
}

func hostOf(ctx context.Context) string {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return ""
	}
	host, _, err := net.SplitHostPort(p.Addr.String())
	if err != nil {
		return p.Addr.String()
	}
	return "host " + host
}

// For adds ForHeader to a call that is made for the caller of the call of ctx. It names what this
// process has seen, and not what that caller says.
func For(ctx context.Context, guard *auth.Guard) context.Context {
	name, via := Asker(ctx, guard)
	return metadata.AppendToOutgoingContext(ctx, ForHeader, cmp.Or(via, name))
}
