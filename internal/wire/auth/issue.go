package auth

import (
	"cmp"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Names of a CA's files in its directory.
const (
	CAFile    = "ca.pem"
	caKeyFile = "ca-key.pem"
)

// backdate is the start of a certificate before now, because other clocks may be behind the signer's clock.
const backdate = 5 * time.Minute

// ErrExists is a file that is never overwritten.
var ErrExists = errors.New("file exists")

// CA signs the certificates of one cluster, and of others that are Sets of the same system.
type CA struct {
	Cluster string
	cert    *x509.Certificate
	key     crypto.Signer
}

// MakeCA writes a new CA for a cluster into a directory: CAFile, which is public, and its
// key with mode 0600. ErrExists where one of them is, ErrBadName for the cluster.
func MakeCA(dir, cluster string, valid time.Duration) error {
	if err := (Identity{cluster, Operator, "any"}).Check(); err != nil {
		return err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: cluster + " seqsvr CA"},
		URIs:      []*url.URL{{Scheme: "spiffe", Host: cluster}},
		NotBefore: time.Now().Add(-backdate), NotAfter: time.Now().Add(valid),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}
	return writePair(filepath.Join(dir, CAFile), filepath.Join(dir, caKeyFile), der, key)
}

// OpenCA reads what MakeCA wrote. ErrOpenFile for a key that others may read.
func OpenCA(dir string) (*CA, error) {
	keyPath := filepath.Join(dir, caKeyFile)
	if err := CheckPrivate(keyPath); err != nil {
		return nil, fmt.Errorf("key of the CA: %w", err)
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, CAFile), keyPath)
	if err != nil {
		return nil, fmt.Errorf("CA in %s: %w", dir, err)
	}
	key, signs := pair.PrivateKey.(crypto.Signer)
	if !signs || !pair.Leaf.IsCA || len(pair.Leaf.URIs) != 1 || pair.Leaf.URIs[0].Scheme != "spiffe" {
		return nil, fmt.Errorf("CA in %s: %w: expected one that seqctl auth ca made, with the URI of its cluster", dir, ErrBadName)
	}
	return &CA{Cluster: pair.Leaf.URIs[0].Host, cert: pair.Leaf, key: key}, nil
}

// Cert is a certificate that a CA makes.
type Cert struct {
	Cluster string // if empty, the CA's cluster; otherwise a Set of the same system
	Role    Role
	Name    string
	Hosts   []string // names and IP addresses that it is dialled by; for servers
	Valid   time.Duration
}

// Issue signs a certificate with a new key. ErrBadName, ErrExists.
func (ca *CA) Issue(c Cert, certPath, keyPath string) (Identity, error) {
	id := Identity{cmp.Or(c.Cluster, ca.Cluster), c.Role, c.Name}
	if err := id.Check(); err != nil {
		return id, err
	}
	uri, err := url.Parse(id.URI())
	if err != nil {
		return id, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return id, err
	}
	template := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: string(c.Role) + " " + c.Name}, URIs: []*url.URL{uri},
		NotBefore: time.Now().Add(-backdate), NotAfter: time.Now().Add(c.Valid),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if !c.Role.ofPolicy() {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	if template.NotAfter.After(ca.cert.NotAfter) {
		template.NotAfter = ca.cert.NotAfter
	}
	for _, host := range c.Hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
			continue
		}
		template.DNSNames = append(template.DNSNames, strings.ToLower(host))
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca.cert, key.Public(), ca.key)
	if err != nil {
		return id, err
	}
	return id, writePair(certPath, keyPath, der, key)
}

func serial() *big.Int {
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		panic(err) // crypto/rand never fails
	}
	return n
}

// writePair writes the key first: a certificate that is there has its key.
func writePair(certPath, keyPath string, der []byte, key *ecdsa.PrivateKey) error {
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(certPath); err == nil {
		return fmt.Errorf("%w: %s: nothing is overwritten", ErrExists, certPath)
	}
	if err := WriteSecret(keyPath, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})); err != nil {
		return err
	}
	return writeNew(certPath, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644)
}

// WriteSecret makes a file with mode 0600. ErrExists where one is.
func WriteSecret(path string, text []byte) error { return writeNew(path, text, 0o600) }

func writeNew(path string, text []byte, mode os.FileMode) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w: %s: nothing is overwritten", ErrExists, path)
	}
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	return errors.Join(err, file.Sync(), file.Close())
}
