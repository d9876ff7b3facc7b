// Package logs keeps the logs of the exact sections that a node owns. It has one exact.Owner for each
// section, and one sender for all. The sender puts all waiting requests into one message to each store,
// which commits them together. While that message is under way, further requests gather.
//
// It guarantees that
//
//   - an answer is given once W stores have its record. An answer that took nothing
//     is given once a batch that began after the question is at W stores, because
//     an owner's memory alone may be old;
//   - a batch is repeated unchanged until W stores have it, or its log ends, so an index of an
//     epoch never gets another record;
//   - a log begins from the highest copy among W stores that have promised its epoch, and
//     serves nothing before its own first record is at W stores;
//   - a closed log begins no batch.
//
// What belongs here: the messages of logs, and the calls that wait for them. What does not: the rules for a
// record (package exact), and which node owns a section (allocsvr/section, allocsvr/owner).
package logs
