package ids

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/seqsvr/seqsvr/internal/process/daemon"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

var leaf = &pb.SnowflakeLayout{
	Name: "leaf", Text: "time:41,worker:10,sequence:12;unit=1ms;epoch=1288834974657;rollback=wait:5ms", EpochUnixMs: 1288834974657, UnitMs: 1,
	ExhaustedUnixMs: 3487858230209, MaxWorker: 1023, MaxSequence: 4095, Overflow: "wait", Rollback: "wait:5ms",
}

const leafJSON = `"layout": "leaf", "text": "time:41,worker:10,sequence:12;unit=1ms;epoch=1288834974657;rollback=wait:5ms", "unit_ms": 1,
	"epoch": "2010-11-04T01:42:54.657Z", "runs_out": "2080-07-10T17:30:30.209Z", "ran_out": false, "warning": false,
	"max_worker": 1023, "max_sequence": 4095, "overflow": "wait", "rollback": "wait:5ms"`

// numberOf is a decode request for an ID.
func numberOf(id int64) *pb.SnowflakeDecodeRequest {
	return &pb.SnowflakeDecodeRequest{Id: &pb.SnowflakeDecodeRequest_Number{Number: id}}
}

func TestEachVerbAsksTheClusterAndPrintsItsAnswer(t *testing.T) {
	orders := &pb.SnowflakeNamespace{Name: "orders", Alias: 9, Version: 2, Layout: leaf}
	part := &pb.SnowflakeDecoded{Id: 108152875544481803, Layout: "regional", UnixMs: 1647935744532, Tick: 51571309826,
		DatacenterId: 1, WorkerId: 1, Sequence: 11, Datacenter: "ulm", HasDatacenter: true}
	const partJSON = `"id": 108152875544481803, "id_str": "108152875544481803", "layout": "regional", "time": "2022-03-22T07:55:44.532Z",
		"ticks": 51571309826, "fields": {"datacenter": 1, "worker": 1, "sequence": 11}, "datacenter_name": "ulm"`
	byName := numberOf(108152875544481803)
	byName.Namespace = "regional-1"
	byLayout := numberOf(108152875544481803)
	byLayout.Layout = "regional"
	tag := &pb.SegmentTag{Tag: "t", MinStep: 10, MaxStep: 1000, Start: 7, Section: 3}
	const tagJSON = `"tag": "t", "section": 3, "min_step": 10, "max_step": 1000, "start": 7`
	gone := proto.CloneOf(orders)
	gone.RetiredUnixMs = 1647935744532
	const goneJSON = `{"name": "orders", "alias": 9, "version": 2, "retired": "2022-03-22T07:55:44Z", ` + leafJSON + "}"
	oldTag := proto.CloneOf(tag)
	oldTag.RetiredUnixMs = 1647935744532
	const oldTagJSON = "{" + tagJSON + `, "retired": "2022-03-22T07:55:44Z"}`
	tests := []struct {
		line  string
		want  proto.Message // that the cluster is asked
		reply proto.Message
		json  string
		table []string // parts of it
	}{
		{"snowflake gen --namespace 9 --count 2 --text base58", &pb.SnowflakeGenerateRequest{Namespace: "9", Count: 2, Agent: "seqctl"},
			&pb.SnowflakeGenerateReply{Ids: []uint64{1023510546613293056, 1023510546613293057}, WorkerId: 5, Namespace: "orders", Layout: "leaf"},
			`{"namespace": "orders", "layout": "leaf", "datacenter": 0, "worker": 5, "ids": [1023510546613293056, 1023510546613293057],
			"ids_str": ["1023510546613293056", "1023510546613293057"], "texts": ["3nNeLuv1t79", "3nNeLuv1t7a"]}`, []string{"3nNeLuv1t79", "3nNeLuv1t7a", "orders"}},
		{"snowflake gen", &pb.SnowflakeGenerateRequest{Count: 1, Agent: "seqctl"},
			&pb.SnowflakeGenerateReply{Ids: []uint64{7}, DatacenterId: 2, WorkerId: 5, Namespace: "default", Layout: "twitter"},
			`{"namespace": "default", "layout": "twitter", "datacenter": 2, "worker": 5, "ids": [7], "ids_str": ["7"]}`, []string{"default"}},
		{"snowflake decode 108152875544481803 --namespace regional-1", byName, part, "{" + partJSON + "}", []string{"1 (ulm)", "2022-03-22T07:55:44.532Z"}},
		{"snowflake decode 108152875544481803 --layout regional", byLayout, part, "{" + partJSON + "}", nil},
		{"snowflake decode 108152875544481803", numberOf(108152875544481803), part, "{" + partJSON + "}", nil},
		{"snowflake compose --namespace 1 --time 2022-03-22T08:55:44.532+01:00 --datacenter 1 --worker 1 --sequence 11 --text hex",
			&pb.SnowflakeComposeRequest{Namespace: "1", Time: &pb.SnowflakeComposeRequest_UnixMs{UnixMs: 1647935744532}, DatacenterId: 1, WorkerId: 1, Sequence: 11},
			part, "{" + partJSON + `, "text": "1803c77a044100b"}`, []string{"1803c77a044100b", "1 (ulm)"}},
		{"snowflake compose --tick 5", &pb.SnowflakeComposeRequest{Time: &pb.SnowflakeComposeRequest_Tick{Tick: 5}}, part, "{" + partJSON + "}", nil},
		{"snowflake workers --namespace orders", &pb.SnowflakeWorkersRequest{Namespace: "orders"},
			&pb.SnowflakeWorkersReply{Namespace: "orders", Pool: 1024, Workers: []*pb.SnowflakeWorker{
				{WorkerId: 4, MarkUnixMs: 1647935744532, Session: 0xab, Node: "alloc-1", LeaseLeftMs: 900}, {WorkerId: 5, MarkUnixMs: 1647935744000, LeaseLeftMs: -1, Free: true}}},
			`{"namespace": "orders", "pool": 1024, "held": 1, "workers": [
			{"datacenter": 0, "worker": 4, "node": "alloc-1", "session": "00000000000000ab", "mark": "2022-03-22T07:55:44.532Z", "lease_left_ms": 900, "free": false},
			{"datacenter": 0, "worker": 5, "node": "", "session": "", "mark": "2022-03-22T07:55:44.000Z", "lease_left_ms": -1, "free": true}]}`,
			[]string{"alloc-1", "900ms", "held", "free", "1024"}},
		{"segment add t --min-step 10 --start 7", &pb.SegmentPutRequest{Tag: &pb.SegmentTag{Tag: "t", MinStep: 10, Start: 7}},
			&pb.SegmentPutReply{Tag: tag, Created: true}, "{" + tagJSON + `, "created": true}`, []string{"1,000", "SECTION"}},
		{"segment list", &pb.SegmentListRequest{}, &pb.SegmentListReply{Tags: []*pb.SegmentTag{tag}}, "[{" + tagJSON + "}]", []string{"1,000"}},
		{"segment list", &pb.SegmentListRequest{}, &pb.SegmentListReply{}, "[]", []string{"MIN STEP"}},
		{"segment next t --count 1000", &pb.SegmentTakeRequest{Tag: "t", Count: 1000}, &pb.SegmentTakeReply{First: 5001, Last: 6000, Max: 9000},
			`{"tag": "t", "first": 5001, "last": 6000, "count": 1000}`, []string{"5001", "6000"}},
		{"namespace add orders --layout leaf --alias 9", &pb.SnowflakePutNamespaceRequest{Name: "orders", Layout: "leaf", Alias: 9}, orders,
			`{"name": "orders", "alias": 9, "version": 2, ` + leafJSON + "}", []string{"orders", "leaf", "wait:5ms"}},
		{"namespace add orders --if-version 1 --overflow borrow --rollback wait:9ms",
			&pb.SnowflakePutNamespaceRequest{Name: "orders", Version: 1, Overflow: "borrow", Rollback: "wait:9ms"}, orders,
			`{"name": "orders", "alias": 9, "version": 2, ` + leafJSON + "}", nil},
		{"namespace retire orders", &pb.SnowflakeRetireNamespaceRequest{Namespace: "orders"}, gone, goneJSON, []string{"retired 2022-03-22"}},
		{"namespace retire 9 --undo", &pb.SnowflakeRetireNamespaceRequest{Namespace: "9", Undo: true}, orders,
			`{"name": "orders", "alias": 9, "version": 2, ` + leafJSON + "}", []string{"in use"}},
		{"segment retire t", &pb.SegmentRetireRequest{Tag: "t"}, oldTag, oldTagJSON, []string{"retired 2022-03-22"}},
		{"segment retire t --undo", &pb.SegmentRetireRequest{Tag: "t", Undo: true}, tag, "{" + tagJSON + "}", []string{"in use"}},
		{"namespace list", &pb.SnowflakeNamespacesRequest{},
			&pb.SnowflakeNamespacesReply{Namespaces: []*pb.SnowflakeNamespace{orders}, Datacenters: []*pb.SnowflakeDatacenter{{Id: 1, Name: "ulm"}}},
			`{"namespaces": [{"name": "orders", "alias": 9, "version": 2, ` + leafJSON + `}], "datacenters": [{"id": 1, "name": "ulm"}]}`, []string{"orders", "ulm"}},
		{"namespace show 9", &pb.SnowflakeNamespacesRequest{Namespace: "9"}, &pb.SnowflakeNamespacesReply{Namespaces: []*pb.SnowflakeNamespace{orders}},
			`{"name": "orders", "alias": 9, "version": 2, ` + leafJSON + "}", []string{"orders"}},
	}
	n := serve(t, true)
	for _, test := range tests {
		n.say(answer{reply: test.reply})
		out, err := call(t, fields(test.line, "--addr", n.addr, "-o", "json")...)
		if err != nil {
			t.Errorf("%s: %v", test.line, err)
			continue
		}
		if diff := cmp.Diff([]proto.Message{test.want}, n.requests(), protocmp.Transform()); diff != "" {
			t.Errorf("%s: asked (-want +got)\n%s", test.line, diff)
		}
		if diff := cmp.Diff(parsed(t, test.json), parsed(t, out)); diff != "" {
			t.Errorf("%s: printed (-want +got)\n%s", test.line, diff)
		}
		out, err = call(t, fields(test.line, "--addr", n.addr)...)
		for _, part := range test.table {
			if err != nil || !strings.Contains(out, part) {
				t.Errorf("%s: got %v and\n%s\nwithout %q", test.line, err, out, part)
			}
		}
	}
}

