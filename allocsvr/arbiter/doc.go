// Package arbiter keeps the route table, which says which node should own which section. One node at a time
// holds the arbiter's lease and plans the table. Every node reads it. Nodes write into it that they leave,
// their weights, and the new owners of sections that they gave away.
//
// Uniqueness and order do not depend on the table. The registers decide which node may serve a section, and
// the table says only which node should. Two arbiters at once do no harm, because the table is changed by
// compare-and-swap.
//
// The package has the table as this node knows it (Routes), the log of decisions (Event), the arbiter's
// lease (Lease), the arbiter's memory of nodes that come and go (Arbiter), and the changes that operators
// ask for. It never touches a section. Its Config tells which nodes are alive. The rules of placement are
// in package placement.
package arbiter
