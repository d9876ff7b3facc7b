// Package arch has no code: its tests hold the rules of the tree, so that a
// newcomer learns of them by a failing test and not by a review.
package arch
