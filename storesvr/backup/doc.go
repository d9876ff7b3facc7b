// Package backup is the file that a cluster's registers are saved in, what checks such
// registers, and what makes new stores of them for a new era.
//
// It guarantees that
//
//   - a file that is cut short, or of which a bit has changed, is refused: every record
//     and the whole file have checksums;
//   - with a key, a file that was not made with that key, or was changed by one that lacks
//     it, is told from one that was;
//   - a restore raises only, and never goes into a database that is there: every number
//     that may have been handed out after the backup lies below where the new era starts,
//     as long as it is within the bump, and whoever still serves under the era before is
//     refused;
//   - what is parked, sealed or promised from the era before is void in the new one.
//
// What belongs here: files and states. Reading a running cluster is internal/ops/storeadmin's
// business, and what a damaged database is that of disk.
package backup
