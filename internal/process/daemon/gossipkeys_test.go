package daemon

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seqsvr/seqsvr/membership"
)

func newKey(t *testing.T) string {
	t.Helper()
	key, err := membership.NewKey(32)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestAHangupReadsTheGossipKeysAgain(t *testing.T) {
	dir := t.TempDir()
	settings, one, two := filepath.Join(dir, "seqd.yaml"), filepath.Join(dir, "one.keys"), filepath.Join(dir, "two.keys")
	first, second := newKey(t), newKey(t)
	write(t, one, first+"\n")
	write(t, settings, "gossip-keys-file: "+one+"\n")
	log := &journal{}
	load := loader(settings, log)
	c, err := load(nil)
	if err != nil {
		t.Fatal(err)
	}
	c.Reread = func() (*Common, error) { return load(nil) }
	old := c.GossipKeys.Names()[0]

	write(t, one, first+"\n"+second+"\n")
	c.Reload()
	names := c.GossipKeys.Names()
	if len(names) != 2 || names[0] != old {
		t.Errorf("after a key was added: got %q, want %s and another", names, old)
	}
	log.await(t, "gossip keys changed")
	for what, text := range map[string]string{"not base64": "swordfish\n", "nothing": ""} {
		write(t, one, text)
		c.Reload()
		if diff := cmp.Diff(names, c.GossipKeys.Names()); diff != "" {
			t.Errorf("%s: the keys changed: %s", what, diff)
		}
	}
	log.await(t, "settings not reloaded, nothing is changed")
	log.await(t, "line 1 is not base64")

	write(t, two, second+"\n")
	write(t, settings, "gossip-keys-file: "+two+"\n")
	c.Reload()
	if diff := cmp.Diff(names[1:], c.GossipKeys.Names()); diff != "" {
		t.Errorf("after a new path: %s", diff)
	}
	log.await(t, `msg="setting changed" setting=gossip-keys-file from=`+one+" to="+two)

	write(t, settings, "log-level: info\n")
	c.Reload()
	if diff := cmp.Diff(names[1:], c.GossipKeys.Names()); diff != "" {
		t.Errorf("without a path: %s", diff)
	}
	log.await(t, `msg="setting needs a restart" setting=gossip-keys-file`)
	for _, secret := range []string{first, second, "swordfish"} {
		if strings.Contains(log.String(), secret) {
			t.Errorf("a key is in the log:\n%s", log)
		}
	}
}

func TestABadKeysFileIsAUsageErrorThatNamesIt(t *testing.T) {
	open := filepath.Join(t.TempDir(), "gossip.keys")
	write(t, open, newKey(t)+"\n")
	if err := os.Chmod(open, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{open, filepath.Join(t.TempDir(), "none")} {
		_, err := loader("", io.Discard)([]string{"--gossip-keys-file", path})
		if !errors.Is(err, ErrUsage) || !errors.Is(err, membership.ErrKeys) || !strings.Contains(err.Error(), path) {
			t.Errorf("got %v, want a usage error that names %s", err, path)
		}
	}
}
