//go:build linux

package auth_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/seqsvr/seqsvr/internal/wire/auth"
)

// as runs do as another user and group, as a pod with an fsGroup runs.
func as(t *testing.T, uid, gid int, groups []int, do func()) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	before, err := os.Getgroups()
	must(err)
	must(syscall.Setgroups(groups))
	must(syscall.Setresgid(-1, gid, -1))
	must(syscall.Setresuid(-1, uid, -1))
	defer func() {
		must(syscall.Setresuid(-1, 0, -1))
		must(syscall.Setresgid(-1, 0, -1))
		must(syscall.Setgroups(before))
	}()
	do()
}

func TestASecretOfRootsMayBeReadByTheGroupOfTheProcessAlone(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to give files to others")
	}
	const user, group, mounted, other = 65532, 65532, 65533, 65534
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o711); err != nil { // for the other user
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		uid, gid int
		mode     os.FileMode
		sound    bool
	}{
		"one's own":                        {user, group, 0o600, true},
		"one's own, the group reads":       {user, group, 0o640, false},
		"a Secret with fsGroup":            {0, mounted, 0o440, true},
		"root's, root writes":              {0, mounted, 0o640, true},
		"root's, of the first group":       {0, group, 0o440, true},
		"root's, the group writes":         {0, mounted, 0o460, false},
		"root's, the group executes":       {0, mounted, 0o450, false},
		"root's, everybody reads":          {0, mounted, 0o444, false},
		"root's, of another group":         {0, other, 0o440, false},
		"another user's, the group reads":  {other, mounted, 0o440, false},
		"another user's, everybody reads":  {other, mounted, 0o604, false},
		"another user's, everybody writes": {other, mounted, 0o602, false},
	} {
		path := filepath.Join(dir, name)
		if err := auth.WriteSecret(path, nil); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.Chown(path, test.uid, test.gid), os.Chmod(path, test.mode)); err != nil {
			t.Fatal(err)
		}
		as(t, user, group, []int{mounted}, func() {
			if err := auth.CheckPrivate(path); (err == nil) != test.sound || err != nil && !errors.Is(err, auth.ErrOpenFile) {
				t.Errorf("%s: got %v, want sound: %v", name, err, test.sound)
			}
		})
	}
	own := filepath.Join(dir, "root's own")
	if err := errors.Join(auth.WriteSecret(own, nil), os.Chmod(own, 0o440)); err != nil {
		t.Fatal(err)
	}
	if err := auth.CheckPrivate(own); !errors.Is(err, auth.ErrOpenFile) {
		t.Errorf("root reads what its group may: got %v", err)
	}
}
