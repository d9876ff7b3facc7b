// Package disk keeps the durable state of one store in a bbolt database.
//
// It guarantees that
//
//   - only Create makes a database, and it never touches one that is there: a missing
//     or empty file is an error at Open, never the start of an empty store;
//   - a database is whole or not there: Create builds it under another name, syncs it,
//     renames it and syncs the directory;
//   - Commit has everything of an update on disk (fsynced) before it returns nil, or,
//     after a crash, all or nothing of it. After an error the outcome is unknown, and
//     bbolt may go on to show either: the process must exit;
//   - each record, of one register or of fifty sections, carries a CRC-32C over its key
//     and value, since bbolt checks only its own meta pages. A record that does not
//     match, or a missing register that init made, is ErrCorrupt at Open;
//   - each transaction leaves a sum over all records and its own number. Where a disk lost a
//     write that it had confirmed, Open finds an older page with right checksums by them:
//     ErrLostWrite. An addition of a newer build is ErrNewer, never damage;
//   - one process has a database open at a time.
//
// Commits counts the transactions over the whole life of the disk, in the same
// transaction, so that a copy put back from earlier can be told by its smaller number.
//
// What belongs here: files and records. Packages acceptor and storesvr decide what a record
// means.
package disk
