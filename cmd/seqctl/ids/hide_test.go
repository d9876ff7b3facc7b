package ids

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/internal/process/daemon"
	"github.com/seqsvr/seqsvr/internal/wire/auth"
	"github.com/seqsvr/seqsvr/seq"
)

func TestIDsAreHiddenAndRevealedByAKeyFile(t *testing.T) {
	t.Setenv("SEQ_ADDR", nowhere)
	file := filepath.Join(t.TempDir(), "ids.key")
	if err := os.WriteFile(file, auth.NewKey(), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, of := range []struct{ layout, id, form string }{
		{"twitter", "1541815603606036480", "base58"}, {"sonyflake", "362637573840961538", "decimal"}, {"instagram", "18446744073709551615", "hex"},
	} {
		flags := " --layout " + of.layout + " --text " + of.form + " --key-file " + file + " -o json"
		out, err := call(t, fields("id hide "+of.id+flags)...)
		if err != nil {
			t.Fatal(err)
		}
		row := parsed(t, out).([]any)[0].(map[string]any)
		hidden := row["hidden"].(string)
		if row["id_str"] != of.id || hidden == of.id {
			t.Errorf("printed %s", out)
		}
		out, err = call(t, fields("id reveal "+hidden+flags)...)
		if err != nil || parsed(t, out).(map[string]any)["id_str"] != of.id {
			t.Errorf("%s of %s: got %q, %v, want %s", hidden, of.layout, out, err, of.id)
		}
	}
	open := filepath.Join(t.TempDir(), "open.key")
	if err := os.WriteFile(open, auth.NewKey(), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o644); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]error{
		"id hide 1":                        daemon.ErrUsage,
		"id hide 1 --key-file " + open:     auth.ErrOpenFile,
		"id hide 1 --key-file nowhere.key": os.ErrNotExist,
		"id hide 1 --layout time:20,worker:4,sequence:7;epoch=0 --key-file " + file:          seq.ErrBadArgument,
		"id hide 9223372036854775808 --key-file " + file:                                     seq.ErrBadID,
		"id hide 2147483649 --layout time:20,worker:4,sequence:8;epoch=0 --key-file " + file: nil,
		"id hide 4294967296 --layout time:20,worker:4,sequence:8;epoch=0 --key-file " + file: seq.ErrBadID,
	} {
		out, err := call(t, fields(line)...)
		if want != nil && !errors.Is(err, want) || strings.Contains(line, "2147483649") && err != nil {
			t.Errorf("%s: got %q, %v, want %v", line, out, err, want)
		}
	}
}
