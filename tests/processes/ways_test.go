package processes

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

// ways are proxies before AllocSvr, which tell others the proxies' addresses in place of their own. They
// pass calls on as they are, and can be told to do something at a step of a move between Sets.
type ways struct {
	t     *testing.T
	addrs map[string]string // by the name of the AllocSvr

	mu    sync.Mutex // guards all below
	step  string     // empty if nothing is to be done
	after bool       // once the node has taken it, and before the answer is passed on; else before
	act   func()
}

func newWays(t *testing.T) *ways {
	return &ways{t: t, addrs: map[string]string{}}
}

// wrap has an AllocSvr, of a cluster whose names begin so, tell others the address of a proxy.
func (w *ways) wrap(prefix string) func(name string, argv []string) []string {
	return func(name string, argv []string) []string {
		at := slices.Index(argv, "--listen")
		if !strings.HasPrefix(name, string(localcluster.RoleAlloc)) || at < 0 {
			return argv
		}
		addr := harness.Forward(w.t, argv[at+1], func(method string, request []byte, after bool) error {
			w.meet(method, request, after)
			return nil
		})
		w.addrs[prefix+name] = addr
		return append(slices.Clone(argv), "--advertise", addr)
	}
}

// of are the proxies of a cluster.
func (w *ways) of(prefix string) (list []string) {
	for name, addr := range w.addrs {
		if strings.HasPrefix(name, prefix) {
			list = append(list, addr)
		}
	}
	slices.Sort(list)
	return list
}

// at has act done once, when that step comes by.
func (w *ways) at(step string, after bool, act func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.step, w.after, w.act = step, after, act
}

// waits says whether the step is still to come.
func (w *ways) waits() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.step != ""
}

// meet does what is to be done at the step of a call, before or after it.
func (w *ways) meet(method string, request []byte, after bool) {
	w.mu.Lock()
	act := w.act
	if w.step == "" || w.step != stepOf(method, request) || w.after != after {
		act = nil
	} else {
		w.step = ""
	}
	w.mu.Unlock()
	if act != nil {
		act()
	}
}

// moveSteps are the steps of a move of which a node hears, in their order.
var moveSteps = []string{"begin", "seal", "stop", "open", "finish", "arrive"}

// stepOf returns the step of a move that a call makes, or "".
func stepOf(method string, request []byte) string {
	service, name, _ := strings.Cut(strings.TrimPrefix(method, "/"), "/")
	if service != pb.Sets_ServiceDesc.ServiceName {
		return ""
	}
	switch name {
	case "Stop", "Open":
		return strings.ToLower(name)
	case "Step":
		var r pb.SetStepRequest
		if proto.Unmarshal(request, &r) == nil {
			return map[pb.SetOp]string{pb.SetOp_SET_OP_SEAL: "seal", pb.SetOp_SET_OP_FINISH: "finish"}[r.GetOp()]
		}
	case "ChangeMap":
		var r pb.ChangeSetMapRequest
		if proto.Unmarshal(request, &r) == nil && r.GetBegin() != nil {
			return "begin"
		} else if r.GetArrive() != nil {
			return "arrive"
		}
	}
	return ""
}
