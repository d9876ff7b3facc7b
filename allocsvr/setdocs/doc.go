// Package setdocs is what a node knows of the Sets: the Record of its own, a document at its
// stores, and the Map of all, which the root Set keeps. The rules of both are in package sets.
//
// What is known may be old. Whether a section may be served is decided by Load, after the
// register was promised; Known and Map are for answers to callers and for what not to bid for.
package setdocs
