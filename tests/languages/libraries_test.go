package languages

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/router"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

// library returns the command of a library's test program, which takes a phase and addresses of RESP ports. It skips
// where the language is missing.
type library func(t *testing.T, clients string) []string

var libraries = map[string]library{"java": javaLibrary, "node": nodeLibrary, "python-asyncio": pythonLibrary, "python-threads": pythonLibrary}

func nodeLibrary(t *testing.T, clients string) []string {
	return []string{found(t, "node"), filepath.Join(clients, "node", "test.js")}
}

// pythonLibrary runs the client of asyncio or of threads, by the name of the test.
func pythonLibrary(t *testing.T, clients string) []string {
	_, kind, _ := strings.Cut(t.Name(), "python-")
	return []string{"env", "PYTHONDONTWRITEBYTECODE=1", "SEQ_KIND=" + kind, found(t, "python3"), filepath.Join(clients, "python", "test.py")}
}

func javaLibrary(t *testing.T, clients string) []string {
	t.Helper()
	javac, classes := found(t, "javac"), t.TempDir()
	sources, err := filepath.Glob(filepath.Join(clients, "java", "src", "com", "github", "seqsvr", "client", "*.java"))
	if err != nil || len(sources) == 0 {
		t.Fatalf("sources %v: %v", sources, err)
	}
	args := append([]string{"-d", classes, "-Xlint:all", "-Werror", filepath.Join(clients, "java", "test", "LibraryTest.java")}, sources...)
	if out, err := exec.CommandContext(harness.Within(t), javac, args...).CombinedOutput(); err != nil {
		t.Fatalf("javac: %v\n%s", err, out)
	}
	return []string{found(t, "java"), "-cp", classes, "LibraryTest"}
}

func found(t *testing.T, name string) string {
	t.Helper()
	exe, err := exec.LookPath(name)
	if err != nil {
		t.Skip("there is no " + name)
	}
	return exe
}

// phase runs a phase of a program, which ends with the line "done". kill is called at the line "kill".
func phase(t *testing.T, args, env []string, kill func()) {
	t.Helper()
	cmd := exec.CommandContext(harness.Within(t), args[0], args[1:]...)
	cmd.Env = append(os.Environ(), env...)
	var errs strings.Builder
	cmd.Stderr = &errs
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var said []string
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if said = append(said, lines.Text()); lines.Text() == "kill" {
			kill()
			fmt.Fprintln(in, "killed")
		}
	}
	if err := cmd.Wait(); err != nil || len(said) == 0 || said[len(said)-1] != "done" {
		t.Fatalf("%q: %v after %q\n%s", args, err, said, errs.String())
	}
}

// beside runs a router of the cluster in this process.
func beside(t *testing.T, c *localcluster.Cluster) *router.Router {
	t.Helper()
	r, err := router.New(router.Config{Listen: "127.0.0.1:0", RESPListen: "127.0.0.1:0", Allocs: c.AllocsOfAllSets(), Timeout: time.Minute, AttemptTimeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		_ = r.Close()
	})
	return r
}

// pipelines returns how many pipelines of RESP a router has answered, and how many INCR.
func pipelines(t *testing.T, r *router.Router) (pipelines, increments uint64) {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(r)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			switch {
			case strings.HasSuffix(f.GetName(), "router_resp_pipeline_seconds"):
				pipelines += m.GetHistogram().GetSampleCount()
			case strings.HasSuffix(f.GetName(), "router_resp_commands_total") && m.GetLabel()[0].GetValue() == "incr":
				increments += uint64(m.GetCounter().GetValue())
			}
		}
	}
	return pipelines, increments
}

// each runs a test for each library, with its program and its own part of the keys.
func each(t *testing.T, test func(t *testing.T, run func(name string, env []string, kill func(), addrs ...string))) {
	root, err := harness.Root()
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range slices.Sorted(maps.Keys(libraries)) {
		t.Run(name, func(t *testing.T) {
			program := libraries[name](t, filepath.Join(root, "clients"))
			test(t, func(name string, env []string, kill func(), addrs ...string) {
				t.Helper()
				phase(t, slices.Concat(program, []string{name}, addrs), append(env, fmt.Sprint("SEQ_BASE=", (i+1)*1_000_000)), kill)
			})
		})
	}
}

func TestEachLibraryOfClients(t *testing.T) {
	c := harness.Start(t, func(cfg *localcluster.Config) {
		harness.AskOnce(cfg)
		cfg.RESP, cfg.Spaces = "127.0.0.1:0", []string{"orders:mode=exact", "inbox:tickets=10s"}
	})
	router1 := c.Processes(localcluster.RoleRouter)[0]
	first, second := c.Role(localcluster.RoleRouter)[0].RESP, beside(t, c)
	each(t, func(t *testing.T, run func(name string, env []string, kill func(), addrs ...string)) {
		run("calls", nil, nil, first)

		beforePipelines, before := pipelines(t, second)
		run("coalesce", nil, nil, second.RESPAddr())
		answered, increments := pipelines(t, second)
		if answered, increments = answered-beforePipelines, increments-before; increments < 1001 || answered > 100 {
			t.Errorf("1,000 calls at a time and 1 before them: %d commands in %d pipelines", increments, answered)
		}

		run("failover", nil, func() {
			if err := router1.Kill(); err != nil {
				t.Error(err)
			}
		}, first, second.RESPAddr())
		if err := router1.Restart(harness.Within(t)); err != nil {
			t.Fatal(err)
		}
		harness.Ready(t, c)
	})
}

func TestEachLibraryShowsATokenOverTLS(t *testing.T) {
	c := harness.Start(t, func(cfg *localcluster.Config) {
		harness.AskOnce(cfg)
		cfg.RESP, cfg.Secure = "127.0.0.1:0", true
	})
	token, err := os.ReadFile(c.Secured.Caller.TokenFile)
	if err != nil {
		t.Fatal(err)
	}
	env := []string{"SEQ_CA=" + c.Secured.Caller.Files.CA, "SEQ_TOKEN=" + strings.TrimSpace(string(token))}
	each(t, func(t *testing.T, run func(name string, env []string, kill func(), addrs ...string)) {
		run("secure", env, nil, c.Role(localcluster.RoleRouter)[0].RESP)
	})
}
