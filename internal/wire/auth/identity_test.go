package auth

import (
	"crypto/x509"
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/seq"
)

func TestACertificateIsOneIdentityOrAnErrorThatSaysWhatWasExpected(t *testing.T) {
	tests := []struct {
		uris []string
		want error
		text string
	}{
		{nil, ErrNoURI, "spiffe://c/<role>/<name>"},
		{[]string{"spiffe://c/alloc/a1", "spiffe://c/store/s1"}, ErrManyURIs, "has 2"},
		{[]string{"spiffe://c/alloc/a1", "spiffe://c/alloc/a1"}, ErrManyURIs, "has 2"},
		{[]string{"spiffe://d/alloc/a1"}, ErrOtherCluster, `expected cluster "c"`},
		{[]string{"spiffe://C/alloc/a1"}, ErrOtherCluster, `expected cluster "c"`},
		{[]string{"spiffe://c/root/a1"}, ErrUnknownRole, "expected one of store, alloc"},
		{[]string{"spiffe://c/Alloc/a1"}, ErrUnknownRole, "spiffe://c/Alloc/a1"},
		{[]string{"spiffe://c/alloc"}, ErrBadURI, "spiffe://c/alloc"},
		{[]string{"spiffe://c/alloc/"}, ErrBadURI, "<name>"},
		{[]string{"spiffe://c/alloc/a1/b"}, ErrBadURI, "a1/b"},
		{[]string{"spiffe:///alloc/a1"}, ErrBadURI, "<role>"},
		{[]string{"https://c/alloc/a1"}, ErrBadURI, "https"},
		{[]string{"spiffe://c/alloc/a1?x=y"}, ErrBadURI, "x=y"},
		{[]string{"spiffe://c/alloc/a1#x"}, ErrBadURI, "#x"},
		{[]string{"spiffe://user@c/alloc/a1"}, ErrBadURI, "user@c"},
		{[]string{"spiffe://c:1/alloc/a1"}, ErrBadURI, "c:1"},
		{[]string{"spiffe://c/alloc/a%2Fb"}, ErrBadURI, "a%2Fb"},
		{[]string{"spiffe://c/alloc/a\u00e9"}, ErrBadURI, ""},
		{[]string{"spiffe://c/alloc/" + strings.Repeat("a", 129)}, ErrBadURI, ""},
		{[]string{"spiffe://c/alloc/a1"}, nil, ""},
	}
	for _, test := range tests {
		cert := &x509.Certificate{}
		for _, text := range test.uris {
			u, err := url.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			cert.URIs = append(cert.URIs, u)
		}
		id, err := IdentityOf(cert, "c")
		if test.want == nil {
			if want := (Identity{"c", Alloc, "a1"}); err != nil || id != want || id.URI() != test.uris[0] {
				t.Errorf("%q: got %v, %v, want %v", test.uris, id, err, want)
			}
			continue
		}
		if !errors.Is(err, test.want) || !errors.Is(err, seq.ErrUnauthenticated) || !strings.Contains(err.Error(), test.text) || id != (Identity{}) {
			t.Errorf("%q: got %v, %v, want %v with %q", test.uris, id, err, test.want, test.text)
		}
	}
}

func TestAnIdentityThatNoCertificateCanHaveIsRefusedBeforeItIsSigned(t *testing.T) {
	for _, id := range []Identity{{"", Alloc, "a"}, {"a b", Alloc, "a"}, {"c", "", "a"}, {"c", "root", "a"}, {"c", Alloc, ""}, {"c", Alloc, "a/b"}, {"c", Alloc, "../x"}} {
		if err := id.Check(); !errors.Is(err, ErrBadName) {
			t.Errorf("%+v: got %v, want ErrBadName", id, err)
		}
	}
	if err := (Identity{"seq-1", Alloc, "a1.example"}).Check(); err != nil {
		t.Error(err)
	}
}

func TestAServerMustShowTheRoleThatWasDialled(t *testing.T) {
	u, _ := url.Parse("spiffe://c/caller/eve")
	chain := []*x509.Certificate{{URIs: []*url.URL{u}}}
	for _, test := range []struct {
		chain   []*x509.Certificate
		cluster string
		roles   []Role
		ok      bool
	}{
		{chain, "c", []Role{Store}, false},
		{chain, "c", []Role{Alloc, Router}, false},
		{chain, "c", nil, false},
		{chain, "d", []Role{Caller}, false},
		{nil, "c", []Role{Caller}, false},
		{chain, "c", []Role{Alloc, Caller}, true},
	} {
		if err := VerifyServer(test.chain, test.cluster, nil, test.roles...); errors.Is(err, ErrWrongServer) == test.ok {
			t.Errorf("%v of %s: got %v", test.roles, test.cluster, err)
		}
		ofC := func(cluster string) bool { return cluster == "c" }
		if err := VerifyServer(test.chain, "d", ofC, test.roles...); (err == nil) != (test.ok || test.cluster == "d") {
			t.Errorf("%v of a Set: got %v", test.roles, err)
		}
	}
}

func FuzzParseIdentity(f *testing.F) {
	f.Add("spiffe://c/alloc/a1")
	f.Add("spiffe://c/alloc/a1/../..")
	f.Fuzz(func(t *testing.T, uri string) {
		id, err := ParseIdentity(uri, "c")
		if err == nil && (id.Check() != nil || id.Cluster != "c" || id.URI() != uri) {
			t.Errorf("%q is %+v", uri, id)
		}
	})
}
