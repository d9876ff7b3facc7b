package secure

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/allocsvr"
	"github.com/seqsvr/seqsvr/internal/wire/auth"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	"github.com/seqsvr/seqsvr/router"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
	"github.com/seqsvr/seqsvr/tests/kit/textlog"
)

// site is a store, an AllocSvr and a router, each with a certificate of its own role, and
// one policy: a caller, a reader and an operator with a token and a certificate each.
type site struct {
	t      *testing.T
	ca     *auth.CA
	caDir  string
	policy string
	tokens map[auth.Role]auth.Token
	guards []*auth.Guard
	log    *textlog.Log

	store   *storesvr.Store
	alloc   *allocsvr.Server
	route   *router.Router
	secret  seq.Secret // of the AllocSvr's session
	restart func()     // of the store, on the same disk at the same address
}

// cluster is the id that harness.StoreConfig gives. The policy names another Set beside it; of the
// third cluster it knows nothing.
const (
	cluster  = "inside"
	otherSet = "beside"
	stranger = "elsewhere"
)

// grants of the caller: everything with all verbs, in one space only for raise.
const grants = "{space: '*', verbs: [take, read, raise], max_raise: 1000}, {namespace: '*', verbs: [take]}, {tag: '*', verbs: [take, read]}"

func startSite(t *testing.T, mode auth.Mode) *site {
	t.Helper()
	s := &site{t: t, caDir: t.TempDir(), policy: filepath.Join(t.TempDir(), "policy.yaml"), tokens: map[auth.Role]auth.Token{}, log: &textlog.Log{}}
	if err := auth.MakeCA(s.caDir, cluster, time.Hour); err != nil {
		t.Fatal(err)
	}
	var err error
	if s.ca, err = auth.OpenCA(s.caDir); err != nil {
		t.Fatal(err)
	}
	for _, r := range []auth.Role{auth.Caller, auth.Reader, auth.Operator} {
		s.tokens[r] = auth.NewToken()
	}
	s.write(auth.Caller, auth.Reader, auth.Operator)
	log := slog.New(slog.NewTextHandler(s.log, nil))

	sc := harness.StoreConfig(t, "store-1", []string{"store-1"}, seq.Space{Sections: 8, Step: 100})
	sc.TLS, sc.Guard, sc.Logger = s.daemon(auth.Store, mode), s.guard(mode, log), log
	run := func() (stop func()) {
		if s.store, err = storesvr.New(sc); err != nil {
			t.Fatal(err)
		}
		sc.Listen = s.store.Addr()
		return harness.Inside(t, "store", s.store.Run)
	}
	stop := run()
	s.restart = func() { stop(); stop = run() }
	ac := allocsvr.DefaultConfig()
	ac.Name, ac.Listen, ac.Stores, ac.Logger = "alloc-1", "127.0.0.1:0", []string{s.store.Addr()}, log
	ac.TLS, ac.Guard = s.daemon(auth.Alloc, mode), s.guard(mode, log)
	s.secret = seq.NewSecret(ac.Name)
	ac.Secret = s.secret
	if s.alloc, err = allocsvr.New(ac); err != nil {
		t.Fatal(err)
	}
	harness.Inside(t, "allocsvr", s.alloc.Run)
	s.route, err = router.New(router.Config{Listen: "127.0.0.1:0", HTTPListen: "127.0.0.1:0", Leaf: true, RESPListen: "127.0.0.1:0", ConsoleListen: "127.0.0.1:0", ClusterID: cluster,
		Allocs: []string{s.alloc.Addr()}, Logger: log, TLS: s.daemon(auth.Router, mode), Guard: s.guard(mode, log)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.route.Close() })
	harness.Inside(t, "router", s.route.Run)
	serves(t, s.alloc, s.route)
	return s
}

