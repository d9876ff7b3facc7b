// Package ctl is the verbs of seqctl that ask or change a running cluster, and what
// all verbs of seqctl share: output formats, the address, errors and exit codes.
//
// It guarantees exit code 0 when everything that was asked for was done, 1 when
// something failed and 2 when the command line was wrong; that what failed is one line
// on stderr naming the thing that was wrong; and that stdout holds results only.
//
// What runs a cluster (dev) or loads one (replay) is in packages of
// its own beside this one.
package ctl
