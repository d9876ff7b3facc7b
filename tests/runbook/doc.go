// Package runbook runs the procedures of docs/deploy.md, docs/operations.md and docs/security.md
// as they are written. Each fenced block marked `sh runbook=NAME` runs on real processes, with this
// machine's addresses and folders in place of the example's. The package has tests only;
// tests/processes and tests/storecare check what the procedures promise.
package runbook
