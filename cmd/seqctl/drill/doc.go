// Package drill is `seqctl drill`: it breaks a part of a cluster on purpose, under
// load, and tells what the callers saw of it.
//
// It guarantees that every call of the load is in the history that the verdict is
// from; that a cluster that is not healthy is refused before anything is broken; that
// a cluster of its own, and every network namespace, is gone when the verb ends, also
// after Ctrl-C; and that in a cluster of others only what the drill names is hurt, and
// is brought back as far as that can be done.
//
// What belongs here: the drills, their load, the timeline and the verdict. Starting
// and hurting processes is internal/localcluster, the promises are internal/history.
package drill
