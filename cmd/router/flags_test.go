package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/seqsvr/seqsvr/internal/base/config"
	"github.com/seqsvr/seqsvr/internal/process/daemon"
	"github.com/seqsvr/seqsvr/tests/kit/helpaudit"
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
		if !config.HasVariable(f.Name) {
			t.Errorf("a variable for %s would be refused as unknown", f.Name)
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

func TestTheHelpTellsUnitsAndDefaults(t *testing.T) {
	fs, _ := flags()
	for _, wrong := range helpaudit.Flags(fs) {
		t.Error(wrong)
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
		{"an AllocSvr that reaches nobody", []string{"--allocs", "0.0.0.0:7410"}, "every interface"},
		{"an AllocSvr without a port", []string{"--allocs", "a:7410,localhost"}, `"localhost"`},
		{"a URL to advertise", []string{"--allocs", "a:1", "--advertise", "http://x:1"}, `"http://x:1"`},
		{"nothing to advertise", []string{"--allocs", "a:1", "--listen", "0.0.0.0:0", "--gossip-listen", "0.0.0.0:0"}, "an address to advertise"},
		{"a port that is none", []string{"--allocs", "a:1", "--http", "127.0.0.1:99999"}, "99999"},
		{"a member to join without a host", []string{"--allocs", "a:1", "--gossip-listen", "127.0.0.1:0", "--gossip-join", ":7401"}, "no host"},
		{"a bad log level", []string{"--log-level", "loud"}, "loud"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // one that is taken would run
			defer cancel()
			err := run(ctx, test.args, io.Discard, io.Discard)
			if !errors.Is(err, daemon.ErrUsage) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want a usage error with %q", err, test.want)
			}
		})
	}
}

func TestConfigValidateRefusesWhatAStartWould(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), []string{"config", "validate", "--config", example}, &out, io.Discard); err != nil || out.String() != "ok\n" {
		t.Errorf("the example: got %q, %v", out.String(), err)
	}
	out.Reset()
	if err := run(t.Context(), []string{"config", "print", "--config", example, "--log-level", "debug"}, &out, io.Discard); err != nil ||
		!strings.Contains(out.String(), "log-level: debug # flag --log-level") || !strings.Contains(out.String(), "admin: 127.0.0.1:7409 # "+example) {
		t.Errorf("got %v\n%s", err, out.String())
	}
	for _, args := range [][]string{{"config"}, {"config", "show"}, {"config", "validate", "--listen", ""}, {"config", "validate", "--admin", "9"}} {
		if err := run(t.Context(), args, io.Discard, io.Discard); !errors.Is(err, daemon.ErrUsage) {
			t.Errorf("%q: got %v, want a usage error", args, err)
		}
	}
}
