package documents_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/seqsvr/seqsvr/allocsvr/documents"
	"github.com/seqsvr/seqsvr/seq"
)

// hashed are spaces: user hashes under a secret, old by SHA-256.
var hashed = []seq.Space{{Name: "user", Sections: 2, KeyHash: seq.SecretKeys}, {Name: "old", Sections: 2}}

// keys are Keys of a new session. If lost is true, the session does not learn the outcome of its first swap,
// which was applied or not.
func (c *cluster) keys(lost, applied bool) *documents.Keys {
	c.t.Helper()
	return documents.NewKeys(c.t.Context(), c.stores.Unsure(c.t, lost, applied), seq.NewSession(), c.stores.Mapping)
}

func (c *cluster) space(name string) *seq.Space {
	c.t.Helper()
	s, err := c.stores.Mapping.Space(name)
	if err != nil {
		c.t.Fatal(err)
	}
	return s
}

func TestAllThatBeginAtOnceGoByOneSecret(t *testing.T) {
	c := newCluster(t, hashed...)
	var mu sync.Mutex // guards marks
	marks := map[uint64]bool{}
	var wg sync.WaitGroup
	for i := range 8 {
		doc := c.keys(i%2 == 0, i%4 == 0)
		wg.Go(func() {
			e, err := doc.Begin(t.Context())
			if err = errors.Join(err, e.Check(c.stores.Mapping)); err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			marks[e.Hashers()["user"].Mark()] = true
			if e.Hashers()["old"].Mark() != 0 {
				t.Error("a space by SHA-256 got a secret")
			}
		})
	}
	wg.Wait()
	if len(marks) != 1 || marks[0] {
		t.Errorf("%d secrets", len(marks))
	}
}

func TestARehashIsOneChangeWhateverBecomesOfItsAnswer(t *testing.T) {
	for _, lost := range []bool{false, true} {
		for _, applied := range []bool{false, true} {
			c := newCluster(t, hashed...)
			first, err := c.keys(false, false).Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			made, err := c.keys(lost, applied).Rehash(t.Context(), c.space("old"), "")
			if err != nil || made.Version != 1 || made.Secret.IsZero() {
				t.Errorf("lost %v, applied %v: got version %d, %v", lost, applied, made.Version, err)
			}
			now, err := c.keys(false, false).Begin(t.Context())
			if err != nil || now["old"] != made || now["user"] != first["user"] {
				t.Errorf("lost %v, applied %v: the stores have something else, %v", lost, applied, err)
			}
		}
	}
}

func TestEachRehashDrawsAnotherSecretAndTheWayBackHasNone(t *testing.T) {
	c := newCluster(t, hashed...)
	d := c.keys(false, false)
	before, err := d.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	again, err := d.Rehash(t.Context(), c.space("user"), seq.SecretKeys)
	if err != nil || again.Secret == before["user"].Secret || again.Version != 2 {
		t.Errorf("got version %d, %v", again.Version, err)
	}
	back, err := d.Rehash(t.Context(), c.space("user"), seq.SHA256Keys)
	if want := (documents.KeyEntry{Hash: seq.SHA256Keys, Version: 3}); err != nil || back != want {
		t.Errorf("got version %d with %s, %v", back.Version, back.Hash, err)
	}
	if e, err := d.Begin(t.Context()); err != nil || e["user"] != back {
		t.Errorf("a start after it: %v", err)
	}
	if _, err := d.Rehash(t.Context(), c.space("user"), "md5"); !errors.Is(err, seq.ErrBadMapping) {
		t.Errorf("got %v", err)
	}
}

// The string keys of an exact space would begin at 1 again: nothing says where they stood.
func TestAnExactSpaceIsNotRehashed(t *testing.T) {
	c := newCluster(t, seq.Space{Name: "orders", Sections: 2, Mode: seq.Exact, KeyHash: seq.SecretKeys})
	d := c.keys(false, false)
	before, err := d.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, hash := range []seq.KeyHash{"", seq.SecretKeys, seq.SHA256Keys} {
		if _, err := d.Rehash(t.Context(), c.space("orders"), hash); !errors.Is(err, seq.ErrUnsafeChange) || !strings.Contains(err.Error(), "orders") {
			t.Errorf("%q: got %v, want %v", hash, err, seq.ErrUnsafeChange)
		}
	}
	if after, err := d.Load(t.Context()); err != nil || after["orders"] != before["orders"] {
		t.Errorf("the secret was changed: %v", err)
	}
}

func TestASpaceIsHashedAsInAnotherSetUnlessItIsHashedAlready(t *testing.T) {
	root, other := newCluster(t, hashed...), newCluster(t, hashed...)
	was, err := root.keys(false, false).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	shared, err := root.keys(false, false).Share(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, applied := range []bool{true, false} {
		if err := other.keys(true, applied).AdoptSpace(t.Context(), shared, "user"); err != nil {
			t.Fatal(err)
		}
	}
	if err := other.keys(false, false).AdoptSpace(t.Context(), shared, "old"); err != nil {
		t.Fatal(err)
	}
	got, err := other.keys(false, false).Begin(t.Context())
	if err != nil || len(got) != 1 || got["user"] != was["user"] {
		t.Errorf("got %d entries, another secret: %v, %v", len(got), got["user"] != was["user"], err)
	}
	own := newCluster(t, hashed...)
	had, err := own.keys(false, false).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := own.keys(false, false).AdoptSpace(t.Context(), shared, "user"); err != nil {
		t.Fatal(err)
	}
	if got, err := own.keys(false, false).Load(t.Context()); err != nil || got["user"] != had["user"] {
		t.Errorf("what was counted under a secret is hashed under another: %v", err)
	}
}

func TestAMissingSecretAndADocumentOfOtherBuildsAreRefused(t *testing.T) {
	c := newCluster(t, hashed...)
	if err := (documents.KeyEntries{}).Check(c.stores.Mapping); !errors.Is(err, seq.ErrBadMapping) {
		t.Errorf("no secret: %v", err)
	}
	group, err := c.stores.Group()
	if err != nil {
		t.Fatal(err)
	}
	defer group.Close()
	version := uint64(0)
	for _, body := range []string{`{"user":{"hash":"sha3","version":1}}`, `{"user":{"hash":"hmac-sha256-64","version":1}}`, `{"user":{"hash":"hmac-sha256-64","secret":"beef","version":1}}`, `[`, `null`} {
		if _, err := group.SwapDocument(t.Context(), seq.NewSession(), seq.KeysRegister, version, []byte(body)); err != nil {
			t.Fatal(err)
		}
		version++
		if _, err := c.keys(false, false).Begin(t.Context()); !errors.Is(err, documents.ErrUnsoundKeys) || strings.Contains(err.Error(), "beef") {
			t.Errorf("%s: got %v", body, err)
		}
	}
}

func TestASecretIsInNoText(t *testing.T) {
	secret := seq.NewKeySecret()
	e := documents.KeyEntries{"user": {Hash: seq.SecretKeys, Secret: secret}}
	hidden, err := secret.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	raw := fmt.Sprint([32]byte(secret))
	for _, text := range []string{fmt.Sprint(e), fmt.Sprintf("%+v %#v", e, e), fmt.Sprintf("%v", e.Hashers()), fmt.Sprintf("%x %#v", secret, secret)} {
		if strings.Contains(text, string(hidden)) || strings.Contains(text, strings.Trim(raw, "[]")) {
			t.Errorf("got %s", text)
		}
	}
}
