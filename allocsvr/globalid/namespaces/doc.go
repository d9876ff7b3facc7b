// Package namespaces is what the cluster says of global IDs: which namespaces there are, in
// which layout, and which datacenter has which id.
//
// All of it is one document on the stores. It guarantees that
//
//   - what is recorded changes only in ways under which no ID comes twice: a layout by the
//     rules of package snowflake, an alias and a datacenter id never;
//   - a namespace that is used is recorded before, and the datacenter of the node that uses it is bound
//     to its name;
//   - what is recorded wins over what a node is configured with.
//
// Where nothing is recorded, every node offers three namespaces, so that the endpoint works
// without being set up:
//
//	default     Twitter's layout; also asked for by an empty name
//	regional-1  the layout "regional", alias 1
//	regional-2  the layout "regional", alias 2
//
// since the users of the regional service ask for {"namespace": 1} and 2 and expect
// datacenter, worker and sequence at that layout's places. An offer is recorded, and with it
// fixed, when it is first used; until then a put of the same name or alias takes its place.
//
// What belongs here: the document and its rules, the view of it that requests are looked up
// in. What does not: worker ids and IDs (package workers), loading and swapping as such
// (package documents).
package namespaces