func TestAddingANamespaceThatEndsSoonIsWarnedOf(t *testing.T) {
	n := serve(t, true)
	soon := proto.CloneOf(leaf)
	soon.ExhaustedUnixMs = time.Now().Add(48*time.Hour + time.Minute).UnixMilli()
	for _, test := range []struct {
		layout *pb.SnowflakeLayout
		warned bool
	}{{soon, true}, {leaf, false}} {
		n.say(answer{reply: &pb.SnowflakeNamespace{Name: "orders", Version: 1, Layout: test.layout}})
		out, err := call(t, "namespace", "add", "orders", "--layout", "leaf", "--addr", n.addr)
		if err != nil || strings.Contains(out, "in 2 days") != test.warned || strings.Contains(out, "warning") != test.warned {
			t.Errorf("ends %v: got %v and\n%s", test.layout.ExhaustedUnixMs, err, out)
		}
	}
}

func TestARefusalOfTheClusterKeepsItsNameAndIsNoUsageError(t *testing.T) {
	tests := []struct {
		line string
		err  error
	}{
		{"snowflake gen --namespace moon", seq.ErrUnknownNamespace},
		{"snowflake gen", seq.ErrWorkersExhausted},
		{"snowflake gen", seq.ErrNoQuorum},
		{"snowflake gen", seq.ErrTimeExhausted},
		{"snowflake decode 1 --namespace moon", seq.ErrUnknownNamespace},
		{"snowflake compose --tick 1", seq.ErrBadID},
		{"snowflake workers", seq.ErrUnknownNamespace},
		{"segment add t", seq.ErrBadArgument},
		{"segment list", seq.ErrNoQuorum},
		{"segment next t", seq.ErrUnknownTag},
		{"segment next t", seq.ErrOverflow},
		{"namespace add n --layout leaf", seq.ErrUnsafeChange},
		{"namespace add n --layout leaf", seq.ErrConflict},
		{"namespace show moon", seq.ErrUnknownNamespace},
		{"namespace list", seq.ErrNoQuorum},
	}
	n := serve(t, true)
	for _, test := range tests {
		n.say(answer{err: fmt.Errorf("asked for it: %w", test.err)})
		out, err := call(t, fields(test.line, "--addr", n.addr)...)
		if !errors.Is(err, test.err) || errors.Is(err, daemon.ErrUsage) || out != "" {
			t.Errorf("%s: got %v and %q, want %v", test.line, err, out, test.err)
		}
		want := 1
		if errors.Is(test.err, seq.ErrUnknownNamespace) || errors.Is(test.err, seq.ErrUnknownTag) {
			want++ // which there are
		}
		if got := len(n.requests()); got != want {
			t.Errorf("%s: asked %d times, want %d", test.line, got, want)
		}
	}
}

