package storesvr

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/internal/auth"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr/disk"
)

func TestInitRefusesNamesThatNoCertificateCanHave(t *testing.T) {
	mapping, err := seq.NewMapping(seq.Space{Name: "user", Sections: 4})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a/b", "a b", "\u00e4", ".a", "-a", "a:1", "a\n", strings.Repeat("a", 129)} {
		dir := filepath.Join(t.TempDir(), "data")
		for what, err := range map[string]error{
			"a cluster id":  Init(InitConfig{DataDir: dir, ClusterID: name, Name: "a", MemberNames: []string{"a"}}),
			"a store":       Init(InitConfig{DataDir: dir, ClusterID: "c1", Name: name, MemberNames: []string{name}}),
			"another store": Init(InitConfig{DataDir: dir, ClusterID: "c1", Name: "a", MemberNames: []string{"a", name, "c"}}),
			"a learner":     InitLearner(LearnerConfig{DataDir: dir, ClusterID: "c1", Name: name, Mapping: mapping}),
		} {
			if !errors.Is(err, ErrConfig) {
				t.Errorf("%s %q: %v, expected %v", what, name, err, ErrConfig)
			}
		}
		if err := InitLearner(LearnerConfig{DataDir: dir, ClusterID: "c1", Name: name, Mapping: mapping}); !errors.Is(err, auth.ErrBadName) || !strings.Contains(err.Error(), "letters, digits") {
			t.Errorf("%q: %v, expected %v that says what is right", name, err, auth.ErrBadName)
		}
		if _, err := os.Stat(filepath.Join(dir, disk.FileName)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%q: a database was made: %v", name, err)
		}
	}
	// A learner of a cluster with an odd name, which a build of the version before made.
	if err := InitLearner(LearnerConfig{DataDir: filepath.Join(t.TempDir(), "data"), ClusterID: "a b", Name: "n", Mapping: mapping}); err != nil {
		t.Errorf("a learner of a cluster with an odd name: %v", err)
	}
}
