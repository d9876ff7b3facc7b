package allocsvr

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	"github.com/seqsvr/seqsvr/internal/wire/storeclient"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr"
	"github.com/seqsvr/seqsvr/tests/kit/waits"
)

// threeStores are processes' worth of stores in this one, by their addresses.
func threeStores(t *testing.T) (addrs []string) {
	t.Helper()
	names := []string{"s1", "s2", "s3"}
	for _, name := range names {
		dir := filepath.Join(t.TempDir(), name)
		if err := storesvr.Init(storesvr.InitConfig{DataDir: dir, ClusterID: "c1", Name: name, MemberNames: names,
			Spaces: []seq.Space{{Name: seq.DefaultSpace, Sections: 4}}}); err != nil {
			t.Fatal(err)
		}
		cfg := storesvr.DefaultConfig()
		cfg.DataDir, cfg.Listen = dir, "127.0.0.1:0"
		s, err := storesvr.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		ran := make(chan error, 1)
		go func() { ran <- s.Run(context.Background()) }()
		t.Cleanup(func() {
			if err := errors.Join(s.Close(), <-ran); err != nil {
				t.Error(err)
			}
		})
		addrs = append(addrs, s.Addr())
	}
	return addrs
}

// serverOf is an AllocSvr on the stores that runs until the test ends, and what Run said.
func serverOf(t *testing.T, stores []string, secret seq.Secret) (*Server, <-chan error) {
	t.Helper()
	cfg := DefaultConfig()
	cfg.Name, cfg.Listen, cfg.Stores, cfg.Secret, cfg.ExpectAllocs = "a", "127.0.0.1:0", stores, secret, 1
	cfg.Logger = slog.New(slog.DiscardHandler)
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ran, ended := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(ended)
		ran <- s.Run(ctx)
	}()
	t.Cleanup(func() { stop(); <-ended })
	return s, ran
}

// endAt ends a session at the stores, as its owner or the parent of it would.
func endAt(t *testing.T, stores []string, secret seq.Secret) {
	t.Helper()
	cluster, err := storeclient.Connect(t.Context(), stores)
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	id := cluster.Identity
	group, err := quorum.NewGroup(quorum.Config{Ref: id.Ref, N: id.N, R: id.R, W: id.W}, storeclient.NamedStores(cluster.Stores))
	if err != nil {
		t.Fatal(err)
	}
	defer group.Close()
	if err := group.EndSession(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
}

// next takes a number, trying until the node serves.
func next(t *testing.T, addr string) uint64 {
	t.Helper()
	conn, err := rpc.Dial(addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for begun := time.Now(); ; {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		reply, err := pb.NewSequenceClient(conn).Next(ctx, &pb.NextRequest{Id: &pb.NextRequest_Uid{Uid: 42}, Count: 1})
		cancel()
		if err == nil {
			return reply.GetFirst()
		}
		if time.Since(begun) > time.Minute {
			t.Fatal(err)
		}
		<-time.After(10 * time.Millisecond)
	}
}

func TestANodeWhoseSessionWasEndedBeginsAnother(t *testing.T) {
	stores := threeStores(t)
	s, ran := serverOf(t, stores, seq.Secret{})
	before, first := next(t, s.Addr()), s.Session()
	for range 2 {
		endAt(t, stores, *s.secret.Load())
		waitUntil(t, waits.AtMost(t, patient), "another session", func() bool {
			select {
			case err := <-ran:
				t.Fatalf("the process ended: %v", err)
			default:
			}
			return s.Session() != first
		})
		first = s.Session()
		after := next(t, s.Addr())
		if after <= before {
			t.Errorf("took %d after %d", after, before)
		}
		before = after
	}
}

func TestANodeBelowAParentEndsWithItsSession(t *testing.T) {
	stores := threeStores(t)
	secret := seq.NewSecret("")
	s, ran := serverOf(t, stores, secret)
	next(t, s.Addr())
	endAt(t, stores, secret)
	select {
	case err := <-ran:
		if !errors.Is(err, seq.ErrSessionEnded) {
			t.Errorf("got %v, want ErrSessionEnded: the parent draws the next", err)
		}
	case <-time.After(waits.AtMost(t, time.Minute)):
		t.Error("it goes on under a session that its parent does not know")
	}
}
