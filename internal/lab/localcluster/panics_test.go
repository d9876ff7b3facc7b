package localcluster

import (
	"os"
	"path/filepath"
	"testing"
)

func TestAPanicIsFoundInTheLogOfADaemon(t *testing.T) {
	for line, found := range map[string]bool{
		`{"level":"ERROR","msg":"handler panicked","method":"/seqsvr.v1.Sequence/Stream"}`:   true,
		`time=2026-11-27T07:00:00Z level=WARN msg="http: panic serving 127.0.0.1:5: secret"`: true,
		`panic: runtime error: index out of range`:                                           true,
		`fatal error: all goroutines are asleep - deadlock!`:                                 true,
		`time=2026-11-27T07:00:00Z level=INFO msg="no panic: all is well"`:                   false,
	} {
		file := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(file, []byte("first\n"+line+"\nlast\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := PanicIn(file); (got == line) != found {
			t.Errorf("%s: got %q, want it found: %t", line, got, found)
		}
	}
}
