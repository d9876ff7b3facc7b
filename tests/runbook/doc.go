// Package runbook runs the procedures of the documents in docs as they are written. Each fenced
// block marked `sh runbook=NAME` runs on real processes, with this machine's addresses and folders in
// place of the example's. `on=A,B` names the machines that run it, one after the other, with their
// name in NAME. The package has tests only; tests/processes and tests/storeadmin check what the
// procedures promise.
package runbook
