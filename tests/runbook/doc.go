// Package runbook runs the procedures of docs/operations.md as they are written: each
// fenced block marked `sh runbook=NAME` is run against real processes, with this
// machine's addresses and folders in place of the example's. It has tests only; what
// the procedures promise is checked in tests/processes and tests/storecare.
package runbook
