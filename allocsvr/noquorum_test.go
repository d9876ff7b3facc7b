package allocsvr

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/seqsvr/seqsvr/allocsvr/ownership/ownershiptest"
	"github.com/seqsvr/seqsvr/allocsvr/section"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// deafLeases are the leases of a node that one of three stores answers.
type deafLeases struct{ ownershiptest.Leases }

func (deafLeases) Connected() int { return 1 }

func TestANodeWithoutAQuorumNamesTheMissingStoresWhateverStateTheSectionIsIn(t *testing.T) {
	for _, state := range []section.State{section.Absent, section.Acquiring, section.Owned, section.Sealed} {
		t.Run(state.String(), func(t *testing.T) {
			o := newOwner(t)
			o.leases, o.silent = deafLeases{}, func() []string { return []string{"store-2", "store-3"} }
			switch state {
			case section.Owned:
				o.clock.Advance(2 * ownerLease)
			case section.Sealed:
				o.c.Seal()
			default:
				o.c.Drop(o.epoch, "another")
				if state == section.Acquiring {
					o.c.Begin()
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			uids := []seq.UID{1}
			take := func() error { return o.sections.Take(ctx, o.c.Space(), seq.PlainAll(uids...), nil).Faults[0].Err }
			for what, ask := range map[string]func() error{
				"take": take,
				"current": func() error {
					_, faults := o.sections.Current(ctx, o.c.Space(), seq.PlainAll(uids...))
					return faults[0].Err
				},
				"raise": func() error {
					_, err := o.sections.Raise(ctx, o.c.Space(), seq.Plain(1), 500, section.Reach{})
					return err
				},
			} {
				err := ask()
				if rpc.CodeOf(err) != pb.ErrorCode_ERROR_CODE_NO_QUORUM || !strings.Contains(fmt.Sprint(err), "missing store-2, store-3") {
					t.Errorf("%s: got %v, want NO_QUORUM with store-2 and store-3", what, err)
				}
			}
			if state != section.Absent {
				return
			}
			// One that leaves has ended its session itself, and tells which node has its sections.
			if err := o.owner.Leave(ctx, ""); err != nil {
				t.Fatal(err)
			}
			if err := take(); rpc.CodeOf(err) != pb.ErrorCode_ERROR_CODE_NOT_OWNER {
				t.Errorf("a node that leaves: got %v, want NOT_OWNER", err)
			}
		})
	}
}

func TestStoresAreCalledByTheirNameInTheMemberList(t *testing.T) {
	n := &Node{}
	n.nameStores([]quorum.Member{{UUID: "u1", Name: "store-1"}, {UUID: "u2", Name: "store-2"}},
		[]quorum.NamedStore{{Name: "h:1", UUID: "u1"}, {Name: "h:2", UUID: ""}})
	if names := *n.stores.Load(); len(names) != 1 || names["h:1"] != "store-1 at h:1" {
		t.Errorf("got %v", names)
	}
}

func TestAServerSpeaksAndIsNotReadyBeforeItsFirstQuorum(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Name, cfg.Listen, cfg.Stores, cfg.Logger = "a", "127.0.0.1:0", []string{"127.0.0.1:1", "127.0.0.1:2"}, slog.New(slog.DiscardHandler)
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	conn, err := rpc.Dial(s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ask, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	named := func(what string, err error) {
		t.Helper()
		text := fmt.Sprint(err)
		if !errors.Is(err, seq.ErrNoQuorum) || !strings.Contains(text, cfg.Stores[0]) || !strings.Contains(text, cfg.Stores[1]) {
			t.Errorf("%s: got %v, want %v with %v", what, err, seq.ErrNoQuorum, cfg.Stores)
		}
	}
	_, err = pb.NewSequenceClient(conn).Next(ask, &pb.NextRequest{Count: 1})
	named("next", err)
	_, err = pb.NewSnowflakeClient(conn).Generate(ask, &pb.SnowflakeGenerateRequest{Count: 1})
	named("generate", err)
	_, err = pb.NewAdminClient(conn).Status(ask, &pb.StatusRequest{})
	named("status", err)
	stream, err := pb.NewSequenceClient(conn).Stream(ask)
	if err == nil {
		_, err = stream.Recv()
	}
	named("stream", err)
	named("ready", s.Ready())
	for _, service := range []string{"", rpc.QuorumHealth} {
		reply, err := healthpb.NewHealthClient(conn).Check(ask, &healthpb.HealthCheckRequest{Service: service})
		if err != nil || reply.GetStatus() != healthpb.HealthCheckResponse_NOT_SERVING {
			t.Errorf("health of %q: got %v, %v, want NOT_SERVING", service, reply, err)
		}
	}
	stop()
	if err := <-ended; err == nil {
		t.Error("a server that never found its stores ended without an error")
	}
}

func TestAListenerThatWasLentGoesOn(t *testing.T) {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer lis.Close()
	for range 3 {
		s := &Server{lis: lis, cfg: Config{Stores: []string{"h:1"}}}
		w := s.startAnswering()
		conn, err := rpc.Dial(lis.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_, err = pb.NewSequenceClient(conn).Next(t.Context(), &pb.NextRequest{Count: 1})
		if !errors.Is(err, seq.ErrNoQuorum) {
			t.Errorf("got %v, want %v", err, seq.ErrNoQuorum)
		}
		watch, err := healthpb.NewHealthClient(conn).Watch(t.Context(), &healthpb.HealthCheckRequest{})
		if err == nil {
			_, err = watch.Recv()
		}
		if err != nil {
			t.Error(err)
		}
		w.stop() // the watch does not hold it up
		_ = conn.Close()
	}
}
