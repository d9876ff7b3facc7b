package storectl

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/cmd/seqctl/ctl"
	"github.com/seqsvr/seqsvr/internal/process/daemon"
	"github.com/seqsvr/seqsvr/internal/wire/auth"
	"github.com/seqsvr/seqsvr/storesvr"
	"github.com/seqsvr/seqsvr/storesvr/backup"
	"github.com/seqsvr/seqsvr/storesvr/disk"
)

// call runs a command line and gives what it printed.
func call(t *testing.T, args ...string) (stdout string, err error) {
	t.Helper()
	var out, log bytes.Buffer
	root := ctl.Root()
	root.AddCommand(Command())
	err = ctl.Execute(t.Context(), root, append([]string{"store"}, args...), &out, &log)
	return out.String(), err
}

func TestAWrongCallIsAUsageErrorThatNamesWhatIsWrong(t *testing.T) {
	for line, want := range map[string]string{
		"destroy":                       `"destroy"`,
		"status now":                    "seqctl store status",
		"status -o xml":                 `"xml"`,
		"replace":                       "--dead NAME",
		"replace --dead a":              "--new ADDR",
		"add":                           "ADDR",
		"remove a b":                    "NAME",
		"abort now":                     "abort",
		"backup":                        "--out FILE",
		"inspect":                       "FILE|DIR",
		"check":                         "FILE|DIR",
		"restore --from x":              "--era N",
		"restore --from x --era 0":      "--era N",
		"restore --era 1":               "--from FILE",
		"restore --from x --era -1":     "--era",
		"restore --from x --bump many":  "--bump",
		"status --stores a:1 --colour":  "--colour",
		"replace --timeout 0s --dead a": "--timeout",
	} {
		out, err := call(t, strings.Fields(line)...)
		if line == "status now" {
			want = "arguments"
		}
		if !errors.Is(err, daemon.ErrUsage) || !strings.Contains(err.Error(), want) || out != "" {
			t.Errorf("%s: got %v and output %q, want a usage error with %q", line, err, out, want)
		}
	}
}

func TestVerbsThatNeedStoresFailWithTheirAddressWhereNobodyAnswers(t *testing.T) {
	free := filepath.Join(t.TempDir(), "backup")
	for _, line := range []string{"status", "replace --dead a --new 127.0.0.1:2", "add 127.0.0.1:2", "remove a", "abort", "backup --out " + free} {
		args := append(strings.Fields(line), "--stores", "127.0.0.1:1", "--timeout", "300ms")
		if _, err := call(t, args...); err == nil || errors.Is(err, daemon.ErrUsage) || !strings.Contains(err.Error(), "127.0.0.1:1") {
			t.Errorf("%s: got %v, want an error with the address", line, err)
		}
	}
	if _, err := os.Stat(free); err == nil {
		t.Error("a backup of nobody was made")
	}
}

func TestADatabaseAndABackupOfItAreInspectedAndCheckedOffline(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	if err := storesvr.Init(storesvr.InitConfig{DataDir: dir, ClusterID: "c1", Name: "a", MemberNames: []string{"a", "b", "c"}}); err != nil {
		t.Fatal(err)
	}
	m, states, _, err := open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "backup")
	if err := backup.Save(file, m, states); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, file} {
		if out, err := call(t, "inspect", path); err != nil || !strings.Contains(out, "cluster c1, era 0") {
			t.Errorf("inspect %s: %q, %v", path, out, err)
		}
		if out, err := call(t, "check", path, "-o", "json"); err != nil || !strings.Contains(out, `"wrong": []`) {
			t.Errorf("check %s: %q, %v", path, out, err)
		}
	}
	database := filepath.Join(dir, disk.FileName)
	if err := os.Truncate(database, 5000); err != nil {
		t.Fatal(err)
	}
	if _, err := call(t, "check", dir); !errors.Is(err, disk.ErrCorrupt) {
		t.Errorf("a database cut short: got %v, want ErrCorrupt", err)
	}
}