func TestAnUnknownNameIsToldWithThoseThatThereAre(t *testing.T) {
	n := serve(t, true)
	n.say(answer{err: fmt.Errorf("%w: %q", seq.ErrUnknownNamespace, "moon")},
		answer{reply: &pb.SnowflakeNamespacesReply{Namespaces: []*pb.SnowflakeNamespace{{Name: "orders"}, {Name: "old", RetiredUnixMs: 1}, {Name: "chats"}}}})
	if _, err := call(t, "snowflake", "gen", "--namespace", "moon", "--addr", n.addr); err == nil || !strings.HasSuffix(err.Error(), `"moon", expected one of orders, chats`) {
		t.Errorf("got %v, want the namespaces in use", err)
	}
	many := &pb.SegmentListReply{}
	for i := range 100 {
		many.Tags = append(many.Tags, &pb.SegmentTag{Tag: fmt.Sprintf("orders-%02d", i)})
	}
	n.say(answer{err: fmt.Errorf("take 1: %w: %q", seq.ErrUnknownTag, "order-42")}, answer{reply: many})
	if _, err := call(t, "segment", "next", "order-42", "--addr", n.addr); err == nil || !strings.Contains(err.Error(), "did you mean orders-42?") {
		t.Errorf("got %v, want the closest tag", err)
	}
}

