// Package documents holds one compare-and-swap document of the stores as a node knows it, such as the
// catalogue of tags or the namespaces.
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
// What belongs here: loading, sharing loads, swapping until it is decided. What does not: the contents of a
// document, and registers that are owned (package ownership).
package documents