func TestABackupThatWasNotMadeWithTheKeyIsToldAndNeverRestored(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := storesvr.Init(storesvr.InitConfig{DataDir: "store", ClusterID: "c1", Name: "a", MemberNames: []string{"a"}}); err != nil {
		t.Fatal(err)
	}
	m, states, _, err := open("store", nil)
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]backup.Key{}
	for _, name := range []string{"mine", "others"} {
		if err := auth.WriteSecret(name, auth.NewKey()); err != nil {
			t.Fatal(err)
		}
		if keys[name], err = auth.ReadKey(name); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(keys["mine"].Save("signed", m, states), keys["unsigned"].Save("unsigned", m, states)); err != nil {
		t.Fatal(err)
	}
	for i, one := range []struct {
		file, key, says string
		refused         bool
	}{
		{"signed", "mine", "signature: signed and held", false},
		{"signed", "", "signature: signed, no key given", false},
		{"signed", "others", "signature: does not hold: signed with another key", true},
		{"unsigned", "", "signature: not signed", false},
		{"unsigned", "mine", "signature: not signed", true},
	} {
		dir := fmt.Sprintf("new-%d", i)
		for verb, line := range map[string]string{
			"inspect": "inspect " + one.file, "check": "check " + one.file,
			"restore": "restore --from " + one.file + " --era 1 --cluster c1 --name a --members a --data-dir " + dir,
		} {
			args := strings.Fields(line)
			if one.key != "" {
				args = append(args, "--sign-key", one.key)
			}
			out, err := call(t, args...)
			if refused := one.refused && verb != "inspect"; refused != errors.Is(err, backup.ErrSignature) || !refused && err != nil {
				t.Errorf("%q: got %v, refused: want %v", args, err, refused)
			}
			if !strings.Contains(out, one.says) && (verb != "restore" || !one.refused) {
				t.Errorf("%q says %q, want %q", args, out, one.says)
			}
		}
		if _, err := os.Stat(dir); one.refused != (err != nil) {
			t.Errorf("%s with key %q: what was made: %v", one.file, one.key, err)
		}
	}
	if _, err := call(t, "check", "signed", "--sign-key", "mine", "-o", "json"); err != nil {
		t.Error(err)
	}
	// A key that others read, or that is none, is not used.
	if err := errors.Join(os.Chmod("others", 0o644), os.WriteFile("none", []byte("seqkey_dG9vIHNob3J0"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]error{"others": auth.ErrOpenFile, "none": auth.ErrBadKey, "missing": os.ErrNotExist} {
		for _, line := range []string{"inspect signed", "check signed", "restore --from signed --era 1", "backup --stores 127.0.0.1:1 --timeout 300ms --out new"} {
			if _, err := call(t, append(strings.Fields(line), "--sign-key", name)...); !errors.Is(err, want) {
				t.Errorf("%s --sign-key %s: got %v, want %v", line, name, err, want)
			}
		}
	}
}

func TestTheWorstProblemComesFirstAndSaysWhatToDo(t *testing.T) {
	r := result{N: 3, W: 2, Version: 4, Stores: []row{
		{Name: "a", Role: "voter", State: "voting", voting: true, Members: 4},
		{Name: "b", Role: "voter", State: "unreachable"},
		{Name: "c", Role: "voter", State: "distrusted"},
		{Name: "d", Role: "learner", State: "learner: being filled"},
		{Name: "e", Role: "none", State: "removed"},
	}}
	r.judge()
	want := []string{"no quorum", "seqctl store replace --dead b", "seqctl store replace --dead c", "seqctl store abort", "e is no member"}
	if r.Healthy || len(r.Problems) != len(want) {
		t.Fatalf("healthy %v, problems %q", r.Healthy, r.Problems)
	}
	for i, text := range want {
		if !strings.Contains(r.Problems[i], text) {
			t.Errorf("problem %d is %q, want %q", i, r.Problems[i], text)
		}
	}
}
