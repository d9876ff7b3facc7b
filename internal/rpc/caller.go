package rpc

import (
	"context"
	"net"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/seqsvr/seqsvr/internal/auth"
)

// ForHeader is the metadata key by which a router says for whom it asks. It gives nobody a
// right: it keeps the shares of those behind one router apart, and names them in changes.
const ForHeader = "seqsvr-for"

// Asker names who makes a call, for what is bounded by who asks: the principal, and behind
// a router also whom it asks for; who shows none is the host that the call comes from, and
// "" is nobody that can be told from others. A router is believed by its certificate alone.
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

// For adds ForHeader to a call that is made for the one who made the call of ctx.
func For(ctx context.Context, guard *auth.Guard) context.Context {
	return metadata.AppendToOutgoingContext(ctx, ForHeader, Asker(ctx, guard))
}
