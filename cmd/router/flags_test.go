package main

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/seqsvr/seqsvr/internal/config"
	"github.com/seqsvr/seqsvr/internal/daemon"
)

const example = "../../deploy/config/router.yaml"

func TestTheExampleFileSetsEveryFlag(t *testing.T) {
	fs, _ := flags()
	if err := config.Load(fs, []string{"--config", example}, nil); err != nil {
		t.Fatal(err)
	}
	fs.VisitAll(func(f *pflag.Flag) {
		if !f.Changed {
			t.Errorf("%s is not in %s", f.Name, example)
		}
	})
	o, err := load([]string{"--config", example}, nil, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if o.HTTPListen != "0.0.0.0:7480" || len(o.Allocs) != 3 {
		t.Errorf("got %+v", o.Config)
	}
}

func TestAWrongCallIsAUsageErrorThatNamesWhatIsWrong(t *testing.T) {
	tests := []struct {
		name string
		args []string
		want string
	}{
		{"no allocs", []string{"--listen", "127.0.0.1:0", "--http", ""}, "llocs"},
		{"an unknown flag", []string{"--colour"}, "colour"},
		{"an argument", []string{"serve"}, "flags only"},
		{"a bad log level", []string{"--log-level", "loud"}, "loud"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := run(t.Context(), test.args, io.Discard, io.Discard)
			if !errors.Is(err, daemon.ErrUsage) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want a usage error with %q", err, test.want)
			}
		})
	}
}
