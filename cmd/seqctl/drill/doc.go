// Package drill is `seqctl drill`: it has one scenario of internal/lab break a cluster,
// and tells what came of it.
//
// It guarantees that a wrong call is refused before anything is started, that the program
// runs in namespaces of its own where the scenario needs them, and that a cluster of its
// own, and every namespace, is gone when the verb ends, also after Ctrl-C.
//
// What belongs here: the flags, and the result as text, JSON and a page. What is broken,
// how it is loaded and what is counted is internal/lab's.
package drill
