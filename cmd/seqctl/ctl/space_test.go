package ctl

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/seqsvr/seqsvr/internal/ops/survey"
	"github.com/seqsvr/seqsvr/internal/process/daemon"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

func TestARehashIsAskedOfOneAllocator(t *testing.T) {
	n := serve(t)
	out, err := call(t, "space", "rehash", "user", "--addr", n.addr, "-o", "json")
	var got rehashed
	if err != nil || json.Unmarshal([]byte(out), &got) != nil || got != (rehashed{"user", string(seq.SecretKeys), 2}) {
		t.Errorf("got %q, %v", out, err)
	}
	if diff := cmp.Diff([]any{&pb.RehashRequest{Space: "user", KeyHash: string(seq.SecretKeys)}}, n.changes, protocmp.Transform()); diff != "" {
		t.Errorf("asked for (-want +got)\n%s", diff)
	}
	if _, err := call(t, "space", "rehash", "user", "--key-hash", "md5", "--addr", n.addr); !errors.Is(err, daemon.ErrUsage) || !strings.Contains(err.Error(), "md5") {
		t.Errorf("a hash that there is not: %v", err)
	}
}

func TestAnAllocatorThatHashesAsBeforeIsNamed(t *testing.T) {
	n := serve(t)
	n.status.KeyHashes = []*pb.KeyHash{{Space: "user", Hash: string(seq.SHA256Keys), Latest: 1, LatestHash: string(seq.SecretKeys)}}
	out, err := call(t, "space", "list", "--addr", n.addr)
	if err != nil || !strings.Contains(out, "restart it: 1 is in force") {
		t.Errorf("list: %v, %s", err, out)
	}
	out, err = call(t, "status", "--addr", n.addr)
	if err != nil || !strings.HasPrefix(out, "DEGRADED: alloc a hashes the string keys") {
		t.Errorf("status: %v, %s", err, out)
	}
	n.status.KeyHashes[0].Version = 1
	if out, err = call(t, "status", "--addr", n.addr); err != nil || !strings.HasPrefix(out, "HEALTHY") {
		t.Errorf("restarted: %v, %s", err, out)
	}
}

func TestASpaceThatTheRouterHasNotHeardOfIsListedWhole(t *testing.T) {
	n := serve(t)
	n.status.KeyHashes = []*pb.KeyHash{{Space: seq.DefaultSpace}, {Space: "orders"}}
	router := serve(t)
	router.routes.Routes = n.routes.GetRoutes()
	mapping, err := seq.NewMapping(seq.Space{Name: seq.DefaultSpace, Sections: 8}, seq.Space{Name: "orders", Mode: seq.Strict, Sections: 4, Added: true})
	if err != nil {
		t.Fatal(err)
	}
	n.routes = &pb.RoutesReply{ClusterId: "test", Mapping: rpc.MappingToProto(mapping), Routes: proto.CloneOf(n.routes.GetRoutes()), RouteVersion: 8}
	r := n.routes.Routes
	for range 4 {
		r.Owner, r.Standby, r.Standby2 = append(r.Owner, 0), append(r.Standby, -1), append(r.Standby2, -1)
	}
	out, err := call(t, "space", "list", "--addr", router.addr, "-o", "json")
	var rows []spaceRow
	if err != nil || json.Unmarshal([]byte(out), &rows) != nil || len(rows) != 2 || rows[0].Mode != seq.Strict || rows[0].Sections != 4 || !rows[0].Added {
		t.Errorf("list: %v, %s", err, out)
	}
}

func TestTheUIDOfAStringKeyIsInNoOutput(t *testing.T) {
	for _, id := range []survey.CounterID{{Key: "room:7"}, survey.CounterOf(42)} {
		for _, v := range []any{nextResult{CounterID: id}, currentRow{CounterID: id}, raiseResult{CounterID: id}, survey.Place{CounterID: id}} {
			text, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Contains(string(text), `"uid"`); got != (id.UID != nil) {
				t.Errorf("%s", text)
			}
		}
	}
}
