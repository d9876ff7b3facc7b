// Package storectl is the verbs `seqctl store ...`: the state of the stores, their
// replacement, growing and shrinking, backup and restore. One file a verb.
//
// Verbs that need the running stores take --stores, or ask --addr for them; those that
// need files only (inspect, check, restore) ask no store. status, backup, restore and
// windows-over have --etcd for clusters on etcd.
package storectl
