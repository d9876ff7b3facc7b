package config

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// FuzzFile: any file sets flags or is refused with an error that says where.
func FuzzFile(f *testing.F) {
	f.Add("listen: 127.0.0.1:1\nstores: [a:1, b:2]\nlease: 3s\nweight: 7\nsupervise: true\n")
	f.Add("stores: &x [a]\nother: *x\n")
	f.Add("# nothing\n")
	f.Add("---\nlisten: a\n---\nlisten: b\n")
	f.Add("listen: {a: b}\n")
	f.Add("<<: {listen: a}\nLISTEN: b\n")
	f.Fuzz(func(t *testing.T, text string) {
		path := filepath.Join(t.TempDir(), "f.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		fs := pflag.NewFlagSet("fuzz", pflag.ContinueOnError)
		fs.String("listen", "", "address")
		fs.StringSlice("stores", nil, "addresses")
		fs.Duration("lease", time.Second, "lease")
		fs.Uint32("weight", 1, "weight")
		fs.Bool("supervise", false, "parent")
		if err := Load(fs, []string{"--config", path}, nil); err != nil {
			var named *Error
			if !errors.As(err, &named) || err.Error() == "" {
				t.Fatalf("error of no name: %v", err)
			}
		}
	})
}
