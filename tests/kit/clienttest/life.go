package clienttest

import (
	"slices"

	"github.com/seqsvr/seqsvr/seq"
)

// Live restarts all nodes as processes of that life of the cluster. The version of the route table begins
// at 1, and numbers go on. Without Live the nodes tell no life, like nodes of the previous version.
func (c *Cluster) Live(life seq.Incarnation) {
	c.mu.Lock()
	next := c.routes.Clone()
	next.Version = 1
	c.routes = next
	c.mu.Unlock()
	for _, n := range c.Nodes {
		n.Live(life)
	}
}

// Live restarts the node as a process of that life of the cluster.
func (n *Node) Live(life seq.Incarnation) {
	n.mu.Lock()
	n.life = life
	n.mu.Unlock()
	n.Restart()
}

// incarnation is the life that the node tells.
func (n *Node) incarnation() seq.Incarnation {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.life
}

// Hold has the map say the lives of the Sets, as a newer version that all know.
func (s *Sets) Hold(lives ...seq.Incarnation) {
	s.m.Sets = slices.Clone(s.m.Sets)
	for i, life := range lives {
		s.m.Sets[i].Incarnation = life
	}
	s.Publish()
}
