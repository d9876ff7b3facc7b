// Package lab breaks clusters of real processes on purpose, under load, and tells what
// the callers saw of it.
//
// What can be broken is a list of values: a Scenario says what it breaks, what it needs
// and what is expected of it. `seqctl drill` plays one of them with a timeline (Drill);
// `make robust` and `make soak` play them in turn, with victims and times that chance
// draws (DrawnScene), beside scenarios of their own.
//
// It guarantees that every call of the load is in the history that the verdict is from;
// that a drill refuses a cluster that is not healthy before anything is broken; that a
// cluster of its own is gone after Close; and that in a cluster of others only what the
// scenario names is hurt, and is brought back as far as that can be done.
//
// What belongs here: finding or starting the cluster, the load, the scenarios, the
// timeline and the figures. Starting and signalling processes is internal/lab/localcluster,
// the namespaces are internal/lab/netlab, the promises internal/lab/history. It prints nothing
// and never looks into a daemon but by its API.
package lab
