package membership

import (
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seqsvr/seqsvr/tests/kit/textlog"
)

// key is a sound key, the same for the same letter.
func key(letter string) []byte { return []byte(strings.Repeat(letter, 32)) }

// ring is the keys of the letters, the first of which encrypts.
func ring(t *testing.T, letters string) *Keys {
	t.Helper()
	var list [][]byte
	for _, letter := range letters {
		list = append(list, key(string(letter)))
	}
	keys, err := NewKeys(list...)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func under(keys *Keys) func(*Config) { return func(c *Config) { c.Keys = keys } }

// journal is a log that may be read while it is written.
type journal struct{ textlog.Log }

func logging(j *journal) func(*Config) {
	return func(c *Config) { c.Logger = slog.New(slog.NewTextHandler(j, nil)) }
}

// await waits until the log has all the words in one line.
func (j *journal) await(t *testing.T, words ...string) {
	t.Helper()
	wait(t, func() error {
	lines:
		for line := range strings.Lines(j.String()) {
			for _, word := range words {
				if !strings.Contains(line, word) {
					continue lines
				}
			}
			return nil
		}
		return fmt.Errorf("no line with %q in\n%s", words, j)
	})
}

func TestMembersWithTheSameKeysMeet(t *testing.T) {
	a := start(t, "a", under(ring(t, "k")))
	meet(t, a, start(t, "b", under(ring(t, "k")), seed(a)))
}

func TestMembersWithDifferentKeysDoNotMeetAndSayWhatToCheck(t *testing.T) {
	for _, row := range []struct {
		name      string
		one, seek *Keys
	}{
		{"different keys", ring(t, "k"), ring(t, "x")},
		{"none at the one that seeks", ring(t, "k"), nil},
		{"none at the one that is sought", nil, ring(t, "x")},
	} {
		t.Run(row.name, func(t *testing.T) {
			theirs, own := &journal{}, &journal{}
			a := start(t, "a", under(row.one), logging(theirs))
			b := start(t, "b", under(row.seek), logging(own), seed(a))
			theirs.await(t, "level=WARN", "gossip keys differ", "from=127.0.0.1", "check=", "--gossip-keys-file")
			own.await(t, "level=WARN", "no seed answers", "check=", "--gossip-keys-file")
			// In some tries a reset connection hides the answer, but not in all.
			wait(t, func() error {
				if _, err := b.tryJoin([]string{a.Addr()}); !errors.Is(named(err), ErrKeysDiffer) {
					return fmt.Errorf("got %v, want %v", err, ErrKeysDiffer)
				}
				return nil
			})
			if len(a.Members()) != 1 || len(b.Members()) != 1 {
				t.Errorf("they see each other: %+v, %+v", a.Members(), b.Members())
			}
			if a.KeyFaults() == 0 {
				t.Error("no fault was counted")
			}
			if n := strings.Count(theirs.String(), "gossip keys differ"); n > 5 {
				t.Errorf("%d warnings for one cause", n)
			}
		})
	}
}

func TestARotationUnderARunningClusterLosesNoMember(t *testing.T) {
	keys := []*Keys{ring(t, "k"), ring(t, "k"), ring(t, "k")}
	logs := []*journal{{}, {}, {}}
	a := start(t, "a", under(keys[0]), logging(logs[0]))
	views := []*View{a, start(t, "b", under(keys[1]), seed(a), logging(logs[1])), start(t, "c", under(keys[2]), seed(a), logging(logs[2]))}
	meet(t, views...)
	version := uint64(0)
	for _, phase := range []string{"kn", "nk", "n"} {
		for i := range keys {
			if !keys[i].Replace(ring(t, phase)) {
				t.Errorf("phase %q: nothing changed", phase)
			}
			// Each step of the way the gossip of each gets to all others.
			version++
			views[i].SetTableVersion(version)
			for _, v := range views {
				wait(t, func() error {
					if got := v.HighestTableVersion(); got != version {
						return fmt.Errorf("phase %q, %s: version %d, want %d", phase, v.Self().Name, got, version)
					}
					return nil
				})
			}
		}
	}
	meet(t, views...)
	for _, log := range logs {
		if text := log.String(); strings.Contains(text, `msg="member died"`) || strings.Contains(text, `msg="member left"`) {
			t.Error(text)
		}
	}
	meet(t, append(views, start(t, "d", under(ring(t, "n")), seed(a)))...)
	stranger := start(t, "e", under(ring(t, "k")))
	if n, err := stranger.tryJoin([]string{a.Addr()}); n != 0 || err == nil {
		t.Errorf("the former key was enough: %d, %v", n, err)
	}
}

func TestReplaceLeavesTheKeysOfTheListAndNoOthers(t *testing.T) {
	k := ring(t, "abcd")
	for _, want := range []string{"abcd", "dcba", "b", "bxyz", "zb", "qrst", "q"} {
		k.Replace(ring(t, want))
		have := map[string]bool{}
		for _, key := range k.ring.GetKeys() {
			have[string(key[:1])] = true
		}
		if primary := string(k.ring.GetPrimaryKey()[:1]); primary != want[:1] || len(have) != len(want) {
			t.Errorf("%s: the first is %s, all are %v", want, primary, have)
		}
		for _, letter := range want {
			if !have[string(letter)] {
				t.Errorf("%s: %s is missing", want, string(letter))
			}
		}
		if diff := cmp.Diff(ring(t, want).Names(), k.Names()); diff != "" {
			t.Errorf("%s: names: %s", want, diff)
		}
	}
	if k.Replace(ring(t, "q")) {
		t.Error("the same keys count as a change")
	}
}

func TestKeysMayBeReplacedWhileTheyAreUsed(t *testing.T) {
	keys := ring(t, "ab")
	a := start(t, "a", under(keys))
	meet(t, a, start(t, "b", under(ring(t, "ab")), seed(a)))
	for i := range 200 {
		keys.Replace(ring(t, []string{"ab", "ba", "abc"}[i%3]))
		a.SetTableVersion(uint64(i))
	}
}

func TestAKeysFileHasOneKeyALine(t *testing.T) {
	path := keysFile(t, "# gossip\n\n  "+line("n")+"  # since Monday\r\n"+line("k")+"\n")
	keys, err := LoadKeys(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(ring(t, "nk").Names(), keys.Names()); diff != "" {
		t.Error(diff)
	}
	if keys, err := LoadKeys(""); keys != nil || err != nil {
		t.Errorf("no path: got %v, %v", keys, err)
	}
	for _, size := range []int{16, 24, 32} {
		text, err := NewKey(size)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := LoadKeys(keysFile(t, text+"\n")); err != nil {
			t.Errorf("a key of %d bytes: %v", size, err)
		}
	}
	_, err = NewKey(20)
	wantErr(t, err, ErrKeys)
}

func line(letter string) string { return base64.StdEncoding.EncodeToString(key(letter)) }

func keysFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "gossip.keys")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestABadKeysFileIsRefusedByNameWithoutTellingIt(t *testing.T) {
	short := base64.StdEncoding.EncodeToString([]byte("swordfish!"))
	open := keysFile(t, line("k")+"\n")
	if err := os.Chmod(open, 0o644); err != nil {
		t.Fatal(err)
	}
	many := ""
	for i := range maxKeys + 1 {
		many += line(string(rune('a'+i))) + "\n"
	}
	for _, row := range []struct{ name, path, want string }{
		{"empty", keysFile(t, ""), "no key"},
		{"comments only", keysFile(t, "# "+line("k")+"\n"), "no key"},
		{"a wrong length", keysFile(t, line("k")+"\n"+short+"\n"), "line 2 has 10 bytes"},
		{"not base64", keysFile(t, "swordfish!\n"), "line 1 is not base64"},
		{"two on a line", keysFile(t, line("k")+" "+line("n")+"\n"), "line 1 is not base64"},
		{"one twice", keysFile(t, line("k")+"\n"+line("k")+"\n"), "twice"},
		{"too many", keysFile(t, many), "17 keys"},
		{"too large", keysFile(t, strings.Repeat("#\n", maxKeysFile)), "larger than"},
		{"not there", filepath.Join(t.TempDir(), "none"), "no such file"},
		{"a directory", filepath.Dir(keysFile(t, "")), ""},
		{"for everybody", open, "mode 0644"},
	} {
		_, err := LoadKeys(row.path)
		wantErr(t, err, ErrKeys)
		if err == nil {
			continue
		}
		if text := err.Error(); !strings.Contains(text, row.want) || !strings.Contains(text, row.path) ||
			strings.Contains(text, short) || strings.Contains(text, "swordfish") || strings.Contains(text, line("k")) {
			t.Errorf("%s: got %v, want the file, %q and nothing of the keys", row.name, err, row.want)
		}
	}
}

func TestWhileKeysDifferOneWarningIsMadeInAWhile(t *testing.T) {
	j := &journal{}
	f := &keyFaults{log: slog.New(slog.NewTextHandler(j, nil)), keys: ring(t, "k")}
	now := time.Unix(1000, 0)
	for range 10 {
		f.note("Decrypt packet failed: no installed keys could decrypt the message from=10.0.0.1:7501", now)
		now = now.Add(time.Second)
	}
	f.note("Decrypt packet failed: x from=10.0.0.2:7501", now.Add(keyFaultPause))
	if n := strings.Count(j.String(), "\n"); n != 2 || f.total() != 11 {
		t.Errorf("%d warnings of %d faults, want 2 of 11:\n%s", n, f.total(), j)
	}
	j.await(t, "from=10.0.0.1:7501", "times=1", ring(t, "k").Names()[0])
	j.await(t, "from=10.0.0.2:7501", "times=10")
}
