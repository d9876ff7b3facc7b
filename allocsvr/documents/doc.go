// Package documents is one compare-and-swap document on the stores as a node knows it: the
// catalogue of tags, the namespaces.
//
// It guarantees that
//
//   - Known never goes back to an older version, and each listener for newer ones is
//     told of them in their order;
//   - Read gives what was recorded before it was called, and any number of readers make at
//     most one load at a time, with a pause between two: a flood of unknown names does no harm;
//   - Change leaves out nothing that another writer did: it edits what it has loaded, and
//     begins again if that is no longer the newest version.
//
// What belongs here: loading, sharing loads, swapping until it is decided. What does not: what
// a document says, and registers that are owned (package ownership).
package documents
