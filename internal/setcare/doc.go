// Package setcare moves sections between Sets: it asks the nodes of both, and of the root, for
// the steps in their order. It keeps nothing that is not in the documents, so a Mover may end
// anywhere, or run twice at once; the next one finishes, or takes the move back.
//
// The rules of the steps are in package sets, and each node checks those that it takes.
package setcare
