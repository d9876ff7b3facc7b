package runbook

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

// patience bounds the time for which an operator repeats a command before giving the procedure up.
const patience = harness.Patience

// site is the machines of the document, each a loopback address with a folder, so that
// all may use the ports of the example's configuration.
type site struct {
	t        *testing.T
	bin      string
	dir      string
	machines map[string]*machine
}

// machine is one host: what a package manager puts there, and what runs.
type machine struct {
	name, addr, dir string
	running         map[string]*harness.Service // by unit
}

func newSite(t *testing.T, hosts ...string) *site {
	t.Helper()
	s := &site{t: t, bin: harness.Binaries(t), dir: t.TempDir(), machines: map[string]*machine{}}
	addrs := harness.NewHosts(t, hosts...)
	for _, host := range hosts {
		s.machines[host] = &machine{name: host, addr: addrs.Addr(host), dir: filepath.Join(s.dir, host), running: map[string]*harness.Service{}}
	}
	for _, m := range s.machines {
		s.install(m)
	}
	return s
}

// install puts the commented examples of deploy/config into the machine's
// /etc/seqsvr, which is what the document tells to begin from.
func (s *site) install(m *machine) {
	s.t.Helper()
	role, number, _ := strings.Cut(m.name, "-")
	daemon := map[string]string{"store": "storesvr", "alloc": "allocsvr", "router": "router"}[role]
	text, err := os.ReadFile(filepath.Join(repo, "deploy/config", daemon+".yaml"))
	if err != nil {
		s.t.Fatal(err)
	}
	// The examples name the first machine of a role.
	own := regexp.MustCompile(`(?m)^(name|advertise): `+role+`-1\b`).ReplaceAll(text, []byte("${1}: "+role+"-"+number))
	for _, dir := range []string{"etc", "lib"} {
		if err := os.MkdirAll(filepath.Join(m.dir, dir), 0o755); err != nil {
			s.t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(m.dir, "etc", daemon+".yaml"), []byte(s.local(string(own), m)), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

// local writes a text of the document as this machine needs it.
func (s *site) local(text string, m *machine) string {
	for _, other := range s.machines {
		text = strings.ReplaceAll(text, other.name+".example.net", other.addr)
	}
	text = strings.ReplaceAll(text, "/backup/", s.dir+"/")
	if m != nil {
		text = strings.ReplaceAll(text, "/etc/seqsvr", filepath.Join(m.dir, "etc"))
		text = strings.ReplaceAll(text, "/var/lib/seqsvr", filepath.Join(m.dir, "lib"))
		text = strings.ReplaceAll(text, "/usr/local/bin", s.bin)
		text = strings.ReplaceAll(text, "0.0.0.0", m.addr)
		text = strings.ReplaceAll(text, "127.0.0.1", m.addr)
	}
	return text
}

// follow runs a procedure as it is written.
func (s *site) follow(blocks []block, procedure string) {
	s.t.Helper()
	found := false
	for _, b := range blocks {
		if b.procedure != procedure {
			continue
		}
		found = true
		for _, name := range b.on {
			s.runOn(name, b)
		}
	}
	if !found {
		s.t.Fatalf("the documents have no procedure %q", procedure)
	}
}

// runOn runs a block on the machine of that name; an empty name is the operator.
func (s *site) runOn(name string, b block) {
	s.t.Helper()
	m := s.machines[name]
	if name != "" && m == nil {
		s.t.Fatalf("%s: no machine %q", b.where, name)
	}
	for _, command := range b.commands {
		if unit, ok := strings.CutPrefix(command, "systemctl "); ok && m != nil {
			s.systemctl(m, unit)
			continue
		}
		s.shell(b, m, command)
	}
}

// shell runs a command, again and again until it ends as the document says: an
// operator who reads "wait until" does the same.
func (s *site) shell(b block, m *machine, command string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var before []byte // what the try before said
	for {
		cmd := exec.CommandContext(ctx, "bash", "-c", s.local(command, m))
		cmd.Dir = s.dir
		cmd.Env = []string{"PATH=" + s.bin + ":" + os.Getenv("PATH"), "HOME=" + s.dir,
			"SEQ_ADDR=" + s.machines["router-1"].addr + ":7400"}
		if m != nil {
			cmd.Env = append(cmd.Env, "NAME="+m.name)
		}
		out, err := cmd.CombinedOutput()
		if (err != nil) == b.fails {
			return
		}
		if ctx.Err() != nil {
			s.t.Fatalf("%s: %s: %v, want failure %v\n%s\nthe try before:\n%s", b.where, command, err, b.fails, out, before)
		}
		before = out
	}
}

// systemctl does what systemd would with the units of deploy/systemd.
func (s *site) systemctl(m *machine, words string) {
	s.t.Helper()
	verb, unit, _ := strings.Cut(words, " ")
	unit = strings.TrimSpace(unit)
	if verb == "stop" || verb == "restart" {
		s.stop(m, unit)
	}
	if verb == "start" || verb == "restart" {
		s.start(m, unit)
	}
	if verb == "reload" {
		s.reload(m, unit)
	}
	if verb != "start" && verb != "stop" && verb != "restart" && verb != "reload" {
		s.t.Fatalf("systemctl %s is not known here", words)
	}
}

func (s *site) start(m *machine, unit string) {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(repo, "deploy/systemd", unit+".service"))
	if err != nil {
		s.t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^ExecStart=(.*)$`).FindSubmatch(text)
	if line == nil {
		s.t.Fatalf("%s has no ExecStart", unit)
	}
	words := strings.Fields(s.local(string(line[1]), m))
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	m.running[unit] = harness.Serve(s.t, unit+" on "+m.name, cmd)
}

func (s *site) stop(m *machine, unit string) {
	run := m.running[unit]
	if run == nil {
		s.t.Fatalf("%s does not run on %s", unit, m.name)
	}
	delete(m.running, unit)
	run.Stop(s.t)
}

// reload sends what ExecReload= does, and waits until the daemon has said that it did.
func (s *site) reload(m *machine, unit string) {
	s.t.Helper()
	run := m.running[unit]
	if run == nil {
		s.t.Fatalf("%s does not run on %s", unit, m.name)
	}
	said := func() int {
		return strings.Count(run.Log(s.t), "settings reloaded")
	}
	// A signal that comes before main ends a process: it has to have begun to speak.
	for deadline := time.Now().Add(patience); run.Log(s.t) == "" && time.Now().Before(deadline); <-time.After(10 * time.Millisecond) {
	}
	before := said()
	if err := run.Signal(syscall.SIGHUP); err != nil {
		s.t.Fatal(err)
	}
	for deadline := time.Now().Add(patience); said() == before; <-time.After(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("%s on %s was told to reload and did not", unit, m.name)
		}
	}
}

// loseDisk ends a store with its disk.
func (s *site) loseDisk(name string) {
	s.t.Helper()
	m := s.machines[name]
	for unit := range m.running {
		s.stop(m, unit)
	}
	lib := filepath.Join(m.dir, "lib")
	if err := errors.Join(os.RemoveAll(lib), os.MkdirAll(lib, 0o755)); err != nil {
		s.t.Fatal(err)
	}
}
