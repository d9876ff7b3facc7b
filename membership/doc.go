// Package membership is the gossip view of the StoreSvr, AllocSvr and routers of one cluster, kept by
// hashicorp/memberlist.
//
// It guarantees, and does not guarantee, the following:
//
//   - It is a hint. A member may be shown alive after it died, and dead while it lives; two nodes may
//     see different members. Nothing that hands out a number, grants a lease or takes over a section
//     may depend on it: those ask the stores. The view makes people, routers and standbys look sooner.
//   - Nodes of different clusters never mix: the cluster id is memberlist's label on every packet and
//     every stream, and an empty cluster id is refused.
//   - Of the route table only the version number travels here. A node that sees a larger one than its own
//     fetches the table over gRPC.
//   - A member that died or left stays in the view for ten minutes, with the moment it was seen to go,
//     so that people can read "dead since".
//
// memberlist 0.7 tells its delegates that a node is gone, not whether it died or left, and never that it is
// suspect. So a leaving node spreads a departure notice of its own ahead of memberlist's. A node that hears
// the notice only after the death corrects "dead" to "left". Suspect members count as alive.
//
// What belongs here: member metadata and its encoding, the gossip profiles, joining and rejoining. What
// does not: placement, health of sections, and anything a decision of safety rests on.
//
// The roster (roster.go) is the pure core: no clock, goroutine or I/O. View wires it to memberlist.
package membership
