package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

type settings struct {
	Batch  int
	Listen string
	Lease  time.Duration
	Strict bool
	Stores []string
	Weight []int
}

func flags(t *testing.T) (*pflag.FlagSet, *settings) {
	t.Helper()
	s := new(settings)
	fs := pflag.NewFlagSet("allocsvr", pflag.ContinueOnError)
	fs.SetOutput(t.Output())
	fs.IntVar(&s.Batch, "max-batch", 10, "requests in one batch")
	fs.StringVar(&s.Listen, "listen", "127.0.0.1:0", "address")
	fs.DurationVar(&s.Lease, "lease", time.Second, "length of a lease")
	fs.BoolVar(&s.Strict, "strict", false, "ask the stores before each answer")
	fs.StringSliceVar(&s.Stores, "stores", []string{"a:1"}, "addresses")
	fs.IntSliceVar(&s.Weight, "weights", nil, "weights")
	return fs, s
}

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "seq.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func environment(pairs map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, ok := pairs[name]
		return value, ok
	}
}

func defaults() settings {
	return settings{Batch: 10, Listen: "127.0.0.1:0", Lease: time.Second, Stores: []string{"a:1"}}
}

func TestTheStrongestSourceThatNamesAValueWins(t *testing.T) {
	const yaml = "max-batch: 30\nlisten: file:1\nlease: 3s\n"
	tests := []struct {
		name string
		args []string
		env  map[string]string
		want func(*settings)
	}{
		{"the file over the default", nil, nil,
			func(s *settings) { s.Batch, s.Listen, s.Lease = 30, "file:1", 3*time.Second }},
		{"the environment over the file", nil, map[string]string{"SEQ_MAX_BATCH": "20"},
			func(s *settings) { s.Batch, s.Listen, s.Lease = 20, "file:1", 3*time.Second }},
		{"the command line over all", []string{"--max-batch=7", "--lease", "9s"},
			map[string]string{"SEQ_MAX_BATCH": "20", "SEQ_LISTEN": "env:1"},
			func(s *settings) { s.Batch, s.Listen, s.Lease = 7, "env:1", 9*time.Second }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			fs, got := flags(t)
			args := append([]string{"--config", file(t, yaml)}, test.args...)
			if err := Load(fs, args, environment(test.env)); err != nil {
				t.Fatal(err)
			}
			want := defaults()
			test.want(&want)
			if diff := cmp.Diff(want, *got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestWithoutAnySourceTheDefaultsStay(t *testing.T) {
	fs, got := flags(t)
	if err := Load(fs, []string{"rest"}, nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(defaults(), *got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"rest"}, fs.Args()); diff != "" {
		t.Errorf("left over (-want +got)\n%s", diff)
	}
}

func TestTheEnvironmentCanNameTheFile(t *testing.T) {
	fs, got := flags(t)
	if err := Load(fs, nil, environment(map[string]string{"SEQ_CONFIG": file(t, "strict: true\n")})); err != nil {
		t.Fatal(err)
	}
	if !got.Strict {
		t.Error("strict = false, want true")
	}
}

func TestListsComeFromEverySource(t *testing.T) {
	tests := []struct {
		name, yaml string
		args       []string
		env        map[string]string
	}{
		{"block list", "stores:\n  - b:1\n  - c:1\nweights: [1, 2]\n", nil, nil},
		{"text with commas", "stores: b:1,c:1\nweights: 1,2\n", nil, nil},
		{"alias", "stores: &s [\"b:1\", \"c:1\"]\nweights: [1, 2]\n", nil, nil},
		{"environment", "", nil, map[string]string{"SEQ_STORES": "b:1,c:1", "SEQ_WEIGHTS": "1,2"}},
		{"flags", "stores: [z:1]\n", []string{"--stores", "b:1", "--stores", "c:1", "--weights=1,2"}, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			fs, got := flags(t)
			args := append([]string{"--config", file(t, test.yaml)}, test.args...)
			if err := Load(fs, args, environment(test.env)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"b:1", "c:1"}, got.Stores); diff != "" {
				t.Errorf("stores (-want +got)\n%s", diff)
			}
			if diff := cmp.Diff([]int{1, 2}, got.Weight); diff != "" {
				t.Errorf("weights (-want +got)\n%s", diff)
			}
		})
	}
}

func TestAFileOfCommentsOnlySetsNothing(t *testing.T) {
	for _, text := range []string{"", "# nothing\n", "---\n# nothing\n"} {
		fs, got := flags(t)
		if err := Load(fs, []string{"--config", file(t, text)}, nil); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if diff := cmp.Diff(defaults(), *got); diff != "" {
			t.Errorf("%q (-want +got)\n%s", text, diff)
		}
	}
}

func TestABadSettingIsRefusedWithItsSourceAndWhatWasExpected(t *testing.T) {
	tests := []struct {
		name string
		yaml string
		args []string
		env  map[string]string
		kind error
		want string // FILE stands for the path of the file
	}{
		{"unknown key", "listen: a\nmax-bach: 3\n", nil, nil, ErrUnknownKey,
			`FILE:2: unknown key: "max-bach": expected the name of a flag that --help lists, without its dashes`},
		{"underscore", "max_batch: 3\n", nil, nil, ErrUnknownKey, `FILE:1: unknown key: "max_batch": expected "max-batch"`},
		{"file in file", "config: x\n", nil, nil, ErrUnknownKey, `can be set on the command line only`},
		{"key twice", "lease: 1s\nlisten: a\nlease: 2s\n", nil, nil, ErrDuplicateKey,
			`FILE:3: duplicate key: "lease" stands in line 1 already: expected each key once`},
		{"number in file", "\nmax-batch: many\n", nil, nil, ErrValue,
			`FILE:2: bad value: "many": expected a whole number that fits int`},
		{"no value", "max-batch:\n", nil, nil, ErrValue, `FILE:1: bad value: no value for max-batch: expected a whole number`},
		{"nested", "lease: {length: 3s}\n", nil, nil, ErrValue, `FILE:1: bad value: nested value for lease: expected a duration`},
		{"list for scalar", "lease: [3s]\n", nil, nil, ErrValue, `nested value for lease`},
		{"nested list", "stores: [[a]]\n", nil, nil, ErrValue, `nested or empty item in stores: expected a list of strings`},
		{"bad item", "weights: [1, x]\n", nil, nil, ErrValue, `FILE:1: bad value: "1, x": expected a list of whole numbers`},
		{"no mapping", "- a\n", nil, nil, ErrFile, `line 1 is no mapping`},
		{"two documents", "lease: 1s\n---\nlease: 2s\n", nil, nil, ErrFile, `a second document begins`},
		{"no YAML", "lease: [\n", nil, nil, ErrFile, `FILE: bad config file: yaml: `},
		{"missing unit", "", nil, map[string]string{"SEQ_LEASE": "3"}, ErrValue,
			`environment SEQ_LEASE: bad value: "3": expected a duration with its unit, such as 100ms, 3s or 1h`},
		{"empty variable", "", nil, map[string]string{"SEQ_STRICT": ""}, ErrValue,
			`environment SEQ_STRICT: bad value: "": expected true or false`},
		{"bad flag value", "", []string{"--max-batch=x"}, nil, ErrValue,
			`flag --max-batch: bad value: "x": expected a whole number that fits int`},
		{"flag without value", "", []string{"--lease"}, nil, ErrFlag, `flag --lease: bad command line: no value: expected a duration`},
		{"unknown flag", "", []string{"--leese=1s"}, nil, ErrFlag, `command line: bad command line: unknown flag: --leese`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			fs, _ := flags(t)
			path := file(t, test.yaml)
			err := Load(fs, append([]string{"--config", path}, test.args...), environment(test.env))
			if !errors.Is(err, test.kind) {
				t.Fatalf("got %v, want kind %v", err, test.kind)
			}
			if want := strings.ReplaceAll(test.want, "FILE", path); !strings.Contains(err.Error(), want) {
				t.Errorf("got  %v\nwant %v", err, want)
			}
		})
	}
}

func TestEveryBadLineOfAFileIsReported(t *testing.T) {
	fs, _ := flags(t)
	err := Load(fs, []string{"--config", file(t, "lease: 3\nmax-batch: x\nnew: 1\n")}, nil)
	if !errors.Is(err, ErrValue) || !errors.Is(err, ErrUnknownKey) {
		t.Errorf("got %v, want a bad value and an unknown key", err)
	}
	if got, want := strings.Count(err.Error(), "\n")+1, 3; got != want {
		t.Errorf("got %d lines in %q, want %d", got, err, want)
	}
}

func TestAFileThatIsMissingOrTooLargeIsRefused(t *testing.T) {
	for name, path := range map[string]string{
		"missing":   filepath.Join(t.TempDir(), "none.yaml"),
		"directory": t.TempDir(),
		"too large": file(t, strings.Repeat("# padding\n", maxFile/10+1)),
	} {
		fs, _ := flags(t)
		err := Load(fs, []string{"--config", path}, nil)
		if !errors.Is(err, ErrFile) || !strings.Contains(err.Error(), "flag --config") {
			t.Errorf("%s: got %v, want a bad config file named by flag --config", name, err)
		}
	}
}

func TestHelpIsHandedThrough(t *testing.T) {
	fs, _ := flags(t)
	if err := Load(fs, []string{"--help"}, nil); !errors.Is(err, pflag.ErrHelp) {
		t.Errorf("got %v, want %v", err, pflag.ErrHelp)
	}
}
