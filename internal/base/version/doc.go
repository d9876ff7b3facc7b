// Package version says which build this is: for `--version`, `version -o json`,
// the start line of every log and the build metric.
//
// A release is stamped by the linker:
//
//	go build -ldflags "-X github.com/seqsvr/seqsvr/internal/base/version.Version=v1.2.3
//	  -X github.com/seqsvr/seqsvr/internal/base/version.Commit=<40 hex digits>
//	  -X github.com/seqsvr/seqsvr/internal/base/version.Date=2006-01-02T15:04:05Z"
//
// What the linker left empty is taken from what the go command wrote into the
// binary (the module's version for `go install`, the commit for `go build` in a
// checkout), so that a build without any of that still tells the truth.
//
// Only facts about the build belong here.
package version
