// Package drills runs every drill of seqctl on real processes and holds it to the
// checks of the protocol over the whole history: no duplicate, no regression, and no
// error that callers of the SDK see while a quorum is there.
//
// What belongs here: that a drill ends well, leaves nothing behind and tells the truth.
// How long a pause was is measured by report.sh on a machine with nothing else to do,
// never asserted here.
package drills
