package ids

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/seqsvr/seqsvr/internal/process/daemon"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// lineFile writes a file.
func lineFile(t *testing.T, text string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "lines")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAFileOfTagsIsCheckedWholeAndThenPut(t *testing.T) {
	n := serve(t, true)
	path := lineFile(t, "# tag settings\n\norders start=7 min-step=10\n  inv template=A-{seq:3} reset=daily\n")
	tags := []*pb.SegmentTag{{Tag: "orders", Start: 7, MinStep: 10}, {Tag: "inv", Template: "A-{seq:3}", Reset_: "daily"}}
	done := &pb.SegmentPutReply{TagsCreated: 1, TagsChanged: 1}
	n.say(answer{reply: done}, answer{reply: &pb.SegmentListReply{}}, answer{reply: done})
	out, err := call(t, "segment", "add", "--file", path, "--addr", n.addr, "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(parsed(t, `{"lines": 2, "created": 1, "changed": 1, "unchanged": 0}`), parsed(t, out)); diff != "" {
		t.Errorf("printed (-want +got)\n%s", diff)
	}
	want := []proto.Message{&pb.SegmentPutRequest{Tags: tags, CheckOnly: true}, &pb.SegmentListRequest{}, &pb.SegmentPutRequest{Tags: tags}}
	if diff := cmp.Diff(want, n.requests(), protocmp.Transform()); diff != "" {
		t.Errorf("asked (-want +got)\n%s", diff)
	}
}

func TestAllWrongLinesOfAFileAreToldAndNoneIsAdded(t *testing.T) {
	n := serve(t, true)
	leaf9 := &pb.SnowflakeNamespace{Name: "orders", Alias: 9, Version: 1, Layout: leaf}
	for _, row := range []struct {
		kind, text string
		answers    []answer
		want       []string
		asked      int
	}{
		{"segment", "a start=0\nb step=5\nc min-step\na\nd start=1 start=2\ne max-step=9999999999\n", []answer{{reply: &pb.SegmentPutReply{
			Errors: []*pb.KeyError{{Index: 2, Message: "the server says so"}}}}},
			[]string{"6 lines are wrong", "line 1:", "start=0", "line 2:", `"step=5"`, "line 3:", "the server says so", "line 4:", "in line 1 too", "line 5:", "line 6:", "max-step=9999999999"}, 1},
		{"segment", strings.Repeat("x\n", 20_001), nil, []string{"20001 tags, expected at most 20000"}, 0},
		{"segment", "a\n", []answer{{reply: &pb.SegmentPutReply{TagsCreated: 1}}, {reply: &pb.SegmentListReply{Tags: make([]*pb.SegmentTag, 20_000)}}}, []string{"would have 20001", "none was added"}, 2},
		{"namespace", "orders layout=twitter alias=9\nother layout=leaf alias=9\nbad layout=noway\nnone\nfar layout=leaf alias=5000000000\n",
			[]answer{{reply: &pb.SnowflakeNamespacesReply{Namespaces: []*pb.SnowflakeNamespace{leaf9}}}},
			[]string{"5 lines are wrong", "line 1:", "recorded otherwise", "line 2:", `alias 9 belongs to "orders"`, "line 3:", "noway", "line 4:", "no layout=", "line 5:", "alias=5000000000"}, 1},
	} {
		n.say(append(row.answers, answer{})...)
		_, err := call(t, row.kind, "add", "--file", lineFile(t, row.text), "--addr", n.addr)
		for _, part := range row.want {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%s: got %v without %q", row.kind, err, part)
			}
		}
		if got := n.requests(); len(got) != row.asked {
			t.Errorf("%s: asked %v", row.kind, got)
		}
	}
}

func TestAFileOfNamespacesMayBeRepeated(t *testing.T) {
	n := serve(t, true)
	have := &pb.SnowflakeNamespacesReply{Namespaces: []*pb.SnowflakeNamespace{{Name: "orders", Alias: 9, Version: 1, Layout: leaf}}}
	n.say(answer{reply: have}, answer{reply: &pb.SnowflakeNamespace{}})
	out, err := call(t, "namespace", "add", "--file", lineFile(t, "orders layout=leaf alias=9\nnew layout=twitter rollback=wait:9ms\n"), "--addr", n.addr, "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(parsed(t, `{"lines": 2, "created": 1, "changed": 0, "unchanged": 1}`), parsed(t, out)); diff != "" {
		t.Errorf("printed (-want +got)\n%s", diff)
	}
	want := []proto.Message{&pb.SnowflakeNamespacesRequest{}, &pb.SnowflakePutNamespaceRequest{Name: "new", Layout: "twitter", Rollback: "wait:9ms"}}
	if diff := cmp.Diff(want, n.requests(), protocmp.Transform()); diff != "" {
		t.Errorf("asked (-want +got)\n%s", diff)
	}
}

func TestAFileTakesNoName(t *testing.T) {
	for _, line := range []string{"segment add", "namespace add", "segment add a --file b", "namespace add a --file b", "segment add --file /none/such"} {
		if _, err := call(t, fields(line, "--addr", "127.0.0.1:1")...); !errors.Is(err, daemon.ErrUsage) {
			t.Errorf("%s: got %v, want a usage error", line, err)
		}
	}
}
