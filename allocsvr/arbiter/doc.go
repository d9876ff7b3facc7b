// Package arbiter is the route table: which node should own which section. One node at a time
// holds the arbiter's lease and plans it; every node reads it, and some write in it what
// they know better: that they leave, what they weigh, to whom they gave their sections.
//
// No promise of uniqueness or order rests on any of this: the registers decide which node
// may serve a section, the table says only which should. Two arbiters at once do no harm, since
// the table is changed by compare-and-swap.
//
// It owns the table as this node knows it (Routes), the log of decisions beside it (Event),
// the arbiter's lease (Lease), what the arbiter remembers of nodes that come and go
// (Arbiter), and the changes that operators ask for. It never touches a section. Its Config
// tells which nodes are alive; the rules of placement are in package placement.
package arbiter
