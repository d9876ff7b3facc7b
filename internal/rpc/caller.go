package rpc

import (
	"context"
	"net"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/seqsvr/seqsvr/internal/auth"
)

// ForHeader is the metadata key by which a router names the caller that it asks for. It gives
// no right: it keeps the shares of those behind one router apart, and names them in changes.
const ForHeader = "seqsvr-for"

// Asker names the caller of a call, for what is bounded by caller: the principal, and behind a
// router also the caller that it asks for; without a principal the host that the call comes
// from, and "" where callers cannot be told apart. A router is believed by its certificate alone.
func Asker(ctx context.Context, guard *auth.Guard) string {
	id, role := guard.Holder(WhoOf(ctx))
	if role == auth.Router {
		for _, behind := range metadata.ValueFromIncomingContext(ctx, ForHeader) {
			return id + " for " + behind[:min(len(behind), maxFor)]
		}
	}
	if id != "" {
		return id
	}
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

// maxFor bounds what is kept of a ForHeader, in bytes.
const maxFor = 256

// For adds ForHeader to a call that is made for the caller of the call of ctx.
func For(ctx context.Context, guard *auth.Guard) context.Context {
	return metadata.AppendToOutgoingContext(ctx, ForHeader, Asker(ctx, guard))
}
