package drill

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// cut is what no longer gets through, from the node's side.
type cut string

const (
	cutBoth cut = "cut off"
	cutIn   cut = "receives nothing"
	cutOut  cut = "sends nothing"
)

// network is a namespace for each node, and a hub that joins them by a bridge. The
// drill itself runs inside the hub, so that the machine's own network is not touched
// and parallel drills cannot meet. Names carry the process id of the drill.
type network struct {
	prefix string // of all names
	nodes  map[string]string
}

// names of namespaces begin so, then comes the process id.
const namespacePrefix = "seqdrill-"

// hubAddr is the bridge's own address, in the hub.
const hubAddr = "10.78.0.1"

func newNetwork(prefix string, nodes []string) *network {
	n := &network{prefix: prefix, nodes: map[string]string{}}
	for i, name := range nodes {
		n.nodes[name] = "10.78.0." + strconv.Itoa(i+10)
	}
	return n
}

// namespacesAvailable is nil where namespaces can be made, else ErrNoNamespaces.
func namespacesAvailable() error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("%w: they need root", ErrNoNamespaces)
	}
	for _, tool := range []string{"ip", "nft"} {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("%w: %w", ErrNoNamespaces, err)
		}
	}
	return nil
}

func (n *network) hub() string                  { return n.prefix + "hub" }
func (n *network) namespace(node string) string { return n.prefix + node }
func (n *network) host(node string) string      { return n.nodes[node] }

// wrap is the command line that runs argv inside the node's namespace.
func (n *network) wrap(node string, argv []string) []string {
	return append([]string{"ip", "netns", "exec", n.namespace(node)}, argv...)
}

// build makes the hub and all namespaces. After an error, remove what there is.
func (n *network) build(ctx context.Context) error {
	steps := [][]string{
		{"netns", "add", n.hub()},
		{"-n", n.hub(), "link", "set", "lo", "up"},
		{"-n", n.hub(), "link", "add", "bridge0", "type", "bridge", "forward_delay", "0"},
		{"-n", n.hub(), "addr", "add", hubAddr + "/24", "dev", "bridge0"},
		{"-n", n.hub(), "link", "set", "bridge0", "up"},
	}
	for node, addr := range n.nodes {
		ns := n.namespace(node)
		steps = append(steps,
			[]string{"netns", "add", ns},
			[]string{"-n", n.hub(), "link", "add", node, "type", "veth", "peer", "name", "eth0", "netns", ns},
			[]string{"-n", n.hub(), "link", "set", node, "master", "bridge0", "up"},
			[]string{"-n", ns, "link", "set", "lo", "up"},
			[]string{"-n", ns, "addr", "add", addr + "/24", "dev", "eth0"},
			[]string{"-n", ns, "link", "set", "eth0", "up"})
	}
	for _, args := range steps {
		if err := run(ctx, "", "ip", args...); err != nil {
			return fmt.Errorf("%w: %w", ErrNoNamespaces, err)
		}
	}
	// An empty table shows early whether nft works here at all.
	if err := n.rules(ctx, n.hub(), "add table inet seqdrill\ndelete table inet seqdrill\n"); err != nil {
		return fmt.Errorf("%w: %w", ErrNoNamespaces, err)
	}
	return nil
}

// remove takes every namespace away that there is; the links go with them.
func (n *network) remove() {
	for node := range n.nodes {
		_ = run(context.Background(), "", "ip", "netns", "del", n.namespace(node))
	}
	_ = run(context.Background(), "", "ip", "netns", "del", n.hub())
}

// cut drops packets inside the node's namespace.
func (n *network) cut(ctx context.Context, node string, how cut) error {
	policy := map[bool]string{true: "drop", false: "accept"}
	return n.rules(ctx, n.namespace(node), fmt.Sprintf(`table inet seqdrill {
	chain in { type filter hook input priority 0; policy %s; iif lo accept; }
	chain out { type filter hook output priority 0; policy %s; oif lo accept; }
}
`, policy[how != cutOut], policy[how != cutIn]))
}

func (n *network) mend(ctx context.Context, node string) error {
	return n.rules(ctx, n.namespace(node), "delete table inet seqdrill\n")
}

func (n *network) rules(ctx context.Context, namespace, text string) error {
	return run(ctx, text, "ip", "netns", "exec", namespace, "nft", "-f", "-")
}

// run is a tool that says nothing when all is well.
func run(ctx context.Context, stdin, tool string, args ...string) error {
	cmd := exec.CommandContext(ctx, tool, args...)
	cmd.Stdin = strings.NewReader(stdin)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", tool, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// sweep removes namespaces of drills that were killed before they could: the process
// in the name is gone, and nothing runs inside.
func sweep(ctx context.Context) {
	out, err := exec.CommandContext(ctx, "ip", "netns", "list").Output()
	if err != nil {
		return
	}
	for line := range strings.Lines(string(out)) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		rest, ok := strings.CutPrefix(name, namespacePrefix)
		if !ok {
			continue
		}
		text, _, _ := strings.Cut(rest, "-")
		pid, err := strconv.Atoi(text)
		if err != nil || pid <= 0 {
			continue
		}
		if _, err := os.Stat("/proc/" + text); !os.IsNotExist(err) {
			continue
		}
		if pids, err := exec.CommandContext(ctx, "ip", "netns", "pids", name).Output(); err == nil && strings.TrimSpace(string(pids)) == "" {
			_ = run(ctx, "", "ip", "netns", "del", name)
		}
	}
}
