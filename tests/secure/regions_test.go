package secure

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/allocsvr"
	"github.com/seqsvr/seqsvr/internal/wire/auth"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
	"github.com/seqsvr/seqsvr/tests/kit/textlog"
)

// A cluster of another region, in plaintext, asks one that wants roles: with the token of a
// reader there it hears that its datacenter id is taken; without one it is told nothing, and goes on.
func TestAnotherRegionIsAskedWithATokenOfItsOwn(t *testing.T) {
	s := startSite(t, auth.Require)
	ids := pb.NewSnowflakeClient(s.dial(s.byToken(auth.Operator), s.alloc.Addr()))
	if _, err := ids.Generate(harness.Within(t), &pb.SnowflakeGenerateRequest{}); err != nil {
		t.Fatal(err)
	}
	file := func(secret string) string {
		path := filepath.Join(t.TempDir(), "token")
		if err := os.WriteFile(path, []byte(secret), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	// start is a node of a new cluster, which has the default datacenter id as well.
	start := func(token string) (*allocsvr.Server, *textlog.Log) {
		t.Helper()
		sc, log := storesvr.DefaultConfig(), &textlog.Log{}
		sc.DataDir, sc.Listen, sc.Logger = filepath.Join(t.TempDir(), "store"), "127.0.0.1:0", slog.New(slog.DiscardHandler)
		err := storesvr.Init(storesvr.InitConfig{DataDir: sc.DataDir, ClusterID: "abroad", Name: "store-1", MemberNames: []string{"store-1"},
			Spaces: []seq.Space{{Name: seq.DefaultSpace, Sections: 8, Step: 100}}})
		if err != nil {
			t.Fatal(err)
		}
		store, err := storesvr.New(sc)
		if err != nil {
			t.Fatal(err)
		}
		harness.Inside(t, "store abroad", store.Run)
		ac := allocsvr.DefaultConfig()
		ac.Name, ac.Listen, ac.Stores, ac.Logger = "alloc-1", "127.0.0.1:0", []string{store.Addr()}, slog.New(slog.NewTextHandler(log, nil))
		ac.Regions, ac.RegionsCA, ac.RegionsTokenFile = []string{s.alloc.Addr()}, filepath.Join(s.caDir, auth.CAFile), token
		alloc, err := allocsvr.New(ac)
		if err != nil {
			t.Fatal(err)
		}
		return alloc, log
	}
	taken, _ := start(file(s.tokens[auth.Reader].Secret()))
	err := taken.Run(harness.Within(t))
	if !errors.Is(err, seq.ErrDatacenterTaken) || !strings.Contains(err.Error(), "clusters abroad and "+cluster+" can make the same IDs") {
		t.Errorf("with a token: got %v, want ErrDatacenterTaken with both clusters", err)
	}
	for what, token := range map[string]string{"without a token": "", "with a token that is unknown there": file(auth.NewToken().Secret())} {
		alloc, log := start(token)
		ctx, stop := context.WithCancel(harness.Within(t))
		done := make(chan error, 1)
		go func() { done <- alloc.Run(ctx) }()
		harness.Until(t, "the other region does not tell, "+what, func() bool {
			return alloc.Ready() == nil && strings.Contains(log.String(), "does not tell which IDs it makes")
		})
		if !strings.Contains(log.String(), "UNAUTHENTICATED") && !strings.Contains(log.String(), "not authenticated") {
			t.Errorf("%s: log %s", what, log)
		}
		stop()
		if err := <-done; err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	s.noSecrets()
}
