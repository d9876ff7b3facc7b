package config

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// numeric makes flags of whole numbers of several types.
func numeric() *pflag.FlagSet {
	fs := pflag.NewFlagSet("numbers", pflag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.Uint64("datacenter-id", 0, "")
	fs.Int("max-batch", 0, "")
	fs.Int64("worker-id", 0, "")
	fs.Uint32("weight", 0, "")
	fs.IntSlice("weights", nil, "")
	fs.Duration("lease", 0, "")
	fs.String("name", "", "")
	fs.Bool("on", false, "")
	return fs
}

func TestANumberWithALeadingZeroIsRefusedWhereverItStands(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yaml")
	for flag, value := range map[string]string{"datacenter-id": "010", "max-batch": "00", "worker-id": "-01", "weight": "+007", "weights": "1,010"} {
		if err := os.WriteFile(file, []byte(flag+": "+value+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		env := func(name string) (string, bool) { return value, name == EnvName(flag) }
		for source, err := range map[string]error{
			"flag":        Load(numeric(), []string{"--" + flag + "=" + value}, nil),
			"environment": Load(numeric(), nil, env),
			"file":        Load(numeric(), []string{"--config", file}, nil),
		} {
			if !errors.Is(err, ErrValue) || !strings.Contains(err.Error(), "without leading zeros") || !strings.Contains(err.Error(), `"`+value+`"`) {
				t.Errorf("%s %s=%s: got %v", source, flag, value, err)
			}
		}
	}
	if err := os.WriteFile(file, []byte("weights: [1, 010]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Load(numeric(), []string{"--config", file}, nil); !errors.Is(err, ErrValue) || !strings.Contains(err.Error(), "without leading zeros") {
		t.Errorf("a list in the file: got %v", err)
	}
	fs := numeric()
	if err := Load(fs, []string{"--datacenter-id=0", "--max-batch=0x10", "--worker-id=-1", "--weights=10,20", "--lease=01s", "--name=007", "--on"}, nil); err != nil {
		t.Fatal(err)
	}
	if got, err := fs.GetInt("max-batch"); err != nil || got != 16 {
		t.Errorf("got %d, %v", got, err)
	}
	if got, err := fs.GetIntSlice("weights"); err != nil || len(got) != 2 {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestAVariableThatSetsNothingIsRefusedByName(t *testing.T) {
	err := CheckEnvironment([]string{"SEQ_AUHT=require", "SEQ_NAME=a", "HOME=/", "SEQ_ZZZZZZZZZZZZZZZZ=1"})
	if !errors.Is(err, ErrUnknownVariable) {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{"SEQ_AUHT", "expected SEQ_AUTH,", "SEQ_ZZZZZZZZZZZZZZZZ", "SEQ_X_"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
	known := []string{"SEQ_AUTH=require", "SEQ_STORES=", "SEQ_X_ANY=1", "SEQ_TEST_LOG=1", "SEQ_SUPERVISED_SECRET=x", "SEQSVR_PREVIOUS=x", "SEQ_CONFIG=f", "SEQ_ADDR=a:1",
		// of Services named seq and seq-router
		"SEQ_SERVICE_HOST=10.0.0.1", "SEQ_SERVICE_PORT=7400", "SEQ_PORT=tcp://10.0.0.1:7400", "SEQ_PORT_7400_TCP=tcp://10.0.0.1:7400", "SEQ_PORT_7400_TCP_ADDR=10.0.0.1",
		"SEQ_ROUTER_SERVICE_HOST=10.0.0.1", "SEQ_ROUTER_SERVICE_PORT_HTTP=7480", "SEQ_ROUTER_PORT_7480_TCP_PROTO=tcp"}
	if err := CheckEnvironment(known); err != nil {
		t.Errorf("got %v", err)
	}
}
