package deploy

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/tests/kit/etcdtest"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
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
		if at := strings.LastIndex(part, "://"); at >= 0 { // a URL of etcd
			parts[k] = part[:at+3] + localize(hosts, part[at+3:], i, all)
			continue
		}
		host, port, ok := strings.Cut(part, ":")
		switch {
		case strings.HasPrefix(part, "/data"), strings.HasPrefix(part, "--data-dir=/data"):
			parts[k] = strings.Replace(part, "/data", i.dir, 1)
		case !ok:
		case host == "0.0.0.0":
			parts[k] = hosts.Addr(i.host) + ":" + port
		case host == "gossip", strings.HasPrefix(host, "gossip."):
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
	binary, args := "etcd", slices.Clone(i.args)
	if name, ours := strings.CutPrefix(i.image, "seqsvr/"); ours {
		binary = daemon(t, name)
	}
	if i.image == "seqsvr/seqctl" {
		args = append(args, "--etcd-min-version", anyEtcd)
	}
	for k, arg := range args {
		args[k] = localize(hosts, arg, i, all)
	}
	cmd := exec.Command(binary, args...)
	for key, value := range i.env {
		cmd.Env = append(cmd.Env, key+"="+localize(hosts, value, i, all))
	}
	if i.env["SEQ_ETCD"] != "" {
		cmd.Env = append(cmd.Env, "SEQ_ETCD_MIN_VERSION="+anyEtcd)
	}
	return cmd
}

// anyEtcd has an older etcd do than one that is to be deployed.
const anyEtcd = "3.4.0"

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
			out, err := cmd.CombinedOutput()
			for deadline := time.Now().Add(harness.Patience); err != nil && i.image == "seqsvr/seqctl" && time.Now().Before(deadline); { // etcd starts
				out, err = command(t, addrs, i, hosts).CombinedOutput()
			}
			if err != nil {
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
	composeServes(t, "compose.yaml")
}

func TestTheComposeFileOnEtcdBringsAClusterUp(t *testing.T) {
	if testing.Short() {
		t.Skip("starts eight processes")
	}
	etcdtest.Tool(t, "etcd")
	composeServes(t, "etcd.yaml")
}

func composeServes(t *testing.T, name string) {
	t.Helper()
	file := readCompose(t, name)
	var etcds, inits, rest []instance
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
		case i.image == etcdImage:
			etcds = append(etcds, i)
		case slices.Contains(i.args, "init"):
			inits = append(inits, i)
		default:
			rest = append(rest, i)
		}
	}
	serves(t, bring(t, slices.Concat(etcds, inits, rest)))
}

func TestTheManifestsBringAClusterUp(t *testing.T) {
	if testing.Short() {
		t.Skip("starts eight processes")
	}
	workloadsServe(t, base(t))
}

func TestTheManifestsOnEtcdBringAClusterUp(t *testing.T) {
	if testing.Short() {
		t.Skip("starts eight processes")
	}
	etcdtest.Tool(t, "etcd")
	workloadsServe(t, objects(t, "etcd", render(t, "etcd")))
}

func workloadsServe(t *testing.T, objects []any) {
	t.Helper()
	var etcds, inits, rest []instance
	for _, w := range workloads(objects) {
		for n := range w.replicas {
			host, dir := fmt.Sprintf("%s-%d", w.name, n), t.TempDir()
			for _, c := range w.pod.Spec.InitContainers {
				inits = append(inits, instance{processOf(host+" "+c.Name, host, c), host, dir})
			}
			for _, c := range w.pod.Spec.Containers {
				i := instance{processOf(host, host, c), host, dir}
				if i.image == etcdImage {
					etcds = append(etcds, i)
				} else {
					rest = append(rest, i)
				}
			}
		}
	}
	serves(t, bring(t, slices.Concat(etcds, inits, rest)))
}
