package authctl

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seqsvr/seqsvr/cmd/seqctl/ctl"
	"github.com/seqsvr/seqsvr/internal/process/daemon"
	"github.com/seqsvr/seqsvr/internal/wire/auth"
)

var update = flag.Bool("update", false, "write the golden files anew")

// call runs a command line in the current directory and gives what it printed.
func call(t *testing.T, line string) (stdout string, err error) {
	t.Helper()
	var out, log bytes.Buffer
	root := ctl.Root()
	root.AddCommand(Command())
	err = ctl.Execute(t.Context(), root, append([]string{"auth"}, strings.Fields(line)...), &out, &log)
	return out.String(), err
}

func must(t *testing.T, line string) string {
	t.Helper()
	out, err := call(t, line)
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return out
}

func TestWhatTheVerbsPrint(t *testing.T) {
	golden, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	var got strings.Builder
	for _, line := range []string{
		"ca --cluster shop --dir ca",
		"cert --ca ca --role alloc --name a1 --hosts a1,10.0.0.1",
		"cert --ca ca --cluster shop-2 --role alloc --name b1 --hosts b1",
		"cert --ca ca --role operator --name ops -o json",
		"token --name chat --grant user:take,read,rate=50000 --grant tag/inv-*:take --policy p.yaml --out chat.token",
		"token --name eye --role reader --policy p.yaml --out eye.token",
		"token --name chat --policy p.yaml --out next.token",
		"key --out backup.key",
		"list --policy p.yaml",
		"list --policy p.yaml -o yaml",
		"try --policy p.yaml --token-file chat.token Sequence.Next user:take tag/inv-7:take",
		"try --policy p.yaml --token-file next.token user:raise=5 user:read Admin/Drain",
		"try --policy p.yaml --as caller/eve user:take",
		"try --as router/r1 /seqsvr.v1.Sequence/Next /seqsvr.v1.Peer/Offer user:take",
		"try Sequence.Next",
	} {
		out, err := call(t, line)
		got.WriteString("$ seqctl auth " + line + "\n" + out)
		if err != nil {
			got.WriteString("! " + err.Error() + "\n")
		}
	}
	name := filepath.Join(golden, "verbs.txt")
	if *update {
		if err := errors.Join(os.MkdirAll(golden, 0o755), os.WriteFile(name, []byte(got.String()), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestATokenIsShownOnceAndThePolicyHasItsHashOnly(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("p.yaml", []byte("# who may take\nprincipals:\n  # the chat servers\n  - name: chat\n    role: caller\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var r made
	if err := json.Unmarshal([]byte(must(t, "token --name chat --policy p.yaml -o json")), &r); err != nil {
		t.Fatal(err)
	}
	token, err := auth.ParseToken(r.Token)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("p.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{token.Hash().Hex(), "# who may take", "# the chat servers"} {
		if !strings.Contains(string(text), part) {
			t.Errorf("the policy lacks %q:\n%s", part, text)
		}
	}
	if strings.Contains(string(text), r.Token) {
		t.Error("the policy has the token")
	}
	if info, err := os.Stat("p.yaml"); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode: %v, %v", info.Mode(), err)
	}
	// Without --policy, the verb prints a policy file.
	out := must(t, "token --name other --role operator")
	_, entry, _ := strings.Cut(out, "# for the policy file:\n")
	if p, err := auth.ParsePolicy([]byte(entry)); err != nil || len(p.Principals) != 1 {
		t.Errorf("%q: %v", entry, err)
	}
}

func TestSecretsAreWrittenForTheirOwnerAloneAndRefusedWhereOthersRead(t *testing.T) {
	t.Chdir(t.TempDir())
	must(t, "ca --cluster shop --dir ca")
	must(t, "cert --ca ca --role caller --name chat")
	must(t, "token --name chat --policy p.yaml --out chat.token")
	must(t, "key --out backup.key")
	for _, name := range []string{"ca/ca-key.pem", "caller-chat-key.pem", "chat.token", "p.yaml", "backup.key"} {
		info, err := os.Stat(name)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v, want 0600", name, info, err)
		}
		if err := os.Chmod(name, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for line, name := range map[string]string{
		"cert --ca ca --role caller --name two":           "ca/ca-key.pem",
		"try --token-file chat.token user:take":           "chat.token",
		"list --policy p.yaml":                            "p.yaml",
		"token --name more --policy p.yaml --out new.tok": "p.yaml",
		"try --policy p.yaml --as caller/chat user:take":  "p.yaml",
	} {
		if _, err := call(t, line); !errors.Is(err, auth.ErrOpenFile) || !strings.Contains(err.Error(), "chmod 600 "+name) {
			t.Errorf("%s: got %v, want what to do about %s", line, err, name)
		}
	}
	if _, err := os.Stat("new.tok"); err == nil {
		t.Error("a token that no policy has was left behind")
	}
	for _, line := range []string{"ca --cluster shop --dir ca", "token --name x --out chat.token", "key --out backup.key"} {
		if _, err := call(t, line); !errors.Is(err, auth.ErrExists) {
			t.Errorf("%s: got %v, want ErrExists", line, err)
		}
	}
}

func TestAWrongCallIsAUsageErrorThatNamesWhatIsWrong(t *testing.T) {
	t.Chdir(t.TempDir())
	must(t, "ca --cluster shop --dir ca")
	for line, want := range map[string]string{
		"forge":                                 `"forge"`,
		"ca":                                    `cluster ""`,
		"ca --cluster a/b":                      `cluster "a/b"`,
		"ca --cluster a --valid -1h":            "--valid",
		"ca now":                                "seqctl auth ca",
		"cert --ca ca --role root --name a":     `role "root"`,
		"cert --ca ca --role caller --name a/b": `name "a/b"`,
		"cert --ca ca --role alloc --name a":    "--hosts",
		"token":                                 "name: expected",
		"token --name a --role store":           `role "store"`,
		"token --name a --role reader --grant u:read": "grants of a reader",
		"token --name a --grant user":                 `"user"`,
		"token --name a --grant user:give":            `verb "give"`,
		"token --name a --grant user:raise":           "max_raise",
		"token --name a --grant user:take,colour=3":   `"colour"`,
		"token --name a --grant user:take,rate=many":  `"rate=many"`,
		"key":                                   "--out FILE",
		"try":                                   "0 arguments",
		"try Sequence.Nothing":                  `"Sequence.Nothing"`,
		"try user:give":                         `"user:give"`,
		"try user:raise":                        `"user:raise"`,
		"try --as root/x user:take":             "root/x",
		"try --as caller/x --token y user:take": "expected one of them",
		"list":                                  "--policy FILE",
		"list -o xml":                           `"xml"`,
	} {
		out, err := call(t, line)
		if !errors.Is(err, daemon.ErrUsage) || !strings.Contains(err.Error(), want) || out != "" {
			t.Errorf("%s: got %v and output %q, want a usage error with %q", line, err, out, want)
		}
	}
}
