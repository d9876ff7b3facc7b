package localcluster

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/internal/wire/auth"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	"github.com/seqsvr/seqsvr/membership"
)

// Validity of the certificates of a Secured. Each start issues new ones.
const (
	caValid   = 10 * 365 * 24 * time.Hour
	certValid = 365 * 24 * time.Hour
)

// Secured are the files of a cluster in which every caller shows a certificate or token: its CA, which
// stays, a certificate of each node, a policy, and what a caller and an operator show.
type Secured struct {
	Caller, Operator Person
	GossipKeys       string // file

	cluster, dir, policy string
	ca                   *auth.CA
}

// Person is one who makes calls.
type Person struct {
	Role      auth.Role
	Name      string
	Files     rpc.TLSFiles
	TokenFile string
}

// secure makes what is not there yet. A further Set has the CA, policy and key of gossip of root,
// and a certificate with its own cluster id for each node.
func secure(l, root *Layout) (*Secured, error) {
	if root != nil {
		s := *root.Secured
		s.cluster = l.ClusterID
		return &s, s.certifyAll(l.Nodes)
	}
	dir := filepath.Join(l.Dir, "secure")
	s := &Secured{cluster: l.ClusterID, dir: dir, policy: filepath.Join(dir, "policy.yaml"), GossipKeys: filepath.Join(dir, "gossip.keys")}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	err := auth.MakeCA(dir, l.ClusterID, caValid)
	if err != nil && !errors.Is(err, auth.ErrExists) {
		return nil, err
	}
	if s.ca, err = auth.OpenCA(dir); err != nil {
		return nil, err
	}
	if err := s.keys(); err != nil {
		return nil, err
	}
	if err := s.certifyAll(l.Nodes); err != nil {
		return nil, err
	}
	grants := []string{"*:take,read", "namespace/*:take", "tag/*:take,read"}
	if s.Caller, err = s.person(auth.Caller, "app", grants...); err != nil {
		return nil, err
	}
	s.Operator, err = s.person(auth.Operator, "ops")
	return s, err
}

// trust has the policy name all clusters as Sets of one system.
func (s *Secured) trust(l *Layout) error {
	if s == nil || len(l.Others) == 0 {
		return nil
	}
	ids := []string{l.ClusterID}
	for _, other := range l.Others {
		ids = append(ids, other.ClusterID)
	}
	return auth.AddClusters(s.policy, ids...)
}

// keys makes the gossip's key.
func (s *Secured) keys() error {
	key, err := membership.NewKey(32)
	if err == nil {
		err = auth.WriteSecret(s.GossipKeys, []byte(key+"\n"))
	}
	if errors.Is(err, auth.ErrExists) {
		return nil
	}
	return err
}

// files of a role and name, below which no two are the same.
func (s *Secured) files(role auth.Role, name string) rpc.TLSFiles {
	base := filepath.Join(s.dir, string(role)+"-"+name)
	return rpc.TLSFiles{Cert: base + ".pem", Key: base + "-key.pem", CA: filepath.Join(s.dir, auth.CAFile)}
}

// node are the files of a node.
func (s *Secured) node(n Node) rpc.TLSFiles { return s.files(auth.Role(n.Role), n.Name) }

func (s *Secured) certifyAll(nodes []Node) error {
	for _, n := range nodes {
		if err := s.certify(n); err != nil {
			return err
		}
	}
	return nil
}

// certify gives a node a new certificate, for what it is dialled by now.
func (s *Secured) certify(n Node) error {
	hosts := []string{"localhost", "127.0.0.1", "::1"}
	for _, addr := range []string{n.Addr, n.HTTP, n.RESP} {
		if host, _, err := net.SplitHostPort(addr); err == nil && host != "" && !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	return s.issue(auth.Cert{Cluster: s.cluster, Role: auth.Role(n.Role), Name: n.Name, Hosts: hosts, Valid: certValid})
}

func (s *Secured) issue(c auth.Cert) error {
	f := s.files(c.Role, c.Name)
	for _, old := range []string{f.Cert, f.Key} {
		if err := os.Remove(old); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	_, err := s.ca.Issue(c, f.Cert, f.Key)
	return err
}

// person gives one a certificate and, unless there is one, a token.
func (s *Secured) person(role auth.Role, name string, grants ...string) (Person, error) {
	p := Person{role, name, s.files(role, name), filepath.Join(s.dir, name+".token")}
	if err := s.issue(auth.Cert{Role: role, Name: name, Valid: certValid}); err != nil {
		return p, err
	}
	if _, err := os.Lstat(p.TokenFile); err == nil {
		return p, nil // the policy may have lost it on purpose
	}
	token := auth.NewToken()
	err := auth.AddToken(s.policy, auth.Entry{Name: name, Role: role, Token: token.Hash(), Grants: grants})
	if err != nil {
		return p, err
	}
	return p, auth.WriteSecret(p.TokenFile, []byte(token.Secret()+"\n"))
}

// arguments of a daemon.
func (s *Secured) arguments(n Node) []string {
	if s == nil {
		return nil
	}
	f := s.node(n)
	return []string{"--tls-cert", f.Cert, "--tls-key", f.Key, "--tls-ca", f.CA,
		"--auth", string(auth.Require), "--policy", s.policy, "--gossip-keys-file", s.GossipKeys}
}

// Open is what arguments say, for a daemon inside this process. All nil for nil.
func (s *Secured) Open(n Node, log *slog.Logger) (secured *rpc.TLS, guard *auth.Guard, keys *membership.Keys, err error) {
	if s == nil {
		return nil, nil, nil, nil
	}
	if secured, err = rpc.NewTLS(s.node(n), log); err != nil {
		return nil, nil, nil, err
	}
	secured.Identify(s.cluster, true)
	if guard, err = auth.New(auth.Config{Mode: auth.Require, Cluster: s.cluster, PolicyFile: s.policy, Logger: log}); err != nil {
		return nil, nil, nil, err
	}
	secured.TrustSets(guard.Takes)
	keys, err = membership.LoadKeys(s.GossipKeys)
	return secured, guard, keys, err
}

// dial returns the options by which an operator connects to nodes of a role in any Set. For nil the
// connection is plaintext.
func (s *Secured) dial(role Role) ([]grpc.DialOption, error) {
	if s == nil {
		return nil, nil
	}
	secured, err := rpc.NewTLS(s.Operator.Files, nil)
	if err != nil {
		return nil, fmt.Errorf("certificate of the operator: %w", err)
	}
	policy, err := auth.ReadPolicy(s.policy)
	if err != nil {
		return nil, err
	}
	secured.Identify(s.cluster, true)
	secured.TrustSets(func(cluster string) bool { return slices.Contains(policy.Clusters, cluster) })
	return secured.DialSets(auth.Role(role)), nil
}
