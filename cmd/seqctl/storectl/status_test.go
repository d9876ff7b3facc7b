package storectl

import (
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

func TestAStoreThatDoesNotBelongToTheOthersIsNamed(t *testing.T) {
	mapping, err := seq.NewMapping(seq.Space{Name: "user", Sections: 4})
	if err != nil {
		t.Fatal(err)
	}
	other, err := seq.NewMapping(seq.Space{Name: "user", Sections: 5})
	if err != nil {
		t.Fatal(err)
	}
	ours := func(change func(*pb.DescribeReply)) *pb.DescribeReply {
		d := &pb.DescribeReply{Ref: &pb.Ref{ClusterId: "c1", MembersVersion: 1, MembersHash: 1}, W: 2, Voting: true, Mapping: rpc.MappingToProto(mapping),
			Incarnation: rpc.IncarnationToProto(seq.NewIncarnation(seq.ClusterID{}, "c1", 0, []string{"a", "b", "c"}))}
		change(d)
		return d
	}
	same := func(*pb.DescribeReply) {}
	for text, odd := range map[string]*pb.DescribeReply{
		`"c2"`:   ours(func(d *pb.DescribeReply) { d.Ref.ClusterId, d.Ref.MembersVersion = "c2", 7 }),
		"era 3":  ours(func(d *pb.DescribeReply) { d.Ref.Era, d.Ref.MembersVersion = 3, 7 }),
		"differ": ours(func(d *pb.DescribeReply) { d.Mapping = rpc.MappingToProto(other) }),
		"binding": ours(func(d *pb.DescribeReply) {
			d.Incarnation.Binding = make([]byte, 15, 16)
			d.Incarnation.Binding = append(d.Incarnation.Binding, 1)
		}),
	} {
		best := agreed([]*pb.DescribeReply{odd, ours(same), nil, ours(same)})
		if oddOf(ours(same), best) != "" || !strings.Contains(oddOf(odd, best), text) {
			t.Errorf("%q: ours is %q, the odd store %q", text, oddOf(ours(same), best), oddOf(odd, best))
		}
	}
	if agreed([]*pb.DescribeReply{nil, nil}) != nil {
		t.Error("nobody answered, and one is gone by")
	}
	r := result{N: 3, W: 2, Stores: []row{{Name: "a", Role: "voter", State: "voting", voting: true}, {Name: "b", Role: "voter", State: "voting", voting: true},
		{Name: "c", Addr: "c:1", Role: "none", State: "voting", voting: true, Odd: "it is of cluster c2"}}}
	if r.judge(); r.Healthy || len(r.Problems) != 1 || !strings.Contains(r.Problems[0], "c at c:1") || !strings.Contains(r.Problems[0], "c2") {
		t.Errorf("healthy %v, problems %q", r.Healthy, r.Problems)
	}
}

func TestADiskInThePlaceOfAMemberIsNamedByBothUUIDs(t *testing.T) {
	r := result{N: 3, W: 2, Stores: []row{
		{Name: "a", UUID: "u-a", Role: "voter", State: "bound: waiting", Pending: true},
		{Name: "b", UUID: "u-b", Role: "voter", State: "unreachable"},
		{Name: "b", UUID: "u-new", Addr: "b:1", Role: "none", State: "unbound: waiting for its fellow members"},
	}}
	r.judge()
	text := strings.Join(r.Problems, "\n")
	for _, want := range []string{"b at b:1 has uuid u-new, and the member list has uuid u-b", "a does not vote: bound: waiting; start all stores of its list"} {
		if !strings.Contains(text, want) {
			t.Errorf("problems %q, expected %q among them", r.Problems, want)
		}
	}
}
