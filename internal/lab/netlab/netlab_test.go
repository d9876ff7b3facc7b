package netlab

import (
	"bytes"
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func TestEveryCutIsMadeAndMendedAndNothingIsLeft(t *testing.T) {
	if err := Available(); err != nil {
		t.Skip(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	prefix := Prefix("netlabtest-")
	n := New(prefix, []string{"node-a", "node-b"})
	t.Cleanup(n.Remove)
	if err := n.Build(ctx); err != nil {
		t.Skip(err)
	}
	cuts := map[string]struct {
		do   func() error
		want string
	}{
		"both":   {func() error { return n.Cut(ctx, "node-a", CutBoth) }, "policy drop"},
		"in":     {func() error { return n.Cut(ctx, "node-a", CutIn) }, "policy drop"},
		"out":    {func() error { return n.Cut(ctx, "node-a", CutOut) }, "policy drop"},
		"reject": {func() error { return n.Reject(ctx, "node-a") }, "reject"},
		"lose":   {func() error { return n.Lose(ctx, "node-a", 30) }, "< 30"},
		"part":   {func() error { return n.Part(ctx, "node-a", "node-b") }, n.Host("node-b")},
	}
	for name, cut := range cuts {
		if err := cut.do(); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := rulesOf(ctx, t, n); !strings.Contains(got, cut.want) {
			t.Errorf("%s: rules are %q, want %q in them", name, got, cut.want)
		}
		if err := n.Mend(ctx, "node-a"); err != nil {
			t.Errorf("mend %s: %v", name, err)
		}
		if got := rulesOf(ctx, t, n); got != "" {
			t.Errorf("mended %s: rules are %q", name, got)
		}
	}
	var out bytes.Buffer
	if err := n.RunInside(ctx, []string{"ip", "-o", "addr"}, &out, &out); err != nil || !strings.Contains(out.String(), HubAddr+"/") {
		t.Errorf("inside the hub: %q, %v, want %s", out.String(), err, HubAddr)
	}
	n.Remove()
	if list, err := exec.CommandContext(ctx, "ip", "netns", "list").Output(); err != nil || strings.Contains(string(list), prefix) {
		t.Errorf("namespaces are left: %q, %v", list, err)
	}
}

func rulesOf(ctx context.Context, t *testing.T, n *Network) string {
	t.Helper()
	out, err := exec.CommandContext(ctx, "ip", "netns", "exec", n.Namespace("node-a"), "nft", "list", "ruleset").CombinedOutput()
	if err != nil {
		t.Fatalf("nft: %v: %s", err, out)
	}
	return string(out)
}
