// Package linear checks that the configuration registers, such as the route table and
// the namespaces, are linearizable compare-and-swap documents: callers of several
// sessions load and swap them on stores that are stopped, restarted, deafened and lose
// steps, every call is recorded with its times, and porcupine looks for an order that
// explains all answers. A swap of which the outcome is unknown may have taken effect at
// any later moment, or never.
//
// The stores are those of tests/memstore, the shipped acceptor and the shipped client of
// it without disks and networks, so that thousands of calls fit into a second; and real
// StoreSvr processes that are killed and started, over ways that stall one way or both,
// break and refuse, of each client its own.
package linear
