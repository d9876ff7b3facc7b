package rpc

import (
	"errors"
	"strings"
	"testing"

	"google.golang.org/grpc/metadata"

	"github.com/seqsvr/seqsvr/internal/base/version"
	"github.com/seqsvr/seqsvr/seq"
)

func TestBuildsThatWouldMisreadEachOtherRefuseByName(t *testing.T) {
	tests := []struct {
		name   string
		server protocolVersions
		caller string // empty if the caller says nothing
		want   string // part of the refusal; empty if it is served
	}{
		{"the same", protocolVersions{3, 2}, "3/2", ""},
		{"an older caller that is still understood", protocolVersions{3, 2}, "2/1", ""},
		{"a newer caller that still understands", protocolVersions{2, 1}, "3/2", ""},
		{"a caller of another language", protocolVersions{3, 3}, "", ""},
		{"a caller too old", protocolVersions{3, 2}, "1/1", "upgrade the caller"},
		{"a server too old", protocolVersions{1, 1}, "3/2", "upgrade the server"},
		{"no version", protocolVersions{1, 1}, "new", "expected OWN/OLDEST"},
		{"half a version", protocolVersions{1, 1}, "2/x", "expected OWN/OLDEST"},
		{"upside down", protocolVersions{1, 1}, "1/2", "expected OWN/OLDEST"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			ctx := t.Context()
			if test.caller != "" {
				ctx = metadata.NewIncomingContext(ctx, metadata.Pairs(ProtocolHeader, test.caller))
			}
			err := test.server.check(ctx)
			if test.want == "" && err != nil || test.want != "" && (!errors.Is(err, seq.ErrProtocol) || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestABuildUnderstandsItself(t *testing.T) {
	said, err := ownProtocol().GetRequestMetadata(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx := metadata.NewIncomingContext(t.Context(), metadata.New(said))
	if err := ownProtocol().check(ctx); err != nil {
		t.Error(err)
	}
	if version.OldestProtocol > version.Protocol {
		t.Errorf("the oldest protocol is %d, this one %d", version.OldestProtocol, version.Protocol)
	}
}

func TestARouterTellsOfACallerThatHashesKeysItself(t *testing.T) {
	for header, want := range map[string]bool{"1/1": true, "2/1": false, "3/2": false, "": false, "nonsense": true} {
		ctx := t.Context()
		if header != "" {
			ctx = metadata.NewIncomingContext(ctx, metadata.Pairs(ProtocolHeader, header))
		}
		out := Relay(ctx)
		if HashesKeys(ctx) != want || Relayed(out) != want {
			t.Errorf("%q: hashes %v, is told %v, want %v", header, HashesKeys(ctx), Relayed(out), want)
		}
		md, _ := metadata.FromOutgoingContext(out)
		if at := metadata.NewIncomingContext(t.Context(), md); HashesKeys(at) != want { // as the AllocSvr sees it
			t.Errorf("%q: the AllocSvr is told %v, want %v", header, HashesKeys(at), want)
		}
	}
}
