package netlab

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// Network is the plan of a hub and its nodes, and the namespaces once Build made them.
// Methods for different nodes may run at once.
type Network struct {
	prefix string // of all names
	nodes  map[string]string
}

// HubAddr is the bridge's own address, in the hub.
const HubAddr = "10.78.0.1"

// Prefix is the beginning of the names that Sweep can tell the maker of: kind, such as
// "seqdrill-", and the id of this process.
func Prefix(kind string) string { return kind + strconv.Itoa(os.Getpid()) + "-" }

// New plans a network. Names of nodes are at most 15 bytes, and none that ip takes for
// a word of its own, such as a single letter.
func New(prefix string, nodes []string) *Network {
	n := &Network{prefix: prefix, nodes: map[string]string{}}
	for i, name := range nodes {
		n.nodes[name] = "10.78.0." + strconv.Itoa(i+10)
	}
	return n
}

// Available is nil where namespaces can be made, else ErrUnavailable with what is missing.
func Available() error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("%w: they need root", ErrUnavailable)
	}
	for _, tool := range []string{"ip", "nft"} {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
	}
	return nil
}

// Hub is the hub's namespace, Namespace a node's.
func (n *Network) Hub() string { return n.prefix + "hub" }

// Namespace is the namespace of a node.
func (n *Network) Namespace(node string) string { return n.prefix + node }

// Host is a node's address.
func (n *Network) Host(node string) string { return n.nodes[node] }

// Wrap is the command line that runs argv inside the node's namespace.
func (n *Network) Wrap(node string, argv []string) []string {
	return append([]string{"ip", "netns", "exec", n.Namespace(node)}, argv...)
}

// Build makes the hub and all namespaces. ErrUnavailable if that fails; Remove then what
// there is.
func (n *Network) Build(ctx context.Context) error {
	steps := [][]string{
		{"netns", "add", n.Hub()},
		{"-n", n.Hub(), "link", "set", "lo", "up"},
		{"-n", n.Hub(), "link", "add", "bridge0", "type", "bridge", "forward_delay", "0"},
		{"-n", n.Hub(), "addr", "add", HubAddr + "/24", "dev", "bridge0"},
		{"-n", n.Hub(), "link", "set", "bridge0", "up"},
	}
	for node, addr := range n.nodes {
		ns := n.Namespace(node)
		steps = append(steps,
			[]string{"netns", "add", ns},
			[]string{"-n", n.Hub(), "link", "add", node, "type", "veth", "peer", "name", "eth0", "netns", ns},
			[]string{"-n", n.Hub(), "link", "set", node, "master", "bridge0", "up"},
			[]string{"-n", ns, "link", "set", "lo", "up"},
			[]string{"-n", ns, "addr", "add", addr + "/24", "dev", "eth0"},
			[]string{"-n", ns, "link", "set", "eth0", "up"})
	}
	for _, args := range steps {
		if err := run(ctx, "", "ip", args...); err != nil {
			return fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
	}
	// An empty table shows early whether nft works here at all.
	if err := n.rules(ctx, n.Hub(), "add table inet seqdrill\ndelete table inet seqdrill\n"); err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return nil
}

// Remove removes every namespace; the links go with them.
func (n *Network) Remove() {
	for node := range n.nodes {
		_ = run(context.Background(), "", "ip", "netns", "del", n.Namespace(node))
	}
	_ = run(context.Background(), "", "ip", "netns", "del", n.Hub())
}

func (n *Network) rules(ctx context.Context, namespace, text string) error {
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

// Sweep removes namespaces of that kind whose makers were killed before they could: the
// process in the name is gone, and nothing runs inside.
func Sweep(ctx context.Context, kind string) {
	out, err := exec.CommandContext(ctx, "ip", "netns", "list").Output()
	if err != nil {
		return
	}
	for line := range strings.Lines(string(out)) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		rest, ok := strings.CutPrefix(name, kind)
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
