package netlab

import (
	"context"
	"fmt"
)

// Cut is what no longer gets through, from the node's side.
type Cut string

// The cuts between a node and all others, loopback excepted.
const (
	CutBoth Cut = "cut off"
	CutIn   Cut = "receives nothing"
	CutOut  Cut = "sends nothing"
)

// Cut drops packets inside the node's namespace until Mend.
func (n *Network) Cut(ctx context.Context, node string, how Cut) error {
	policy := map[bool]string{true: "drop", false: "accept"}
	return n.chains(ctx, node, policy[how != CutOut], policy[how != CutIn], "", "")
}

// Reject answers every packet to the node, until Mend, with a refusal: connections break
// at once rather than hang.
func (n *Network) Reject(ctx context.Context, node string) error {
	const refuse = "meta l4proto tcp reject with tcp reset; reject;"
	return n.chains(ctx, node, "accept", "accept", refuse, "")
}

// Lose drops that many percent of the packets to the node and from it, until Mend.
func (n *Network) Lose(ctx context.Context, node string, percent int) error {
	rule := fmt.Sprintf("numgen random mod 100 < %d drop;", percent)
	return n.chains(ctx, node, "accept", "accept", rule, rule)
}

// Part drops everything between two nodes, until Mend of a: all others are reached.
func (n *Network) Part(ctx context.Context, a, b string) error {
	other := n.Host(b)
	return n.chains(ctx, a, "accept", "accept", "ip saddr "+other+" drop;", "ip daddr "+other+" drop;")
}

// chains puts one table into the node's namespace.
func (n *Network) chains(ctx context.Context, node, inPolicy, outPolicy, inRule, outRule string) error {
	return n.rules(ctx, n.Namespace(node), fmt.Sprintf(`table inet seqdrill {
	chain in { type filter hook input priority 0; policy %s; iif lo accept; %s }
	chain out { type filter hook output priority 0; policy %s; oif lo accept; %s }
}
`, inPolicy, inRule, outPolicy, outRule))
}

// Mend lets everything through again. It is an error if nothing was cut.
func (n *Network) Mend(ctx context.Context, node string) error {
	return n.rules(ctx, n.Namespace(node), "delete table inet seqdrill\n")
}
