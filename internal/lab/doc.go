// Package lab breaks clusters of real processes on purpose, under load, and reports the effect on callers.
//
// The faults are a list of values: a Scenario says what it breaks, what it needs and what is expected of
// it. `seqctl drill` plays one of them with a timeline (Drill). `make robust` and `make soak` play them in
// turn, with random victims and times (DrawnScene), and with scenarios of their own.
//
// The verdict is from a history with every call of the load. A drill refuses a cluster that is not healthy
// before it breaks anything. A cluster of its own is gone after Close. In a cluster of others a drill
// breaks only what the scenario names, and repairs it as far as it can.
//
// What belongs here: finding or starting the cluster, the load, the scenarios, the timeline and the
// figures. What does not: starting and signalling processes (internal/lab/localcluster), the namespaces
// (internal/lab/netlab), and the promises (internal/lab/history). The package prints nothing and sees a
// daemon only through its API.
package lab
