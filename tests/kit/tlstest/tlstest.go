// Package tlstest makes certificates for tests: an authority, and what it signs, as PEM
// files. Nothing but tests may import it.
package tlstest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/internal/wire/rpc"
)

// Authority signs certificates.
type Authority struct {
	t    testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	n    int64
}

// New makes an authority of that name.
func New(t testing.TB, name string) *Authority {
	a := &Authority{t: t}
	a.cert, a.key = a.make(&x509.Certificate{Subject: pkix.Name{CommonName: name}, IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}, nil)
	return a
}

func (a *Authority) make(template *x509.Certificate, by *Authority) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	a.n++
	template.SerialNumber = big.NewInt(a.n)
	if template.NotBefore.IsZero() {
		template.NotBefore = time.Now().Add(-time.Hour)
	}
	if template.NotAfter.IsZero() {
		template.NotAfter = time.Now().Add(time.Hour)
	}
	parent, signer := template, key
	if by != nil {
		parent, signer = by.cert, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert, key
}

// Issue writes a certificate for 127.0.0.1 and this authority as the CA into dir. The
// modification times are moved on by age, as a later replacement would. Each change may
// spoil the certificate before it is signed.
func (a *Authority) Issue(dir, name string, age time.Duration, changes ...func(*x509.Certificate)) rpc.TLSFiles {
	a.t.Helper()
	template := &x509.Certificate{Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	for _, change := range changes {
		change(template)
	}
	cert, key := a.make(template, a)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	f := rpc.TLSFiles{Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem"), CA: filepath.Join(dir, "ca.pem")}
	for path, block := range map[string]*pem.Block{
		f.Cert: {Type: "CERTIFICATE", Bytes: cert.Raw}, f.Key: {Type: "PRIVATE KEY", Bytes: private}, f.CA: {Type: "CERTIFICATE", Bytes: a.cert.Raw},
	} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			a.t.Fatal(err)
		}
		when := time.Now().Add(age)
		if err := os.Chtimes(path, when, when); err != nil {
			a.t.Fatal(err)
		}
	}
	return f
}

// Open reads the files of a certificate.
func Open(t testing.TB, files rpc.TLSFiles) *rpc.TLS {
	t.Helper()
	secured, err := rpc.NewTLS(files, nil)
	if err != nil {
		t.Fatal(err)
	}
	return secured
}

// As returns a change of a certificate that gives it identities.
func As(t testing.TB, uris ...string) func(*x509.Certificate) {
	return func(c *x509.Certificate) {
		for _, text := range uris {
			u, err := url.Parse(text)
			if err != nil {
				t.Error(err)
			}
			c.URIs = append(c.URIs, u)
		}
	}
}
