package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/seqsvr/seqsvr/internal/base/config"
	"github.com/seqsvr/seqsvr/internal/process/daemon"
	"github.com/seqsvr/seqsvr/internal/wire/auth"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/helpaudit"
)

const example = "../../deploy/config/allocsvr.yaml"

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
	if len(o.Namespaces) != 2 || o.Namespaces[0] != "name=orders alias=7 layout=leaf" {
		t.Errorf("namespaces: got %q", o.Namespaces)
	}
	if o.Name != "alloc-1" || len(o.Stores) != 3 || o.Lease != time.Second || !o.supervise {
		t.Errorf("got %+v", o.Config)
	}
}

func TestAFlagComesBeforeTheEnvironmentAndThatBeforeTheFile(t *testing.T) {
	env := map[string]string{"SEQ_WEIGHT": "50", "SEQ_LEASE": "2s", "SEQ_CONFIG": example}
	o, err := load([]string{"--lease", "3s"}, func(name string) (string, bool) { v, ok := env[name]; return v, ok }, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if o.Lease != 3*time.Second || o.Weight != 50 || o.ExpectAllocs != 3 {
		t.Errorf("lease %v, weight %d, expect-allocs %d; want 3s, 50 and 3", o.Lease, o.Weight, o.ExpectAllocs)
	}
}

func TestNamespacesInTheEnvironmentStandOneALine(t *testing.T) {
	env := map[string]string{"SEQ_NAMESPACES": "name=a layout=leaf\n\n  name=b layout=twitter alias=9\n"}
	o, err := load([]string{"--name", "x", "--stores", "s:1"}, func(name string) (string, bool) { v, ok := env[name]; return v, ok }, io.Discard)
	if err != nil || len(o.Namespaces) != 2 || o.Namespaces[1] != "name=b layout=twitter alias=9" {
		t.Errorf("got %q, %v", o.Namespaces, err)
	}
}

func TestTheMemoryOfUIDsIsAShare(t *testing.T) {
	args := []string{"--name", "x", "--stores", "s:1", "--memory", "100000000"}
	for _, row := range []struct {
		more []string
		want uint64
	}{{nil, 30_000_000}, {[]string{"--uid-memory", "2000000"}, 2_000_000}, {[]string{"--uid-memory", "0"}, 0}} {
		o, err := load(append(args, row.more...), nil, io.Discard)
		if err != nil || o.UIDMemory != row.want {
			t.Errorf("%v: got %d, %v, want %d", row.more, o.UIDMemory, err, row.want)
		}
	}
}

func TestASessionIsTakenFromTheParent(t *testing.T) {
	secret := seq.NewSecret("")
	text, _ := secret.MarshalText()
	env := func(name string) (string, bool) { return string(text), name == secretEnv }
	args := []string{"--name", "a", "--stores", "s:1"}
	o, err := load(args, env, io.Discard)
	if err != nil || o.Secret != secret {
		t.Errorf("got %v, %v, want %v", o.Secret, err, secret)
	}
	if o, err = load(append(args, "--supervise"), env, io.Discard); err != nil || !o.Secret.IsZero() {
		t.Errorf("a parent below another: got %v, %v, want none", o.Secret, err)
	}
	text = text[1:]
	if _, err = load(args, env, io.Discard); !errors.Is(err, daemon.ErrUsage) || strings.Contains(err.Error(), string(text)) {
		t.Errorf("half a secret: got %v, want ErrUsage without it", err)
	}
}

// TestAFrontForRedisIsNotBehindAGuard: it asks others as this node, whom they give nothing.
func TestAFrontForRedisIsNotBehindAGuard(t *testing.T) {
	o := &options{}
	o.resp.RESPListen = "127.0.0.1:0"
	if err := o.checkRESP(); err != nil {
		t.Errorf("without a guard: %v", err)
	}
	o.Config.Guard = new(auth.Guard)
	if err := o.checkRESP(); !errors.Is(err, daemon.ErrUsage) || !strings.Contains(err.Error(), "--auth") {
		t.Errorf("got %v, want a usage error that names --auth", err)
	}
	o.resp.RESPListen = ""
	if err := o.checkRESP(); err != nil {
		t.Errorf("without a front: %v", err)
	}
}

func TestTheHelpTellsUnitsAndDefaults(t *testing.T) {
	fs, _ := flags()
	for _, wrong := range helpaudit.Flags(fs) {
		t.Error(wrong)
	}
}

func TestAWrongCallIsAUsageErrorThatNamesWhatIsWrong(t *testing.T) {
	good := []string{"--name", "a", "--stores", "127.0.0.1:1,127.0.0.1:2,127.0.0.1:3"}
	with := func(more ...string) []string { return append(append([]string{}, good...), more...) }
	tests := []struct {
		name string
		args []string
		want string
	}{
		{"no name", []string{"--stores", "s:1"}, "name"},
		{"no stores", []string{"--name", "a"}, "stores"},
		{"a lease too short", with("--lease", "10ms"), "10ms"},
		{"a lease too long", with("--lease", "1m"), "1m0s"},
		{"no weight", with("--weight", "0"), "weight"},
		{"hardly any memory for uids", with("--uid-memory", "1000"), "1000 bytes"},
		{"uids above all memory", with("--memory", "67108864", "--uid-memory", "67108865"), "67108864 bytes that the process may take (--memory)"},
		{"less memory than a start needs", with("--memory", "67108863"), "at least 67108864"},
		{"an unknown flag", with("--colour"), "colour"},
		{"an argument", with("serve"), "flags only"},
		{"a dash", with("--"), "flags only"},
		{"a bad log format", with("--log-format", "xml"), "xml"},
		{"a namespace without a layout", with("--namespaces", "name=orders"), "layout= are needed"},
		{"a namespace of a layout that is none", with("--namespaces", "name=orders layout=time:64"), "time:64"},
		{"a namespace with a word too many", with("--namespaces", "name=orders layout=leaf colour=red"), "colour"},
		{"a namespace twice", with("--namespaces", "name=orders layout=leaf", "--namespaces", "name=orders layout=twitter"), "twice"},
		{"a region without a port", with("--regions", "router.sg.example"), "router.sg.example"},
		{"files of no region", with("--regions-ca", "ca.pem"), "expected regions"},
		{"a token over plaintext", with("--regions", "h:1", "--regions-token-file", "t"), "expected regions-ca"},
		{"a missing file", with("--config", "missing.yaml"), "missing.yaml"},
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

func TestConfigValidateRefusesWhatAStartWould(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), []string{"config", "validate", "--config", example}, &out, io.Discard); err != nil || out.String() != "ok\n" {
		t.Errorf("the example: got %q, %v", out.String(), err)
	}
	out.Reset()
	if err := run(t.Context(), []string{"config", "print", "--config", example, "--log-level", "debug"}, &out, io.Discard); err != nil ||
		!strings.Contains(out.String(), "log-level: debug # flag --log-level") || !strings.Contains(out.String(), "admin: 127.0.0.1:7419 # "+example) {
		t.Errorf("got %v\n%s", err, out.String())
	}
	for _, args := range [][]string{{"config"}, {"config", "show"}, {"config", "validate", "--listen", ""}, {"config", "validate", "--admin", "9"}} {
		if err := run(t.Context(), args, io.Discard, io.Discard); !errors.Is(err, daemon.ErrUsage) {
			t.Errorf("%q: got %v, want a usage error", args, err)
		}
	}
}

func TestAnAddressThatCannotWorkIsRefusedBeforeTheStart(t *testing.T) {
	base := []string{"config", "validate", "--name", "a", "--listen", "127.0.0.1:0", "--stores", "s:1"}
	for _, addr := range []string{"0.0.0.0:7410", "[::]:7410", "localhost", "http://x:1", "127.0.0.1:99999", ":7410", "127.0.0.1:0"} {
		for _, flag := range []string{"--advertise", "--stores", "--regions", "--gossip-join"} {
			err := run(t.Context(), append(slices.Clone(base), flag, addr), io.Discard, io.Discard)
			if !errors.Is(err, daemon.ErrUsage) || !strings.Contains(err.Error(), strings.TrimPrefix(flag, "--")) || !strings.Contains(err.Error(), addr) {
				t.Errorf("%s %s: got %v", flag, addr, err)
			}
		}
	}
	for _, name := range []string{"a/b", "\xff"} {
		if err := run(t.Context(), append(slices.Clone(base), "--name", name, "--gossip-listen", "127.0.0.1:0"), io.Discard, io.Discard); !errors.Is(err, daemon.ErrUsage) {
			t.Errorf("a name that the membership refuses, %q: got %v", name, err)
		}
	}
	err := run(t.Context(), []string{"config", "validate", "--name", "a", "--listen", "127.0.0.1:0", "--etcd", "http://x:2379"}, io.Discard, io.Discard)
	if !errors.Is(err, daemon.ErrUsage) || !strings.Contains(err.Error(), `--etcd "http://x:2379"`) {
		t.Errorf("a URL of etcd: got %v", err)
	}
	for flag, addr := range map[string]string{"--listen": "0.0.0.0:7410", "--gossip-listen": "a", "--admin": "127.0.0.1:99999"} {
		if err := run(t.Context(), append(slices.Clone(base), flag, addr), io.Discard, io.Discard); !errors.Is(err, daemon.ErrUsage) || !strings.Contains(err.Error(), addr) {
			t.Errorf("%s %s: got %v", flag, addr, err)
		}
	}
	for _, more := range [][]string{{}, {"--listen", "0.0.0.0:7410", "--advertise", "alloc-1.example.net:7410"}, {"--gossip-listen", "0.0.0.0:0", "--admin", ":0"}} {
		if err := run(t.Context(), append(slices.Clone(base), more...), io.Discard, io.Discard); err != nil {
			t.Errorf("%v: %v", more, err)
		}
	}
}

func TestAMisspeltVariableIsRefusedByName(t *testing.T) {
	t.Setenv("SEQ_AUHT", "require")
	for _, verb := range [][]string{{"config", "validate"}, nil} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // it would run otherwise
		defer cancel()
		err := run(ctx, append(verb, "--name", "a", "--stores", "s:1", "--listen", "127.0.0.1:0", "--admin", ""), io.Discard, io.Discard)
		if !errors.Is(err, daemon.ErrUsage) || !errors.Is(err, config.ErrUnknownVariable) || !strings.Contains(err.Error(), "SEQ_AUTH,") {
			t.Errorf("%v: got %v", verb, err)
		}
	}
}
