// Package owner is how a node comes to own sections and gives them away.
//
// It seeks sections that the route table gives to the node, or that are left by a node
// that is gone (seek.go, acquire.go), takes those that another node hands to it
// (offered.go), hands over what the table wants elsewhere (give.go), and everything when
// the node leaves (leave.go). It guarantees that a section goes on from sealed counters
// only if their epoch is the last accepted one, and otherwise from a base above everything
// that was handed out; and that a section is sealed before its lease is released.
//
// What belongs here: when and from whom a section is taken, when and to whom it is given.
// What does not: how a register is won (package ownership), how a number is taken (package
// section), which node should own what (package arbiter).
package owner
