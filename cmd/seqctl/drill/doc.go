// Package drill implements `seqctl drill`. It makes one scenario of internal/lab break a cluster, and
// prints the result.
//
// It guarantees that a wrong call is refused before anything is started. If the scenario needs it, the
// program runs in namespaces of its own. Its own cluster and every namespace are gone when the verb ends,
// also after Ctrl-C.
//
// What belongs here: the flags, and the result as text, JSON and a page. What does not: the faults, the
// load and the counts, which are in internal/lab.
package drill
