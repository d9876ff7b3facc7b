package main

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/seqsvr/seqsvr/internal/base/config"
	"github.com/seqsvr/seqsvr/internal/process/daemon"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr"
	"github.com/seqsvr/seqsvr/storesvr/disk"
	"github.com/seqsvr/seqsvr/tests/kit/helpaudit"
)

const example = "../../deploy/config/storesvr.yaml"

func TestTheHelpTellsUnitsAndDefaults(t *testing.T) {
	serve, _ := serveFlags()
	first, _ := initFlags()
	for _, fs := range []*pflag.FlagSet{serve, first} {
		for _, wrong := range helpaudit.Flags(fs) {
			t.Errorf("%s %s", fs.Name(), wrong)
		}
		fs.VisitAll(func(f *pflag.Flag) {
			if !config.HasVariable(f.Name) {
				t.Errorf("a variable for %s would be refused as unknown", f.Name)
			}
		})
	}
}

func TestTheExampleFileSetsEveryFlagOfServe(t *testing.T) {
	fs, o := serveFlags()
	if err := config.Load(fs, []string{"--config", example}, nil); err != nil {
		t.Fatal(err)
	}
	fs.VisitAll(func(f *pflag.Flag) {
		if !f.Changed {
			t.Errorf("%s is not in %s", f.Name, example)
		}
	})
	if err := o.Validate(); err != nil {
		t.Error(err)
	}
	if o.MaxLease != 10*time.Second || len(o.GossipJoin) != 3 {
		t.Errorf("got max lease %v and %d members to join", o.MaxLease, len(o.GossipJoin))
	}
}

func TestInitMakesWhatTheFlagsSayOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	args := []string{"init", "--data-dir", dir, "--cluster", "c", "--name", "s2", "--members", "s1,s2,s3",
		"--sections", "8", "--step", "100", "--space", "pts:sections=4,mode=strict",
		"--space", "orders:sections=4,mode=exact,window=1h"}
	if err := run(t.Context(), args, io.Discard, io.Discard); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), args, io.Discard, io.Discard); !errors.Is(err, disk.ErrExists) {
		t.Errorf("a second time: got %v, want ErrExists", err)
	}
	if err := run(t.Context(), append(args, "--if-missing"), io.Discard, io.Discard); err != nil {
		t.Errorf("a second time with --if-missing: %v", err)
	}
	cfg := storesvr.DefaultConfig()
	cfg.DataDir, cfg.Listen, cfg.ClusterID = dir, "127.0.0.1:0", "c"
	store, err := storesvr.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Error(err)
	}
	meta, _, err := disk.Inspect(dir)
	if err != nil {
		t.Fatal(err)
	}
	orders, err := meta.Mapping.Space("orders")
	if err != nil || orders.Mode != seq.Exact || orders.Window != time.Hour || orders.First != 12 {
		t.Errorf("the exact space is %+v, %v", orders, err)
	}
}

