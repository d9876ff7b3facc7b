// Package linear checks that the configuration registers, such as the route table and the namespaces, are
// linearizable compare-and-swap documents. Callers of several sessions load and swap them on stores that
// are stopped, restarted, deafened and lose steps. Every call is recorded with its times, and porcupine
// looks for an order that explains all answers. A swap with an unknown outcome may have taken effect at any
// later moment, or never.
//
// One run uses the stores of tests/kit/memstore: the shipped acceptor and its shipped client without disks and
// networks, so that thousands of calls fit into a second. Another uses real StoreSvr processes that are
// killed and started. Each client reaches them over connections of its own, which stall one way or both,
// break and refuse.
package linear
