package rpc

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/grpc/metadata"

	"github.com/seqsvr/seqsvr/internal/base/version"
	"github.com/seqsvr/seqsvr/seq"
)

// ProtocolHeader is the metadata key by which a build of this module says what it
// speaks: its own protocol version and the oldest one that it still works with, as
// "2/1". A server refuses a caller that is too old for it, or for which it is too old
// itself: the two would misread each other. Calls without the header, from other
// languages, are served; their contract is the .proto files.
const ProtocolHeader = "seqsvr-protocol"

// protocolVersions sends ProtocolHeader with every call.
type protocolVersions struct{ own, oldest int }

func ownProtocol() protocolVersions {
	return protocolVersions{version.Protocol, version.OldestProtocol}
}

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (p protocolVersions) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{ProtocolHeader: p.String()}, nil
}

// RequireTransportSecurity implements credentials.PerRPCCredentials: versions are no secret.
func (protocolVersions) RequireTransportSecurity() bool { return false }

// String is what travels.
func (p protocolVersions) String() string { return strconv.Itoa(p.own) + "/" + strconv.Itoa(p.oldest) }

func parseProtocol(text string) (p protocolVersions, err error) {
	own, oldest, ok := strings.Cut(text, "/")
	if ok {
		if p.own, err = strconv.Atoi(own); err == nil {
			p.oldest, err = strconv.Atoi(oldest)
		}
	}
	if !ok || err != nil || p.oldest < 1 || p.own < p.oldest {
		return p, fmt.Errorf("%w: %q, expected OWN/OLDEST such as 2/1", seq.ErrProtocol, text)
	}
	return p, nil
}

// check refuses a call between builds that would misread each other; seq.ErrProtocol then.
func (p protocolVersions) check(ctx context.Context) error {
	said := metadata.ValueFromIncomingContext(ctx, ProtocolHeader)
	if len(said) == 0 {
		return nil
	}
	caller, err := parseProtocol(said[0])
	switch {
	case err != nil:
		return err
	case caller.own < p.oldest:
		return fmt.Errorf("%w: the caller speaks %d, this server needs %d or newer: upgrade the caller", seq.ErrProtocol, caller.own, p.oldest)
	case p.own < caller.oldest:
		return fmt.Errorf("%w: this server speaks %d, the caller needs %d or newer: upgrade the server", seq.ErrProtocol, p.own, caller.oldest)
	}
	return nil
}

// CallerProtocol returns the protocol version that the caller of a request speaks, and false
// if the request does not say, as one in another language or within the process.
func CallerProtocol(ctx context.Context) (own int, said bool) {
	values := metadata.ValueFromIncomingContext(ctx, ProtocolHeader)
	if len(values) == 0 {
		return 0, false
	}
	p, err := parseProtocol(values[0])
	return p.own, err == nil
}

// sendsKeys is the first version of which callers send string keys as they are.
const sendsKeys = 2

// relayedHeader is what a router tells of the caller for which it makes a call.
const relayedHeader = "seqsvr-relayed-protocol"

// HashesKeys says that the caller, or the one for which a router calls, is a build of this
// module that hashes string keys itself: a UID that it sends may stand for one. Callers
// that are no build of this module send keys by their name in the .proto files.
func HashesKeys(ctx context.Context) bool {
	return hashesKeys(ctx, ProtocolHeader) || hashesKeys(ctx, relayedHeader)
}

func hashesKeys(ctx context.Context, header string) bool {
	said := metadata.ValueFromIncomingContext(ctx, header)
	if len(said) == 0 {
		return false
	}
	p, err := parseProtocol(said[0])
	return err != nil || p.own < sendsKeys
}

// Relay is the context in which a router makes the calls of a caller: one that hashes string
// keys itself is told of to the AllocSvr.
func Relay(ctx context.Context) context.Context {
	if !HashesKeys(ctx) {
		return ctx
	}
	return metadata.AppendToOutgoingContext(ctx, relayedHeader, protocolVersions{1, 1}.String())
}

// Relayed says whether Relay has something to tell: such a call must go alone.
func Relayed(ctx context.Context) bool {
	md, _ := metadata.FromOutgoingContext(ctx)
	return len(md.Get(relayedHeader)) > 0
}
