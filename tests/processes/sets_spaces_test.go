package processes

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

// A space is added to all Sets by one command, and its string keys go on without a gap where their
// sections move.
func TestASpaceThatIsAddedToAllSetsMovesAmongThem(t *testing.T) {
	root, conns, all := twoSets(t)
	addr := strings.Join(all[0].Addrs(localcluster.RoleAlloc), ",")
	seqctl := func(args ...string) harness.Ended {
		t.Helper()
		return harness.Run(t, harness.Command(harness.Within(t), t, nil, "seqctl", append(args, "--addr", addr)...))
	}
	seqctl("space", "add", "room:sections=4", "--wait").Want(t, 0, "served")
	sdk, err := client.New(harness.Within(t), client.Config{Addrs: all[0].Addrs(localcluster.RoleAlloc), Timeout: harness.Patience, AttemptTimeout: harness.Patience})
	if err != nil {
		t.Fatal(err)
	}
	defer sdk.Close()
	key := client.StringKey("room", "general")
	count := func(want seq.Seq) {
		t.Helper()
		if got, err := sdk.Next(harness.Within(t), key); err != nil || got != want {
			t.Errorf("got %d, %v, want %d", got, err, want)
		}
	}
	count(1)
	move(t, root, conns, "b", sets.Range{First: setSections, Sections: 4})
	count(2)
	move(t, root, conns, sets.RootName, sets.Range{First: setSections, Sections: 4})
	count(3)
	seqctl("members", "-o", "json").Want(t, 0, `"set": "b"`, `"set": "main"`)
	all[1].KillAll()
	seqctl("space", "add", "late", "--timeout", "10s").Want(t, 1, "Set b")
	seqctl("members").Want(t, 1, "Set b")
	if err := all[1].StartAll(); err != nil {
		t.Fatal(err)
	}
	seqctl("space", "add", "late", "--wait").Want(t, 0, "served")
}

// A router knows the other Sets later than its own, and serves no operators.
func TestNumbersOfAllSetsAreExportedAndRaisedByARouter(t *testing.T) {
	root, conns, all := twoSets(t)
	move(t, root, conns, "b", sets.Range{First: 0, Sections: setSections / 2})
	harness.Ready(t, all[0])
	file := filepath.Join(t.TempDir(), "numbers")
	seqctl := func(args ...string) harness.Ended {
		t.Helper()
		return harness.Run(t, harness.Command(harness.Within(t), t, nil, "seqctl", append(args, "--addr", all[0].GRPC())...))
	}
	for uid := range 8 {
		seqctl("next", fmt.Sprint(uid<<seq.BlockBits)).Want(t, 0)
	}
	for _, what := range []string{"--sections", "--uids"} {
		seqctl("export", what, "--out", file+what).Want(t, 0)
		seqctl("raise", "--file", file+what).Want(t, 0)
	}
}
