package drill

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/cmd/seqctl/ctl"
	"github.com/seqsvr/seqsvr/internal/etcd/etcdstore"
	"github.com/seqsvr/seqsvr/internal/lab"
	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/internal/process/daemon"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
)

// seqctl runs a command line in this process.
func seqctl(args ...string) (stdout string, err error) {
	root := ctl.Root()
	root.AddCommand(Command())
	var out bytes.Buffer
	err = ctl.Execute(context.Background(), root, args, &out, &out)
	return out.String(), err
}

func TestListTellsWhatEachDrillDoes(t *testing.T) {
	out, err := seqctl("drill", "--list", "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var got []entry
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	if len(got) != len(lab.Drills()) {
		t.Fatalf("got %d drills, want %d", len(got), len(lab.Drills()))
	}
	for _, e := range got {
		if e.Name == "" || len(e.What) < 20 {
			t.Errorf("drill %q says %q", e.Name, e.What)
		}
	}
}

func TestAWrongCallIsRefusedBeforeAnythingIsStarted(t *testing.T) {
	dir := t.TempDir()
	same := filepath.Join(dir, "same.json")
	onEtcd := filepath.Join(dir, "etcd.json")
	for path, process := range map[string]string{
		same:   fmt.Sprintf(`{"role":"store","name":"store-1","pid":%d,"addr":"127.0.0.1:2"}`, os.Getpid()),
		onEtcd: `{"role":"alloc","name":"alloc-1","pid":1000002,"addr":"127.0.0.1:2"},{"role":"alloc","name":"alloc-2","pid":1000003,"addr":"127.0.0.1:3"}`,
	} {
		if err := os.WriteFile(path, []byte(`{"grpc":"127.0.0.1:1","processes":[`+process+`]}`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		name string
		args []string
		want error
		text string
	}{
		{"no name", nil, nil, "expected seqctl drill NAME"},
		{"an unknown drill", []string{"kill-everybody"}, lab.ErrUnknownDrill, "kill-everybody"},
		{"an unknown node", []string{"kill-alloc", "--node", "alloc-9"}, seq.ErrUnknownNode, "alloc-9"},
		{"a node of another kind", []string{"kill-alloc", "--node", "store-1"}, seq.ErrUnknownNode, "alloc-1"},
		{"a node for a drill that takes none", []string{"rolling-restart", "--node", "store-1"}, seq.ErrUnknownNode, "store-1"},
		{"an unknown Set", []string{"kill-set", "--set", "set-9"}, sets.ErrUnknownSet, "set-2"},
		{"a Set for a drill of nodes", []string{"kill-alloc", "--set", "set-2"}, sets.ErrUnknownSet, "kill-alloc"},
		{"a Set of those on one etcd", []string{"kill-set", "--engine", "etcd"}, lab.ErrEngine, "one etcd"},
		{"an exact space, all of which the root has", []string{"kill-set", "--space", "orders"}, nil, "root"},
		{"one space in all modes", []string{"kill-alloc", "--modes", "--space", "orders"}, nil, "--modes"},
		{"the modes on etcd", []string{"kill-alloc", "--modes", "--engine", "etcd"}, nil, "--modes"},
		{"one alloc", []string{"kill-alloc", "--allocs", "1"}, lab.ErrTooSmall, "2 allocs"},
		{"no alloc", []string{"kill-store", "--allocs", "0"}, nil, "0 allocs"},
		{"a lease too short", []string{"kill-alloc", "--lease", "10ms"}, nil, "10ms"},
		{"no callers", []string{"kill-alloc", "--callers", "0"}, nil, "--callers"},
		{"no rate", []string{"kill-alloc", "--rate", "0"}, nil, "--rate"},
		{"a bad format", []string{"kill-alloc", "-o", "xml"}, nil, "xml"},
		{"a bad address", []string{"drain-alloc", "--addr", "nowhere"}, nil, "nowhere"},
		{"a bad address of the page", []string{"kill-alloc", "--web", "here"}, nil, "--web"},
		{"a page that no browser reaches", []string{"one-way", "--web", "127.0.0.1:0"}, nil, "--html"},
		{"processes without their ids", []string{"kill-alloc", "--addr", "127.0.0.1:1"}, nil, "--ready-file"},
		{"a partition of others", []string{"one-way", "--addr", "127.0.0.1:1"}, lab.ErrNoNamespaces, "one-way"},
		{"an unknown engine", []string{"kill-alloc", "--engine", "raft"}, nil, "expected store or etcd"},
		{"a leader of stores", []string{"kill-leader"}, lab.ErrEngine, "kill-leader"},
		{"too few members of etcd", []string{"pause-leader", "--engine", "etcd", "--stores", "1"}, lab.ErrTooSmall, "3 stores"},
		{"a store of a cluster on etcd", []string{"kill-store", "--engine", "etcd", "--node", "store-1"}, seq.ErrUnknownNode, "etcd-1"},
		{"an exact space on etcd", []string{"kill-alloc", "--engine", "etcd", "--space", "orders"}, etcdstore.ErrNoExact, "orders"},
		{"supervised on etcd", []string{"kill-alloc", "--engine", "etcd", "--supervise"}, localcluster.ErrConfig, "supervise"},
		{"an etcd of others for an own cluster", []string{"kill-alloc", "--etcd", "127.0.0.1:1"}, nil, "--engine etcd"},
		{"an engine for a cluster of others", []string{"drain-alloc", "--engine", "etcd", "--addr", "127.0.0.1:1"}, nil, "--etcd"},
		{"a cluster without stores and without its etcd", []string{"kill-alloc", "--ready-file", onEtcd}, lab.ErrEngine, "--etcd"},
		{"a member of an etcd of others", []string{"kill-store", "--ready-file", onEtcd, "--etcd", "127.0.0.1:1"}, lab.ErrEngine, "kill-store"},
		{"a leader of an etcd of others", []string{"pause-leader", "--ready-file", onEtcd, "--etcd", "127.0.0.1:1"}, lab.ErrEngine, "pause-leader"},
		{"a missing ready file", []string{"kill-alloc", "--ready-file", filepath.Join(dir, "none")}, lab.ErrReadyFile, "none"},
		{"a cluster in one process", []string{"kill-alloc", "--ready-file", same}, lab.ErrReadyFile, "--processes"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			out, err := seqctl(append([]string{"drill"}, test.args...)...)
			if !errors.Is(err, daemon.ErrUsage) || test.want != nil && !errors.Is(err, test.want) || !strings.Contains(fmt.Sprint(err), test.text) {
				t.Errorf("got %v, want a usage error of %v with %q", err, test.want, test.text)
			}
			if out != "" {
				t.Errorf("printed %q", out)
			}
		})
	}
}

func TestAClusterThatDoesNotAnswerIsUnhealthy(t *testing.T) {
	if _, err := seqctl("drill", "drain-alloc", "--addr", "127.0.0.1:1"); !errors.Is(err, lab.ErrUnhealthy) || errors.Is(err, daemon.ErrUsage) {
		t.Errorf("got %v, want %v", err, lab.ErrUnhealthy)
	}
}

func TestTheErrorOfTheProgramInsideIsTakenOver(t *testing.T) {
	var passed bytes.Buffer
	l := &lastError{to: &passed}
	for _, part := range []string{"the cluster's direc", "tory stays\nseqctl: drill: cluster is not", " healthy\nstore-1 is dead\n"} {
		if n, err := l.Write([]byte(part)); n != len(part) || err != nil {
			t.Fatalf("wrote %d, %v", n, err)
		}
	}
	if got, want := l.text(), "cluster is not healthy\nstore-1 is dead"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := passed.String(), "the cluster's directory stays\n"; got != want {
		t.Errorf("passed on %q, want %q", got, want)
	}
}