func TestAWrongCallIsAUsageErrorThatNamesWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	good := []string{"init", "--data-dir", filepath.Join(dir, "new"), "--cluster", "c", "--name", "s1", "--members", "s1,s2,s3"}
	with := func(more ...string) []string { return append(append([]string{}, good...), more...) }
	tests := []struct {
		name string
		args []string
		want string
	}{
		{"no verb", nil, "init, serve, config or version"},
		{"unknown verb", []string{"destroy"}, "init, serve, config or version"},
		{"unknown flag", with("--colour"), "colour"},
		{"an argument too many", with("now"), "now"},
		{"a name that is no member", with("--name", "s9"), "s9"},
		{"W of a minority", with("--w", "1", "--r", "3"), "W is 1"},
		{"R+W too small", with("--w", "2", "--r", "1"), "R+W"},
		{"no members", []string{"init", "--data-dir", dir, "--cluster", "c", "--name", "s1"}, "N is 0"},
		{"a space twice", with("--space", "user"), "user"},
		{"a learner that joins nobody", []string{"init", "--learner", "--data-dir", dir, "--name", "s1"}, "go together"},
		{"joining without being a learner", with("--join", "127.0.0.1:1"), "from the cluster"},
		{"a learner with sections of its own", []string{"init", "--learner", "--join", "127.0.0.1:1", "--data-dir", dir, "--name", "s1", "--sections", "8"}, "--sections"},
		{"a cluster that no certificate can name", with("--cluster", "prod/eu"), `cluster "prod/eu"`},
		{"a store that no certificate can name", []string{"init", "--data-dir", dir, "--cluster", "c", "--name", "s 1", "--members", "s 1,s2,s3"}, `name "s 1"`},
		{"a member that is no text", with("--members", "s2,\xff"), "expected 1 to 128 letters"},
		{"joining an address of every interface", []string{"init", "--learner", "--join", "0.0.0.0:7500", "--data-dir", dir, "--name", "s4"}, "every interface"},
		{"sections with a leading zero", with("--sections", "010"), "without leading zeros"},
		{"a bad mode", with("--mode", "loose"), "loose"},
		{"a window of an ordinary space", with("--window", "10m"), "mode=exact only"},
		{"a window of a further ordinary space", with("--space", "pts:window=10m"), "mode=exact only"},
		{"a window too long", with("--space", "pts:mode=exact,window=25h"), "24h"},
		{"a window too short", with("--space", "pts:mode=exact,window=999ms"), "1s"},
		{"a window that does not travel", with("--space", "pts:mode=exact,window=1000500us"), "whole milliseconds"},
		{"a window of nothing", with("--space", "pts:mode=exact,window=0"), "no duration above 0"},
		{"no data directory", []string{"serve"}, "data directory"},
		{"a lease of nothing", []string{"serve", "--data-dir", dir, "--max-lease", "0s"}, "max lease"},
		{"a bad log level", []string{"serve", "--data-dir", dir, "--log-level", "loud"}, "loud"},
		{"a zone with W stores", with("--members", "s4,s5", "--zones", "a,a,a,b,c"), "3 of 5 stores in zone a"},
		{"fewer zones than members", with("--zones", "a,b"), "2 zones for 3 members"},
		{"an empty zone", with("--zones", "a,,c"), "empty zone"},
		{"a zone that is no name", with("--zones", "a,b,c d"), "c d"},
		{"a zone of no learner", with("--zone", "a"), "--zones"},
		{"a store in a zone that is no name", []string{"serve", "--data-dir", dir, "--zone", "-"}, "zone"},
		{"a bad address", []string{"serve", "--data-dir", dir, "--listen", "here"}, "here"},
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

func TestInitTakesZonesThatAreSpreadAndOthersIfToldTo(t *testing.T) {
	for _, more := range [][]string{{"--zones", "a,b,c,a,b"}, {"--zones", "a,a,a,b,b"}, {"--zones", "a,a,a,b,c", "--any-zones"}, nil} {
		dir := filepath.Join(t.TempDir(), "s")
		args := append([]string{"init", "--data-dir", dir, "--cluster", "c", "--name", "s2", "--members", "s1,s2,s3,s4,s5"}, more...)
		if err := run(t.Context(), args, io.Discard, io.Discard); err != nil {
			t.Errorf("%q: %v", more, err)
			continue
		}
		want := ""
		if len(more) > 0 {
			want = strings.Split(more[1], ",")[1]
		}
		if meta, _, err := disk.Inspect(dir); err != nil || meta.Zone != want {
			t.Errorf("%q: zone %q, %v, want %q", more, meta.Zone, err, want)
		}
	}
}

func TestADirectoryWithoutADatabaseFailsTheStartAndStaysEmpty(t *testing.T) {
	dir := t.TempDir()
	err := run(t.Context(), []string{"serve", "--data-dir", dir, "--listen", "127.0.0.1:0"}, io.Discard, io.Discard)
	if err == nil || errors.Is(err, daemon.ErrUsage) {
		t.Errorf("got %v, want a failure", err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
		t.Errorf("the start made %q", left)
	}
}

func TestConfigValidateRefusesWhatAStartWould(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), []string{"config", "validate", "--config", example}, &out, io.Discard); err != nil || out.String() != "ok\n" {
		t.Errorf("the example: got %q, %v", out.String(), err)
	}
	out.Reset()
	if err := run(t.Context(), []string{"config", "print", "--config", example, "--log-level", "debug"}, &out, io.Discard); err != nil ||
		!strings.Contains(out.String(), "log-level: debug # flag --log-level") || !strings.Contains(out.String(), "admin: 127.0.0.1:7509 # "+example) {
		t.Errorf("got %v\n%s", err, out.String())
	}
	for _, args := range [][]string{{"config"}, {"config", "show"}, {"config", "validate", "--listen", ""}, {"config", "validate", "--admin", "9"}} {
		if err := run(t.Context(), args, io.Discard, io.Discard); !errors.Is(err, daemon.ErrUsage) {
			t.Errorf("%q: got %v, want a usage error", args, err)
		}
	}
}

func TestAnAddressThatCannotWorkIsRefusedBeforeTheStart(t *testing.T) {
	base := []string{"config", "validate", "--data-dir", t.TempDir(), "--listen", "127.0.0.1:0"}
	for _, more := range [][]string{
		{"--advertise", "0.0.0.0:7500"}, {"--advertise", "localhost"}, {"--advertise", "http://x:1"}, {"--advertise", ":7500"}, {"--advertise", "a:0"}, {"--listen", "127.0.0.1:99999"},
		{"--listen", "0.0.0.0:7500", "--gossip-listen", "127.0.0.1:0"}, {"--gossip-listen", "127.0.0.1:0", "--gossip-join", "[::]:7501"},
	} {
		if err := run(t.Context(), append(slices.Clone(base), more...), io.Discard, io.Discard); !errors.Is(err, daemon.ErrUsage) || !strings.Contains(err.Error(), more[1]) && !strings.Contains(err.Error(), more[3]) {
			t.Errorf("%v: got %v", more, err)
		}
	}
	for _, more := range [][]string{{}, {"--listen", "0.0.0.0:7500"}, {"--listen", "0.0.0.0:7500", "--advertise", "a:1", "--gossip-listen", "0.0.0.0:0"}} {
		if err := run(t.Context(), append(slices.Clone(base), more...), io.Discard, io.Discard); err != nil {
			t.Errorf("%v: %v", more, err)
		}
	}
}

func TestADatabaseKeepsTheNamesThatItHas(t *testing.T) {
	dir := t.TempDir()
	cfg := storesvr.InitConfig{DataDir: dir, ClusterID: "prod/eu", Name: "s 1", MemberNames: []string{"s 1"}, Spaces: []seq.Space{{Name: seq.DefaultSpace, Sections: 8}}}
	if err := storesvr.Init(cfg); err != nil {
		t.Fatal(err)
	}
	args := []string{"init", "--data-dir", dir, "--cluster", "prod/eu", "--name", "s 1", "--members", "s 1", "--sections", "8"}
	if err := run(t.Context(), append(args, "--if-missing"), io.Discard, io.Discard); err != nil {
		t.Errorf("a start script that runs each time: %v", err)
	}
	if err := run(t.Context(), args, io.Discard, io.Discard); !errors.Is(err, daemon.ErrUsage) {
		t.Errorf("got %v, want a usage error", err)
	}
}
