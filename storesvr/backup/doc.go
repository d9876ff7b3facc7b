// Package backup writes, reads and checks the file with a cluster's registers, and creates
// the stores of a new era from it.
//
// It guarantees that
//
//   - a file that is cut short, or of which a bit has changed, is refused: every record
//     and the whole file have checksums;
//   - with a key, a reader tells a file signed with that key from any other file, and finds
//     every change made without the key;
//   - a restore only raises, and never writes into an existing database. The new era starts
//     above every number that was handed out after the backup, if the bump covers it.
//     Stores refuse a node that still serves under the era before;
//   - what is parked, sealed or promised from the era before is void in the new one.
//
// What belongs here: files and states. Reading a running cluster is internal/ops/storeadmin's
// business. Package disk decides what a damaged database is.
package backup
