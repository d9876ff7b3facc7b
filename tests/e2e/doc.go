// Package e2e is the module of the tests and benchmarks that need libraries which no
// user of the SDK or of the daemons should have to download: other systems' clients,
// other ID libraries, FUSE, a WebAssembly runtime, the types of Kubernetes. Each
// folder below has a doc.go of its own. Nothing outside this module imports it.
package e2e
