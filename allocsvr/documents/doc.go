// Package documents is the compare-and-swap documents on the stores as a node knows them: one of any kind
// (Document), how string keys are hashed (Keys), the Sets (Sets), and the spaces that were added (Spaces).
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
// What belongs here: loading, sharing loads, swapping until it is decided, and what is read and changed in
// the documents of string keys, Sets and spaces. What does not: the rules of Sets (package sets), hashing
// (package seq), tags and namespaces (their packages), and registers that are owned (package ownership).
package documents
