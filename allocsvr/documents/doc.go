// Package documents holds the compare-and-swap documents of the stores as a node knows them: one of any kind
// (Document), how string keys are hashed (Keys), the Sets (Sets), and the spaces that were added (Spaces).
//
// It guarantees that
//
//   - Known never goes back to an older version, and each listener hears of newer versions in
//     their order;
//   - Read returns a version that is no older than its call. Any number of readers make at most
//     one load at a time, with a pause between two, so a flood of unknown names does no harm;
//   - Change keeps every change of other writers. It edits the version that it has loaded, and
//     begins again if that is no longer the newest version.
//
// What belongs here: loading, sharing loads, swapping until it is decided, and the contents of the
// documents of string keys, Sets and spaces. What does not: the rules of Sets (package sets), hashing
// (package seq), tags and namespaces (their packages), and registers that are owned (package ownership).
package documents
