package processes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

// taker takes numbers of one UID without a pause, and keeps what went wrong.
type taker struct {
	stop context.CancelFunc
	end  chan error
}

func startTaker(t *testing.T, uid seq.UID, cfg client.Config) *taker {
	t.Helper()
	cfg.AllowUnordered = true
	c, err := client.New(harness.Within(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	k := &taker{stop, make(chan error, 1)}
	begun := make(chan struct{}, 1)
	go func() {
		defer c.Close()
		var last seq.Seq
		for {
			got, err := c.Next(ctx, client.Key{UID: uid})
			switch {
			case ctx.Err() != nil:
				k.end <- nil
				return
			case err == nil && got <= last:
				err = fmt.Errorf("%d after %d", got, last)
			}
			if err != nil {
				k.end <- err
				return
			}
			last = got
			select {
			case begun <- struct{}{}:
			default:
			}
		}
	}()
	t.Cleanup(stop)
	select {
	case <-begun:
	case err := <-k.end:
		t.Fatal(err)
	}
	return k
}

// stopped is what went wrong.
func (k *taker) stopped() error {
	k.stop()
	return <-k.end
}

// firstBlock are the commands of docs/security.md.
func firstBlock(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "```sh\n")
	block, _, ended := strings.Cut(rest, "```")
	if !found || !ended {
		t.Fatal("docs/security.md has no commands")
	}
	return block
}

func TestAClusterGoesFromPlaintextToRolesAsWrittenWithoutAnOutage(t *testing.T) {
	dir, settings := t.TempDir(), t.TempDir()
	put := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(settings, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	id := ""
	c := harness.Start(t, func(cfg *localcluster.Config) { // leases as short as by default: a lost one is no outage
		cfg.ClusterID, cfg.Allocs, cfg.Sections = "shop", 2, 64
		id = cfg.ClusterID
		cfg.Wrap = func(name string, argv []string) []string {
			put(name, "pprof: false\n")
			return append(argv, "--config", filepath.Join(settings, name))
		}
	})
	sh := func(script string) {
		t.Helper()
		cmd := exec.CommandContext(harness.Within(t), "sh", "-e", "-c", script)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "PATH="+harness.Binaries(t)+":"+os.Getenv("PATH"))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", script, err, out)
		}
	}
	sh(firstBlock(t))
	inDir := func(name string) string { return filepath.Join(dir, name) }
	role := map[localcluster.Role]string{localcluster.RoleStore: "store", localcluster.RoleAlloc: "alloc", localcluster.RoleRouter: "router"}
	order := []localcluster.Role{localcluster.RoleStore, localcluster.RoleAlloc, localcluster.RoleRouter}
	for _, r := range order {
		for _, p := range c.Processes(r) {
			if _, err := os.Stat(inDir(role[r] + "-" + p.Name + ".pem")); err != nil {
				sh("seqctl auth cert --ca ca --role " + role[r] + " --name " + p.Name + " --hosts 127.0.0.1")
			}
		}
	}
	status := func(env ...string) bool {
		return harness.Run(t, harness.Command(harness.Within(t), t, env, "seqctl", "status", "--addr", c.GRPC())).Code == 0
	}
	secured := []string{"SEQ_TLS_CA=" + inDir("ca/ca.pem"), "SEQ_TLS_CLUSTER=" + id, "SEQ_TOKEN_FILE=" + inDir("ops.token")}
	round := func(plaintext, mode string, ready func() bool) {
		t.Helper()
		for _, r := range order {
			for _, p := range c.Processes(r) {
				base := inDir(role[r] + "-" + p.Name)
				put(p.Name, fmt.Sprintf("cluster: %s\ntls-cert: %s.pem\ntls-key: %s-key.pem\ntls-ca: %s\npolicy: %s\ntls-plaintext: %q\nauth: %s\n",
					id, base, base, inDir("ca/ca.pem"), inDir("policy.yaml"), plaintext, mode))
				if err := p.Restart(harness.Within(t)); err != nil {
					t.Fatal(err)
				}
				harness.Until(t, "the cluster is healthy after "+p.Name, ready)
			}
		}
	}
	plain := func() bool { return status() }
	tls := func() bool { return status(secured...) }

	old := startTaker(t, 1, client.Config{Addrs: c.Addrs(localcluster.RoleAlloc)})
	round("dial", "accept", plain)
	round("accept", "accept", tls)
	fresh := startTaker(t, 2, client.Config{Addrs: c.Addrs(localcluster.RoleAlloc), ClusterID: id, TokenFile: inDir("chat.token"),
		TLS: &client.TLS{CAFile: inDir("ca/ca.pem"), VerifyRole: true}})
	byRouter := startTaker(t, 3, client.Config{Addrs: c.Addrs(localcluster.RoleRouter), Indirect: true, TokenFile: inDir("chat.token"),
		TLS: &client.TLS{CAFile: inDir("ca/ca.pem")}})
	if err := old.stopped(); err != nil {
		t.Errorf("a caller in plaintext: %v", err)
	}
	if err := byRouter.stopped(); err != nil { // there is one router, which is restarted
		t.Errorf("a caller of the router: %v", err)
	}
	round("no", "require", tls)
	if err := fresh.stopped(); err != nil {
		t.Errorf("a caller with a token: %v", err)
	}

	if status() || status(secured[:2]...) {
		t.Error("nobody is told the status")
	}
	// Revoked everywhere, without a signal.
	sh("seqctl auth token --name other --grant user:take --policy fresh.yaml --out other.token && mv fresh.yaml policy.yaml")
	harness.Until(t, "the token is revoked", func() bool {
		k, err := client.New(harness.Within(t), client.Config{Addrs: c.Addrs(localcluster.RoleRouter), Indirect: true, Lazy: true,
			TokenFile: inDir("chat.token"), TLS: &client.TLS{CAFile: inDir("ca/ca.pem")}})
		if err != nil {
			t.Fatal(err)
		}
		defer k.Close()
		_, err = k.Next(harness.Within(t), client.Key{UID: 2})
		return errors.Is(err, seq.ErrUnauthenticated)
	})
}
