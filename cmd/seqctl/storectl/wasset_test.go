package storectl

import (
	"errors"
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/internal/process/daemon"
	"github.com/seqsvr/seqsvr/storesvr"
	"github.com/seqsvr/seqsvr/storesvr/backup"
)

// The backup of a cluster without Sets says so. A restore of it warns, or its flags say that the cluster
// has become a Set.
func TestARestoreOfAClusterThatIsAloneAsksWhetherSetsWereAdded(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := storesvr.Init(storesvr.InitConfig{DataDir: "store", ClusterID: "c1", Name: "a", MemberNames: []string{"a"}}); err != nil {
		t.Fatal(err)
	}
	m, states, err := openDatabase("store")
	if err != nil {
		t.Fatal(err)
	}
	if err := backup.Save("file", m, states); err != nil {
		t.Fatal(err)
	}
	restore := "restore --from %s --era %s --cluster c1 --name a --members a --data-dir "
	line := func(from, era, dir string) string {
		return strings.Replace(strings.Replace(restore, "%s", from, 1), "%s", era, 1) + dir
	}
	const alone, root, warning = "of a cluster that is alone (no Set)", "of Set main, the root of 0 Sets", "WARNING: "
	for _, row := range []struct {
		line, want string
		warns      bool
	}{
		{"inspect file", alone, false},
		{"check file", alone, false},
		{"inspect file -o json", `"alone": true`, false},
		{"check file -o json", `"alone": true`, false},
		{line("file", "1", "plain"), alone, true},
		{line("file", "1", "told -o json") + " --was-set", `"was_set": true`, false},
		{line("file", "2", "said") + " --was-set", "seqctl set settle --set main", false},
		{"inspect plain", alone, false},
		{"inspect said", root, false},
		{"check said", root, false},
	} {
		out, err := call(t, strings.Fields(row.line)...)
		if err != nil || !strings.Contains(out, row.want) || strings.Contains(out, warning) != row.warns {
			t.Errorf("%s: %q, %v, expected %q, and a warning: %v", row.line, out, err, row.want, row.warns)
		}
	}
	if m, states, err = openDatabase("said"); err != nil {
		t.Fatal(err)
	}
	if err := backup.Save("later", m, states); err != nil {
		t.Fatal(err)
	}
	if out, err := call(t, strings.Fields(line("later", "3", "again")+" --was-set")...); !errors.Is(err, backup.ErrWasSet) || !errors.Is(err, daemon.ErrUsage) {
		t.Errorf("a backup of a Set: %q, %v", out, err)
	}
	if out, err := call(t, strings.Fields(line("later", "3", "again"))...); err != nil || strings.Contains(out, warning) {
		t.Errorf("a backup of a Set: %q, %v", out, err)
	}
}
