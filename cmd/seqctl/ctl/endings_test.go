package ctl

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/internal/ops/survey"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

func TestStatusNamesSectionsNearTheirEnd(t *testing.T) {
	const end = uint64(seq.MaxSeq)
	tests := []struct {
		name   string
		ending []*pb.EndingSection
		health survey.Health
		want   []string
	}{
		{"none", nil, survey.Healthy, nil},
		{"near", []*pb.EndingSection{{Section: 3, Space: "chat", Max: end - 20_000}}, survey.Degraded, []string{"section 3 (chat, 20000 left) is near the end"}},
		{"spent, and served from memory", []*pb.EndingSection{{Section: 3, Space: "user", Max: end, Spent: true, Owned: true, Base: 70_000}}, survey.Degraded, []string{"section 3 (user) is used up once the owner crashes"}},
		{"spent, and taken over since", []*pb.EndingSection{{Section: 3, Space: "user", Max: end, Spent: true, Owned: true, Base: end}}, survey.Failed, []string{"section 3 (user) is used up: every UID"}},
		{"spent, and its owner gone", []*pb.EndingSection{{Section: 3, Space: "user", Max: end, Spent: true}}, survey.Failed, []string{"section 3 (user) is used up: every UID"}},
		{"all of them", []*pb.EndingSection{{Section: 1, Space: "user", Max: end - 20_000}, {Section: 2, Space: "user", Max: end, Spent: true}, {Section: 4, Space: "user", Max: end, Spent: true}}, survey.Failed,
			[]string{"sections 2 (user), 4 (user) are used up: every UID", "section 1 (user, "}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			n := serve(t)
			n.status.Ending, n.status.SectionsNearEnd = test.ending, uint32(len(test.ending))
			r, _ := statusOf(t, n)
			if r.Health != test.health || len(r.Problems) != len(test.want) {
				t.Fatalf("got %s with %q, want %s with %q", r.Health, r.Problems, test.health, test.want)
			}
			for i, want := range test.want {
				if !strings.Contains(r.Problems[i], want) {
					t.Errorf("problem %d is %q, want %q", i, r.Problems[i], want)
				}
			}
		})
	}
}

// namespaces is a cluster that has them, with a free worker id each, or with what workers says.
type namespaces struct {
	pb.SnowflakeClient
	list    []*pb.SnowflakeNamespace
	workers *pb.SnowflakeWorkersReply
	shared  []string // with other regions
}

func (n namespaces) Namespaces(context.Context, *pb.SnowflakeNamespacesRequest, ...grpc.CallOption) (*pb.SnowflakeNamespacesReply, error) {
	if n.workers != nil {
		end := &pb.SnowflakeLayout{ExhaustedUnixMs: noon.AddDate(9, 0, 0).UnixMilli()}
		n.list = []*pb.SnowflakeNamespace{{Name: n.workers.GetNamespace(), Version: 1, Layout: end}}
	}
	return &pb.SnowflakeNamespacesReply{Namespaces: n.list, Conflicts: n.shared}, nil
}

func (n namespaces) Workers(_ context.Context, r *pb.SnowflakeWorkersRequest, _ ...grpc.CallOption) (*pb.SnowflakeWorkersReply, error) {
	if n.workers != nil {
		return n.workers, nil
	}
	return &pb.SnowflakeWorkersReply{Namespace: r.GetNamespace(), Pool: 1024}, nil
}

func TestARetiredNamespaceIsNoTrouble(t *testing.T) {
	over := &pb.SnowflakeNamespace{Name: "old", Version: 1, Layout: &pb.SnowflakeLayout{ExhaustedUnixMs: noon.AddDate(-1, 0, 0).UnixMilli()}}
	s := site()
	s.AskIDs(t.Context(), namespaces{list: []*pb.SnowflakeNamespace{over}}, noon)
	if got := s.Judge(); got.Health != survey.Failed || len(got.Problems) != 1 {
		t.Errorf("a layout that has ended: got %s with %q, want failed by one", got.Health, got.Problems)
	}
	over.RetiredUnixMs = noon.UnixMilli()
	s.AskIDs(t.Context(), namespaces{list: []*pb.SnowflakeNamespace{over}}, noon)
	if got := s.Judge(); got.Health != survey.Healthy || len(got.Problems) != 0 {
		t.Errorf("retired: got %s with %q, want healthy", got.Health, got.Problems)
	}
}
