package storeclient_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/seqsvr/seqsvr/internal/base/version"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	"github.com/seqsvr/seqsvr/internal/wire/storeclient"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/sessiontest"
)

// requiredAt is the protocol that each store requires.
func requiredAt(t *testing.T, c storeclient.Cluster) (out []int) {
	t.Helper()
	for _, s := range c.Stores {
		id, err := s.Client.Describe(t.Context())
		if err != nil {
			id.Required = -1
		}
		out = append(out, id.Required)
	}
	return out
}

func follower(t *testing.T, c storeclient.Cluster) *storeclient.Follower {
	return storeclient.NewFollower(c, slog.New(slog.DiscardHandler), func(quorum.MemberList, []quorum.NamedStore) error { return nil })
}

func TestAProtocolIsRequiredOfWStoresAndToldToTheOthers(t *testing.T) {
	stores := three(t)
	c := mustConnect(t, addrs(stores...)...)
	stores[2].stop()
	f := follower(t, c)
	for range 2 {
		if err := f.Require(t.Context(), version.Sets); err != nil {
			t.Fatal(err)
		}
	}
	if got := requiredAt(t, c); !slices.Equal(got, []int{version.Sets, version.Sets, -1}) {
		t.Errorf("required at the stores: %v", got)
	}
	stores[1].stop()
	ctx, cancel := context.WithTimeout(t.Context(), brief)
	defer cancel()
	if err := f.Require(ctx, version.Sets); !errors.Is(err, seq.ErrNoQuorum) || !strings.Contains(err.Error(), stores[1].addr) {
		t.Errorf("with one store of three: %v", err)
	}
	stores[1].start()
	stores[2].start()
	again := mustConnect(t, addrs(stores...)...)
	if got := requiredAt(t, again); !slices.Equal(got, []int{version.Sets, version.Sets, version.Sets}) {
		t.Errorf("required at the stores after one came back: %v", got)
	}
}

func TestNothingIsRequiredWhileAnOlderSessionLives(t *testing.T) {
	stores := three(t)
	c := mustConnect(t, addrs(stores...)...)
	// The session reaches the last store alone, so that the others would take the raise.
	old := metadata.AppendToOutgoingContext(t.Context(), rpc.ProtocolHeader, "2/1")
	conn, err := grpc.NewClient("passthrough:///"+stores[2].addr, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithContextDialer(dialPlace))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	renew := quorum.RenewRequest{Ref: c.Identity.Ref, Session: alice, Secret: sessiontest.SecretOf(alice), Name: "old-node", Addr: "h:1", Lease: 10 * time.Second}
	if _, err := storeclient.Over(stores[2].addr, conn, conn).Renew(old, renew); err != nil {
		t.Fatal(err)
	}
	err = follower(t, c).Require(t.Context(), version.Sets)
	if !errors.Is(err, seq.ErrProtocol) || !strings.Contains(err.Error(), `node "old-node" at h:1 speaks 2`) {
		t.Errorf("got %v", err)
	}
	if got := requiredAt(t, c); !slices.Equal(got, []int{0, 0, 0}) {
		t.Errorf("required at the stores: %v", got)
	}
}
