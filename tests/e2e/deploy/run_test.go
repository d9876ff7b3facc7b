package deploy

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// instance is a container on a host of its own: here a loopback address, so that all
// may use the ports that the manifests name.
type instance struct {
	container
	host string // as others call it
	dir  string // what is mounted at /data
}

// network gives each host a loopback address, in a subnet that is unlikely to be in
// use by another test of this machine.
type network struct {
	prefix string
	addrs  map[string]string // host -> address
}

func newNetwork(hosts []string) network {
	n := network{prefix: fmt.Sprintf("127.%d.%d.", 64+rand.N(128), rand.N(256)), addrs: map[string]string{}}
	for _, host := range hosts {
		if _, ok := n.addrs[host]; !ok {
			n.addrs[host] = fmt.Sprintf("%s%d", n.prefix, 1+len(n.addrs))
		}
	}
	return n
}

// localize writes a setting as this machine needs it: host names become addresses,
// everywhere becomes the instance's own one, and /data its directory.
func (n network) localize(value string, i instance, all []string) string {
	parts := strings.Split(value, ",")
	for k, part := range parts {
		host, port, ok := strings.Cut(part, ":")
		switch {
		case strings.HasPrefix(part, "/data"):
			parts[k] = i.dir + strings.TrimPrefix(part, "/data")
		case !ok:
		case host == "0.0.0.0":
			parts[k] = n.addrs[i.host] + ":" + port
		case host == "gossip":
			// A headless service is the addresses of all its pods.
			joins := make([]string, 0, len(all))
			for _, other := range all {
				joins = append(joins, n.addrs[other]+":"+port)
			}
			parts[k] = strings.Join(joins, ",")
		default:
			if addr, known := n.addrs[strings.SplitN(host, ".", 2)[0]]; known {
				parts[k] = addr + ":" + port
			}
		}
	}
	return strings.Join(parts, ",")
}

func (n network) command(ctx context.Context, t *testing.T, i instance, all []string) *exec.Cmd {
	t.Helper()
	name := strings.TrimPrefix(i.image, "seqsvr/")
	cmd := exec.CommandContext(ctx, daemon(t, name), i.args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 20 * time.Second
	for key, value := range i.env {
		cmd.Env = append(cmd.Env, key+"="+n.localize(value, i, all))
	}
	return cmd
}

// bring starts a deployment as processes, and stops it with the test. It returns the
// address of a router.
func bring(t *testing.T, instances []instance) (router string) {
	t.Helper()
	var hosts []string
	for _, i := range instances {
		if !slices.Contains(hosts, i.host) {
			hosts = append(hosts, i.host)
		}
	}
	net := newNetwork(hosts)
	ctx, cancel := context.WithCancel(context.Background())
	var running []*exec.Cmd
	t.Cleanup(func() {
		cancel()
		for _, cmd := range running {
			cmd.Wait()
		}
	})
	for _, i := range instances {
		cmd := net.command(ctx, t, i, hosts)
		if slices.Contains(i.args, "init") {
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%s: %v\n%s", i.where, err, out)
			}
			continue
		}
		log, err := os.Create(filepath.Join(t.TempDir(), i.host+".log"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if text, err := os.ReadFile(log.Name()); t.Failed() && err == nil {
				t.Logf("%s:\n%s", i.where, tail(string(text), 20))
			}
		})
		cmd.Stdout, cmd.Stderr = log, log
		if err := cmd.Start(); err != nil {
			t.Fatalf("%s: %v", i.where, err)
		}
		log.Close()
		running = append(running, cmd)
		if i.image == "seqsvr/router" && router == "" {
			router = net.localize("0.0.0.0:7400", i, nil)
		}
	}
	return router
}

func tail(text string, lines int) string {
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// serves waits until the cluster hands out numbers and calls itself healthy.
func serves(t *testing.T, router string) {
	t.Helper()
	ctl := func(args ...string) ([]byte, error) {
		cmd := exec.Command(daemon(t, "seqctl"), append(args, "--addr", router)...)
		return cmd.CombinedOutput()
	}
	deadline := time.Now().Add(90 * time.Second)
	for _, args := range [][]string{{"next", "42"}, {"status"}, {"snowflake", "gen"}} {
		for {
			out, err := ctl(args...)
			if err == nil {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("seqctl %s: %v\n%s", strings.Join(args, " "), err, out)
			}
		}
	}
}

func TestTheComposeFileBringsAClusterUp(t *testing.T) {
	if testing.Short() {
		t.Skip("starts eight processes")
	}
	file := readCompose(t)
	var inits, rest []instance
	dirs := map[string]string{}
	for name, service := range file.Services {
		i := instance{container: service.container(name), host: name}
		if len(service.Volumes) > 0 {
			volume, _, _ := strings.Cut(service.Volumes[0], ":")
			if dirs[volume] == "" {
				dirs[volume] = t.TempDir()
			}
			i.dir = dirs[volume]
		}
		switch {
		case len(service.Profiles) > 0:
		case slices.Contains(i.args, "init"):
			inits = append(inits, i)
		default:
			rest = append(rest, i)
		}
	}
	serves(t, bring(t, append(inits, rest...)))
}

func TestTheManifestsBringAClusterUp(t *testing.T) {
	if testing.Short() {
		t.Skip("starts eight processes")
	}
	var inits, rest []instance
	for _, w := range workloads(base(t)) {
		for n := range w.replicas {
			host, dir := fmt.Sprintf("%s-%d", w.name, n), t.TempDir()
			for _, c := range w.pod.Spec.InitContainers {
				inits = append(inits, instance{processOf(host+" "+c.Name, host, c), host, dir})
			}
			for _, c := range w.pod.Spec.Containers {
				rest = append(rest, instance{processOf(host, host, c), host, dir})
			}
		}
	}
	serves(t, bring(t, append(inits, rest...)))
}
