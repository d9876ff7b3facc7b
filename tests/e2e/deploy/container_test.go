package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

const repo = "../../.."

// container is one process as a manifest starts it.
type container struct {
	where string // file and name, for messages
	image string // seqsvr/DAEMON or etcdImage, without its tag
	args  []string
	env   map[string]string // with $(NAME) expanded
}

func TestMain(m *testing.M) { harness.Main(m) }

func daemon(t *testing.T, name string) string {
	t.Helper()
	return filepath.Join(harness.Binaries(t), name)
}

// check asks the daemon itself whether it would take the settings, and that every
// SEQ_ variable is one of its flags: a misspelt one is not refused, it is not seen.
func (c container) check(t *testing.T) {
	t.Helper()
	name, ok := strings.CutPrefix(c.image, "seqsvr/")
	if c.image == etcdImage {
		c.checkEtcd(t)
		return
	}
	if !ok {
		t.Errorf("%s: image %q is not one of ours", c.where, c.image)
		return
	}
	if name == "seqctl" {
		c.checkTool(t)
		return
	}
	binary := daemon(t, name)
	verbs := slices.Clone(c.args)
	flags, err := exec.Command(binary, append(slices.Clone(verbs), "--help")...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %s --help: %v\n%s", c.where, name, err, flags)
	}
	var env []string
	for key, value := range c.env {
		flag, ours := strings.CutPrefix(key, "SEQ_")
		if !ours {
			continue
		}
		flag = strings.ToLower(strings.ReplaceAll(flag, "_", "-"))
		if !strings.Contains(string(flags), "--"+flag+" ") {
			t.Errorf("%s: %s is no flag of %s %s", c.where, key, name, strings.Join(verbs, " "))
		}
		if key == "SEQ_GOSSIP_KEYS_FILE" {
			value = gossipKeys(t) // what the Secret has
		}
		env = append(env, key+"="+value)
	}
	if slices.Contains(verbs, "init") {
		return // has no validate: it would make a database
	}
	verify := exec.Command(binary, "config", "validate")
	verify.Env = env
	if out, err := verify.CombinedOutput(); err != nil {
		t.Errorf("%s: %s config validate: %v\n%s", c.where, name, err, out)
	}
}

const etcdImage = "quay.io/coreos/etcd"

// checkTool holds that a job of seqctl has a verb and flags that there are.
func (c container) checkTool(t *testing.T) {
	t.Helper()
	if len(c.args) == 0 {
		return // a shell's
	}
	help, err := exec.Command(daemon(t, "seqctl"), append(slices.Clone(c.args), "--help")...).CombinedOutput()
	if err != nil {
		t.Errorf("%s: seqctl %v: %v\n%s", c.where, c.args, err, help)
	}
}

// checkEtcd holds that what etcd is started with are settings of etcd, where there is one.
func (c container) checkEtcd(t *testing.T) {
	t.Helper()
	etcd, err := exec.LookPath("etcd")
	if err != nil {
		t.Logf("%s is not looked at: %v", c.where, err)
		return
	}
	help, err := exec.Command(etcd, "--help").CombinedOutput()
	if err != nil {
		t.Fatal(err)
	}
	for _, arg := range c.args {
		if flag, _, _ := strings.Cut(arg, "="); !strings.Contains(string(help), "  "+flag+" ") {
			t.Errorf("%s: %s is no flag of etcd", c.where, flag)
		}
	}
	compacts := slices.ContainsFunc(c.args, func(arg string) bool { return strings.HasPrefix(arg, "--auto-compaction-retention=") })
	for key := range c.env {
		name, ours := strings.CutPrefix(key, "ETCD_")
		compacts = compacts || name == "AUTO_COMPACTION_RETENTION"
		if flag := "--" + strings.ToLower(strings.ReplaceAll(name, "_", "-")); ours && !strings.Contains(string(help), "  "+flag+" ") {
			t.Errorf("%s: %s is no setting of etcd", c.where, key)
		}
	}
	if !compacts {
		t.Errorf("%s: it never compacts", c.where)
	}
}

// gossipKeys is a file with a key.
func gossipKeys(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "gossip.keys")
	if err := os.WriteFile(path, []byte(strings.Repeat("A", 43)+"=\n"), 0o440); err != nil {
		t.Fatal(err)
	}
	return path
}
