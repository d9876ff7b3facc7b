// Package logs keeps the logs of the exact sections that a node owns: one exact.Owner a
// section, and one sender for all of them. What waits at one moment travels in one message a
// store and is one commit there; while that is under way, the next gathers.
//
// It guarantees that
//
//   - an answer is given once W stores have its record, or, if it took nothing, once a batch
//     that began after the question is at W stores: an owner's memory alone may be old;
//   - a batch is repeated as it is until W stores have it, or its log ends: an index of an
//     epoch never gets another record;
//   - a log begins from the highest copy among W stores that have promised its epoch, and
//     serves nothing before its own first record is at W stores;
//   - a log that was closed begins no batch any more.
//
// What belongs here: the messages of logs, and the calls that wait for them. What does not: what a
// record may say (package exact), which node owns a section (allocsvr/section, allocsvr/owner).
package logs
