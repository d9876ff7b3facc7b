// Package setdocs holds what a node knows of the Sets. It has two documents: the Record of its own Set,
// kept at its stores, and the Map of all Sets, which the root Set keeps. Package sets has the rules of
// both.
//
// The known versions may be old. A node decides by Load, after the register was promised, whether it may
// serve a section. Known and Map serve answers to callers, and the choice of sections not to bid for.
package setdocs
