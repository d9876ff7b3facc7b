// Package authctl has the verbs of `seqctl auth`: certificates with roles, tokens, keys of backups, and
// what a policy file says. They need no cluster and change files only.
package authctl
