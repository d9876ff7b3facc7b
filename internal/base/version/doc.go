// Package version says which build this is: for `--version`, `version -o json`, the start line of every log
// and the build metric.
//
// The linker stamps a release:
//
//	go build -ldflags "-X github.com/seqsvr/seqsvr/internal/base/version.Version=v1.2.3
//	  -X github.com/seqsvr/seqsvr/internal/base/version.Commit=<40 hex digits>
//	  -X github.com/seqsvr/seqsvr/internal/base/version.Date=2006-01-02T15:04:05Z"
//
// If the linker left a field empty, the package takes it from the build information of the go command: the
// module's version after `go install`, the commit after `go build` in a checkout.
//
// Only facts about the build belong here.
package version
