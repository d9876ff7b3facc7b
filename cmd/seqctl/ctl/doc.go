// Package ctl has the verbs of seqctl that query or change a running cluster. It also has the parts that
// all verbs of seqctl share: output formats, the address, errors and exit codes.
//
// It guarantees exit code 0 if everything was done, 1 if something failed, and 2 if the command line was
// wrong. It prints a failure as one line on stderr that names the thing that was wrong. It prints only
// results to stdout.
//
// The verbs that run a cluster (dev) or load one (replay) have packages of their own beside this package.
package ctl