func TestNamespacesAndTagsAreCompleted(t *testing.T) {
	n := serve(t, true)
	namespaces := answer{reply: &pb.SnowflakeNamespacesReply{Namespaces: []*pb.SnowflakeNamespace{{Name: "orders"}}}}
	tags := answer{reply: &pb.SegmentListReply{Tags: []*pb.SegmentTag{{Tag: "invoices"}}}}
	for line, test := range map[string]struct {
		say  answer
		want string
	}{
		"snowflake gen --addr ADDR --namespace ": {namespaces, "orders"},
		"namespace show --addr ADDR ":            {namespaces, "orders"},
		"segment next --addr ADDR ":              {tags, "invoices"},
		"snowflake decode --layout ":             {namespaces, "regional-local"},
		"snowflake gen --text ":                  {namespaces, "zbase32"},
	} {
		n.say(test.say)
		args := strings.Split(strings.ReplaceAll(line, "ADDR", n.addr), " ")
		if out, err := call(t, append([]string{"__complete"}, args...)...); err != nil || !strings.Contains(out, test.want+"\n") {
			t.Errorf("%s: got %q and %v, want %s", line, out, err, test.want)
		}
	}
}

// lines are verbs that need a cluster.
var lines = []string{"snowflake gen", "snowflake decode 1", "snowflake compose --tick 1", "snowflake workers", "segment add t", "segment list",
	"segment next t", "namespace add n --layout leaf", "namespace list", "namespace show n"}

func TestAnAddressWithoutTheServiceIsToldFromOneWhereNobodyIs(t *testing.T) {
	n := serve(t, false)
	for _, line := range lines {
		out, err := call(t, fields(line, "--addr", n.addr)...)
		if !errors.Is(err, errNotServed) || !strings.Contains(err.Error(), n.addr) || strings.Contains(err.Error(), "rpc error") || out != "" {
			t.Errorf("%s: got %v and %q, want errNotServed", line, err, out)
		}
		_, err = call(t, fields(line, "--addr", nowhere)...)
		if err == nil || !strings.Contains(err.Error(), "no answer at "+nowhere) || errors.Is(err, daemon.ErrUsage) {
			t.Errorf("%s: got %v, want no answer", line, err)
		}
	}
}

func TestATagIsAskedForWhereItsOwnerIs(t *testing.T) {
	numbers := answer{reply: &pb.SegmentTakeReply{First: 8, Last: 8}}
	away, unknown := answer{err: &rpc.NotOwnerError{Addr: nowhere}}, answer{err: &rpc.NotOwnerError{}}
	tests := []struct {
		name          string
		asked, owner  []answer // in turn
		atAsked, atIt int      // requests
	}{
		{"at once", []answer{numbers}, nil, 1, 0},
		{"one hop away", nil, []answer{numbers}, 1, 1},
		{"while nobody owns it", []answer{unknown, unknown, numbers}, nil, 3, 0},
		{"while its owner's lease is over", nil, []answer{{err: seq.ErrNoLease}, numbers}, 2, 2},
		{"while its owner leaves", nil, []answer{{err: seq.ErrShuttingDown}, numbers}, 2, 2},
		{"while its owner is gone", []answer{away, numbers}, nil, 2, 0},
		{"while the owner points back", nil, []answer{{err: &rpc.NotOwnerError{}}, numbers}, 2, 2},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			n, owner := serve(t, true), serve(t, true)
			if test.asked == nil {
				test.asked = []answer{{err: &rpc.NotOwnerError{Addr: owner.addr}}}
			}
			n.say(test.asked...)
			owner.say(test.owner...)
			out, err := call(t, "segment", "next", "t", "--addr", n.addr, "--timeout", "30s")
			if err != nil || !strings.Contains(out, "8") {
				t.Errorf("got %v and %q", err, out)
			}
			if a, b := len(n.requests()), len(owner.requests()); a != test.atAsked || b != test.atIt {
				t.Errorf("asked %d and %d times, want %d and %d", a, b, test.atAsked, test.atIt)
			}
		})
	}
}

func TestATagThatNobodyOwnsIsGivenUpInTime(t *testing.T) {
	n := serve(t, true)
	n.say(answer{err: &rpc.NotOwnerError{}})
	if _, err := call(t, "segment", "next", "t", "--addr", n.addr, "--timeout", "300ms"); err == nil || errors.Is(err, daemon.ErrUsage) {
		t.Errorf("got %v, want a failure", err)
	}
}
