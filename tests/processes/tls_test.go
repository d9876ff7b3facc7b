package processes

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
	"github.com/seqsvr/seqsvr/tests/kit/tlstest"
)

func tlsEnv(f rpc.TLSFiles) []string {
	env := []string{"SEQ_TLS_CA=" + f.CA}
	if f.Cert != "" {
		env = append(env, "SEQ_TLS_CERT="+f.Cert, "SEQ_TLS_KEY="+f.Key)
	}
	return env
}

// verbs is a command line for each way in which seqctl reaches a cluster.
func verbs(t *testing.T, c *localcluster.Cluster) map[string][]string {
	stores := strings.Join(c.Addrs(localcluster.RoleStore), ",")
	return map[string][]string{
		"next":                        {"next", "42"},
		"current":                     {"current", "42"},
		"raise":                       {"raise", "42", "5"},
		"status":                      {"status"},
		"members":                     {"members"},
		"route":                       {"route", "42"},
		"leases":                      {"leases"},
		"snowflake gen":               {"snowflake", "gen"},
		"segment list":                {"segment", "list"},
		"namespace list":              {"namespace", "list"},
		"bench":                       {"bench", "--callers", "4", "--duration", "200ms", "--warmup", "0s"},
		"store status":                {"store", "status"},
		"store status, by the stores": {"store", "status", "--stores", stores},
		"store backup":                {"store", "backup", "--out", filepath.Join(t.TempDir(), "backup")},
	}
}

// operators are the verbs that stores or allocators answer, who let in only those with a
// certificate of their CA. A router lets callers in without one.
var operators = []string{"status", "members", "leases", "store status", "store status, by the stores", "store backup"}

func TestEveryVerbSpeaksToAClusterUnderMutualTLSAndSaysWhyItCannot(t *testing.T) {
	good, bad := tlstest.New(t, "good"), tlstest.New(t, "bad")
	files, other := good.Issue(t.TempDir(), "cluster", 0), bad.Issue(t.TempDir(), "other", 0)
	known := tlsEnv(files)
	c := harness.Launch(t, func(cfg *localcluster.Config) {
		cfg.Env, cfg.Allocs = harness.Command(t.Context(), t, known, "seqctl").Env, 2
	})
	run := func(env []string, args ...string) harness.Ended {
		args = append(args, "--addr", c.GRPC(), "--timeout", "20s")
		return harness.Run(t, harness.Command(harness.Within(t), t, env, "seqctl", args...))
	}
	harness.Until(t, "the cluster is healthy", func() bool { return run(known, "status").Code == 0 })
	// storesvr init --learner --join asks the stores under TLS, too.
	learner, err := c.AddStore()
	if err != nil {
		t.Fatal(err)
	}
	if err := learner.Start(); err != nil {
		t.Fatal(err)
	}
	if err := learner.WaitListening(harness.Within(t)); err != nil {
		t.Fatal(err)
	}
	add := []string{"store", "add", learner.Addr, "--addr", c.GRPC()}
	harness.Run(t, harness.Command(harness.Within(t), t, known, "seqctl", add...)).Want(t, 0)
	harness.Until(t, "the cluster is healthy with it", func() bool { return run(known, "status").Code == 0 })
	for what, args := range verbs(t, c) {
		// On a busy machine a node is taken for dead at times, and the status says so.
		harness.Until(t, what+" to speak to the cluster", func() bool {
			got := run(known, args...)
			if got.Code != 0 {
				t.Logf("%s: exit %d: %s%s", what, got.Code, got.Stdout, got.Stderr)
			}
			return got.Code == 0
		})
	}
	for what, args := range verbs(t, c) {
		if got := run(nil, args...); got.Code != 1 || !strings.Contains(got.Stderr, "--tls-ca") {
			t.Errorf("without TLS, %s: exit %d: %s%s", what, got.Code, got.Stdout, got.Stderr)
		}
		foreign := []string{"SEQ_TLS_CA=" + other.CA, "SEQ_TLS_CERT=" + files.Cert, "SEQ_TLS_KEY=" + files.Key}
		if got := run(foreign, args...); got.Code != 1 || !strings.Contains(got.Stderr, "--tls-ca") {
			t.Errorf("with another CA, %s: exit %d: %s%s", what, got.Code, got.Stdout, got.Stderr)
		}
		if !slices.Contains(operators, what) {
			continue
		}
		if got := run(tlsEnv(rpc.TLSFiles{CA: files.CA}), args...); got.Code != 1 || !strings.Contains(got.Stdout+got.Stderr, "--tls-cert") {
			t.Errorf("without a certificate, %s: exit %d: %s%s", what, got.Code, got.Stdout, got.Stderr)
		}
	}
}
