package arch

import (
	"bytes"
	"path"
	"slices"
	"strings"
	"testing"
)

// observing are the libraries by which daemons are watched.
var observing = []string{"go.opentelemetry.io/otel", "go.opentelemetry.io/proto", "go.opentelemetry.io/contrib", "github.com/prometheus/"}

// embedded are the folders that programs of others import: they compile none of those.
var embedded = []string{"client", "seq", "snowflake", "quorum", "proto/seqsvr/v1"}

// imports returns the imports of the shipped files of each folder.
func imports(t *testing.T) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for _, f := range files(t) {
		if strings.HasSuffix(f.name, "_test.go") {
			continue
		}
		for _, spec := range f.ast.Imports {
			out[path.Dir(f.name)] = append(out[path.Dir(f.name)], strings.Trim(spec.Path.Value, `"`))
		}
	}
	return out
}

func isObserving(target string) bool {
	return slices.ContainsFunc(observing, func(prefix string) bool { return strings.HasPrefix(target, prefix) })
}

func TestWhoUsesTheSDKCompilesNothingThatWatchesDaemons(t *testing.T) {
	all := imports(t)
	for _, first := range embedded {
		seen := map[string]bool{first: true}
		for open := []string{first}; len(open) > 0; {
			folder := open[0]
			open = open[1:]
			for _, target := range all[folder] {
				if isObserving(target) {
					t.Errorf("%s comes to %s by %s", first, target, folder)
				}
				if ours, ok := strings.CutPrefix(target, module); ok && !seen[ours] {
					seen[ours] = true
					open = append(open, ours)
				}
			}
		}
		if first == "client" && !seen["internal/wire/rpc"] {
			t.Errorf("client does not come to internal/wire/rpc: %v", seen)
		}
	}
}

func TestNothingConnectsWithoutTheChecksOfCryptoTLS(t *testing.T) {
	const switchedOff = "InsecureSkip" + "Verify"
	for _, f := range files(t) {
		if bytes.Contains(f.text, []byte(switchedOff)) {
			t.Errorf("%s: %s", f.name, switchedOff)
		}
	}
}

func TestOpenTelemetryStaysInOnePackage(t *testing.T) {
	users := map[string]bool{}
	for folder, targets := range imports(t) {
		for _, target := range targets {
			if !strings.HasPrefix(target, "go.opentelemetry.io/") {
				continue
			}
			users[folder] = true
			sdk := strings.Contains(target, "/sdk") || strings.Contains(target, "/exporters/")
			if !under(folder, "internal/process/tracing") && folder != "tests/kit/otlptest" || sdk && folder != "internal/process/tracing/otlp" {
				t.Errorf("%s imports %s", folder, target)
			}
		}
		for _, target := range targets {
			if target == module+"internal/process/tracing/otlp" && folder != "internal/process/daemon" {
				t.Errorf("%s imports %s: internal/process/daemon alone starts it", folder, target)
			}
		}
	}
	if !users["internal/process/tracing"] || !users["internal/process/tracing/otlp"] {
		t.Errorf("nobody imports OpenTelemetry: %v", users)
	}
}
