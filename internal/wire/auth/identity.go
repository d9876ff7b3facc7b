package auth

import (
	"crypto/x509"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/seqsvr/seqsvr/seq"
)

// Role is what an identity is allowed for.
type Role string

// The roles. Nodes have the first three, by their certificates alone.
const (
	Store    Role = "store"
	Alloc    Role = "alloc"
	Router   Role = "router"
	Caller   Role = "caller"   // takes numbers where it has a grant
	Operator Role = "operator" // everything but what nodes say to each other
	Reader   Role = "reader"   // looks at everything, changes nothing
)

// Roles are all of them.
var Roles = []Role{Store, Alloc, Router, Caller, Operator, Reader}

// ofPolicy tells whether the role is one that a policy file gives.
func (r Role) ofPolicy() bool { return r == Caller || r == Operator || r == Reader }

// Identity is whom a certificate is for. Its only form is spiffe://<cluster>/<role>/<name>.
type Identity struct {
	Cluster string
	Role    Role
	Name    string
}

const scheme = "spiffe://"

// URI is the identity as it stands in a certificate.
func (id Identity) URI() string { return scheme + id.Cluster + "/" + string(id.Role) + "/" + id.Name }

// Errors of identities. Each is also a seq.ErrUnauthenticated.
var (
	ErrNoURI        = fmt.Errorf("%w: certificate without a URI", seq.ErrUnauthenticated)
	ErrManyURIs     = fmt.Errorf("%w: certificate with several URIs", seq.ErrUnauthenticated)
	ErrBadURI       = fmt.Errorf("%w: malformed URI of a certificate", seq.ErrUnauthenticated)
	ErrOtherCluster = fmt.Errorf("%w: certificate of another cluster", seq.ErrUnauthenticated)
	ErrUnknownRole  = fmt.Errorf("%w: certificate with an unknown role", seq.ErrUnauthenticated)
	ErrExpired      = fmt.Errorf("%w: certificate has expired", seq.ErrUnauthenticated)
)

// ErrBadName is a cluster, role or name that cannot stand in an identity.
var ErrBadName = errors.New("bad identity")

// part is what a cluster and a name may be in a URI.
var part = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// Check is ErrBadName for an identity that no certificate can have.
func (id Identity) Check() error {
	switch {
	case !part.MatchString(id.Cluster):
		return fmt.Errorf("%w: cluster %q: expected 1 to 128 letters, digits, '.', '_' and '-', the first a letter or digit", ErrBadName, id.Cluster)
	case !slices.Contains(Roles, id.Role):
		return fmt.Errorf("%w: role %q: expected %s", ErrBadName, id.Role, roleNames())
	case !part.MatchString(id.Name):
		return fmt.Errorf("%w: name %q: expected 1 to 128 letters, digits, '.', '_' and '-', the first a letter or digit", ErrBadName, id.Name)
	}
	return nil
}

func roleNames() string {
	var all []string
	for _, r := range Roles {
		all = append(all, string(r))
	}
	return strings.Join(all, ", ")
}

// IdentityOf reads the identity of a verified certificate, which must be of the cluster.
// ErrNoURI, ErrManyURIs, ErrBadURI, ErrOtherCluster, ErrUnknownRole.
func IdentityOf(cert *x509.Certificate, cluster string) (Identity, error) {
	return identityOf(cert, cluster, nil)
}

// ParseIdentity reads a URI; errors as IdentityOf.
func ParseIdentity(uri, cluster string) (Identity, error) {
	return parseIdentity(uri, cluster, nil)
}

// identityOf returns the identity in a certificate of the cluster, or of another cluster that others
// reports true for. others may be nil.
func identityOf(cert *x509.Certificate, cluster string, others func(cluster string) bool) (Identity, error) {
	switch len(cert.URIs) {
	case 0:
		return Identity{}, fmt.Errorf("%w: subject %q: expected one URI, %s%s/<role>/<name>", ErrNoURI, cert.Subject, scheme, cluster)
	case 1:
		return parseIdentity(cert.URIs[0].String(), cluster, others)
	}
	return Identity{}, fmt.Errorf("%w: subject %q has %d: expected one, %s%s/<role>/<name>", ErrManyURIs, cert.Subject, len(cert.URIs), scheme, cluster)
}

func parseIdentity(uri, cluster string, others func(cluster string) bool) (Identity, error) {
	rest, ok := strings.CutPrefix(uri, scheme)
	parts := strings.Split(rest, "/")
	if !ok || len(parts) != 3 || !part.MatchString(parts[0]) || !part.MatchString(parts[2]) {
		return Identity{}, fmt.Errorf("%w: %.200q: expected %s%s/<role>/<name>", ErrBadURI, uri, scheme, cluster)
	}
	id := Identity{Cluster: parts[0], Role: Role(parts[1]), Name: parts[2]}
	switch {
	case id.Cluster != cluster && (others == nil || !others(id.Cluster)):
		return Identity{}, id.foreign(cluster)
	case !slices.Contains(Roles, id.Role):
		return Identity{}, fmt.Errorf("%w: %.200q: expected one of %s", ErrUnknownRole, uri, roleNames())
	}
	return id, nil
}

// foreign is ErrOtherCluster where only certificates of another cluster are taken.
func (id Identity) foreign(cluster string) error {
	return fmt.Errorf("%w: %q: expected cluster %q", ErrOtherCluster, id.URI(), cluster)
}

// Evidence is what the other side of a connection showed: read once a connection.
type Evidence struct {
	Identity Identity
	Until    time.Time // the end of its certificate
	Err      error     // why it is nobody's; nil and no Identity: no certificate was shown
}

// Look reads the evidence that the other side of a connection to a server of the cluster showed. chain is
// its certificate chain, verified by crypto/tls. The Guard decides at each call which clusters count.
func Look(chain []*x509.Certificate, cluster string) Evidence {
	if len(chain) == 0 {
		return Evidence{}
	}
	id, err := identityOf(chain[0], cluster, func(string) bool { return true })
	return Evidence{Identity: id, Until: chain[0].NotAfter, Err: err}
}

// VerifyServer returns ErrWrongServer unless the server's certificate has one of the roles, in the cluster
// or in another cluster that others reports true for. others may be nil.
func VerifyServer(chain []*x509.Certificate, cluster string, others func(cluster string) bool, roles ...Role) error {
	if len(chain) == 0 {
		return fmt.Errorf("%w: it showed no certificate", ErrWrongServer)
	}
	id, err := identityOf(chain[0], cluster, others)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrWrongServer, err)
	}
	if !slices.Contains(roles, id.Role) {
		return fmt.Errorf("%w: it is %s: expected role %v", ErrWrongServer, id.URI(), roles)
	}
	return nil
}

// ErrWrongServer is a server whose certificate is not of the role that was dialled.
var ErrWrongServer = errors.New("server is not the one dialled")
