// Package survey asks the nodes of a cluster what they know of themselves and of it, and
// judges that: how well the cluster is, what is wrong, and what to do first. `seqctl status`
// prints what it finds, and the console shows it. It changes nothing.
package survey