// write puts the principals of the roles, and no others, into the policy.
func (s *site) write(roles ...auth.Role) {
	s.t.Helper()
	var text strings.Builder
	text.WriteString("clusters: [" + cluster + ", " + otherSet + "]\nprincipals:\n")
	for _, r := range roles {
		fmt.Fprintf(&text, "  - {name: %s-1, role: %s, tokens: [%q]", r, r, s.tokens[r].Hash().Hex())
		if r == auth.Caller {
			text.WriteString(", grants: [" + grants + "]")
		}
		text.WriteString("}\n")
	}
	if err := os.WriteFile(s.policy, []byte(text.String()), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) guard(mode auth.Mode, log *slog.Logger) *auth.Guard {
	s.t.Helper()
	g, err := auth.New(auth.Config{Mode: mode, Cluster: cluster, PolicyFile: s.policy, Logger: log})
	if err != nil {
		s.t.Fatal(err)
	}
	s.guards = append(s.guards, g)
	return g
}

// reload is SIGHUP to all.
func (s *site) reload() {
	for _, g := range s.guards {
		g.Reload()
	}
}

// files signs a certificate.
func (s *site) files(r auth.Role, name string, valid time.Duration) rpc.TLSFiles {
	s.t.Helper()
	return s.filesOf(cluster, r, name, valid)
}

// filesOf signs a certificate of a cluster, as all Sets have one CA.
func (s *site) filesOf(of string, r auth.Role, name string, valid time.Duration) rpc.TLSFiles {
	s.t.Helper()
	dir := s.t.TempDir()
	f := rpc.TLSFiles{Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem"), CA: filepath.Join(s.caDir, auth.CAFile)}
	if _, err := s.ca.Issue(auth.Cert{Cluster: of, Role: r, Name: name, Hosts: []string{"127.0.0.1"}, Valid: valid}, f.Cert, f.Key); err != nil {
		s.t.Fatal(err)
	}
	return f
}

// daemon is the TLS of a daemon of a role.
func (s *site) daemon(r auth.Role, mode auth.Mode) *rpc.TLS {
	s.t.Helper()
	secured := mustTLS(s.t, s.files(r, string(r)+"-1", time.Hour))
	secured.Identify(cluster, mode == auth.Require)
	secured.TrustSets(func(cluster string) bool { return cluster == otherSet })
	return secured
}

// who is somebody who makes calls.
type who struct {
	name  string
	files rpc.TLSFiles
	token string // over TLS; may be empty
}

func (s *site) nobody() who {
	return who{name: "nobody", files: rpc.TLSFiles{CA: filepath.Join(s.caDir, auth.CAFile)}}
}

func (s *site) byCert(r auth.Role) who {
	return who{name: string(r), files: s.files(r, string(r)+"-1", time.Hour)}
}

// of is one of that role with a certificate of another cluster.
func (s *site) of(cluster string, r auth.Role) who {
	return who{name: string(r) + " of " + cluster, files: s.filesOf(cluster, r, string(r)+"-1", time.Hour)}
}

func (s *site) byToken(r auth.Role) who {
	w := s.nobody()
	w.name, w.token = string(r)+" with a token", s.tokens[r].Secret()
	return w
}

// dial connects as somebody.
func (s *site) dial(w who, addr string) *grpc.ClientConn {
	s.t.Helper()
	opts := mustTLS(s.t, w.files).DialOptions()
	if w.token != "" {
		file := filepath.Join(s.t.TempDir(), "token")
		if err := os.WriteFile(file, []byte(w.token), 0o600); err != nil {
			s.t.Fatal(err)
		}
		token, err := rpc.TokenFile(file)
		if err != nil {
			s.t.Fatal(err)
		}
		opts = append(opts, grpc.WithPerRPCCredentials(token))
	}
	conn, err := rpc.Dial(addr, opts...)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// noSecrets fails the test if the log shows a token or its hash.
func (s *site) noSecrets() {
	s.t.Helper()
	text := s.log.String()
	for r, token := range s.tokens {
		if strings.Contains(text, token.Secret()) || strings.Contains(text, token.Hash().Hex()) {
			s.t.Errorf("the log shows the token of the %s, or its hash", r)
		}
	}
}
