package deploy

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/tests/harness"
)

// instance is a container on a host of its own: here a loopback address, so that all
// may use the ports that the manifests name.
type instance struct {
	container
	host string // as others call it
	dir  string // what is mounted at /data
}

// localize writes a setting as this machine needs it: host names become addresses,
// everywhere becomes the instance's own one, and /data its directory.
func localize(hosts *harness.Hosts, value string, i instance, all []string) string {
	parts := strings.Split(value, ",")
	for k, part := range parts {
		host, port, ok := strings.Cut(part, ":")
		switch {
		case strings.HasPrefix(part, "/data"):
			parts[k] = i.dir + strings.TrimPrefix(part, "/data")
		case !ok:
		case host == "0.0.0.0":
			parts[k] = hosts.Addr(i.host) + ":" + port
		case host == "gossip":
			// A headless service is the addresses of all its pods.
			joins := make([]string, 0, len(all))
			for _, other := range all {
				joins = append(joins, hosts.Addr(other)+":"+port)
			}
			parts[k] = strings.Join(joins, ",")
		default:
			if addr := hosts.Addr(strings.SplitN(host, ".", 2)[0]); addr != "" {
				parts[k] = addr + ":" + port
			}
		}
	}
	return strings.Join(parts, ",")
}

func command(t *testing.T, hosts *harness.Hosts, i instance, all []string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(daemon(t, strings.TrimPrefix(i.image, "seqsvr/")), i.args...)
	for key, value := range i.env {
		cmd.Env = append(cmd.Env, key+"="+localize(hosts, value, i, all))
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
	addrs := harness.NewHosts(t, hosts...)
	var running []*harness.Service
	for _, i := range instances {
		cmd := command(t, addrs, i, hosts)
		if slices.Contains(i.args, "init") {
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%s: %v\n%s", i.where, err, out)
			}
			continue
		}
		running = append(running, harness.Serve(t, i.where, cmd))
		if i.image == "seqsvr/router" && router == "" {
			router = localize(addrs, "0.0.0.0:7400", i, nil)
		}
	}
	t.Cleanup(func() { // all at once, so that nobody waits for one that is gone
		for _, s := range running {
			s.Tell()
		}
	})
	return router
}

// serves waits until the cluster hands out numbers and calls itself healthy.
func serves(t *testing.T, router string) {
	t.Helper()
	ctl := func(args ...string) ([]byte, error) {
		cmd := exec.Command(daemon(t, "seqctl"), append(args, "--addr", router)...)
		return cmd.CombinedOutput()
	}
	deadline := time.Now().Add(harness.Patience)
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
	file := readCompose(t, "compose.yaml")
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
