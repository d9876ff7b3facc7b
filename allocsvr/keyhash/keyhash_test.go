package keyhash_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/keyhash"
	"github.com/seqsvr/seqsvr/internal/base/clock"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/memstore"
)

// cluster is stores in memory; the space user hashes under a secret, old by SHA-256.
type cluster struct {
	t      *testing.T
	stores *memstore.Cluster
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	m, err := seq.NewMapping(seq.Space{Name: "user", Sections: 2, KeyHash: seq.SecretKeys}, seq.Space{Name: "old", Sections: 2})
	if err != nil {
		t.Fatal(err)
	}
	return &cluster{t, memstore.New(3, m, clock.Boot(), time.Second)}
}

// document returns the document for a session of its own; lost has the outcome of its first swap
// unknown to it, applied or not.
func (c *cluster) document(lost, applied bool) *keyhash.Document {
	c.t.Helper()
	return keyhash.New(c.t.Context(), c.stores.Unsure(c.t, lost, applied), seq.NewSession(), c.stores.Mapping)
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
	c := newCluster(t)
	var mu sync.Mutex // guards marks
	marks := map[uint64]bool{}
	var wg sync.WaitGroup
	for i := range 8 {
		doc := c.document(i%2 == 0, i%4 == 0)
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
			c := newCluster(t)
			first, err := c.document(false, false).Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			made, err := c.document(lost, applied).Rehash(t.Context(), c.space("old"), "")
			if err != nil || made.Version != 1 || made.Secret.IsZero() {
				t.Errorf("lost %v, applied %v: got version %d, %v", lost, applied, made.Version, err)
			}
			now, err := c.document(false, false).Begin(t.Context())
			if err != nil || now["old"] != made || now["user"] != first["user"] {
				t.Errorf("lost %v, applied %v: the stores have something else, %v", lost, applied, err)
			}
		}
	}
}

func TestEachRehashDrawsAnotherSecretAndTheWayBackHasNone(t *testing.T) {
	c := newCluster(t)
	d := c.document(false, false)
	before, err := d.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	again, err := d.Rehash(t.Context(), c.space("user"), seq.SecretKeys)
	if err != nil || again.Secret == before["user"].Secret || again.Version != 2 {
		t.Errorf("got version %d, %v", again.Version, err)
	}
	back, err := d.Rehash(t.Context(), c.space("user"), seq.SHA256Keys)
	if want := (keyhash.Entry{Hash: seq.SHA256Keys, Version: 3}); err != nil || back != want {
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
	m, err := seq.NewMapping(seq.Space{Name: "orders", Sections: 2, Mode: seq.Exact, KeyHash: seq.SecretKeys})
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{t, memstore.New(3, m, clock.Boot(), time.Second)}
	d := c.document(false, false)
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
	root, other := newCluster(t), newCluster(t)
	was, err := root.document(false, false).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	shared, err := root.document(false, false).Share(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, applied := range []bool{true, false} {
		if err := other.document(true, applied).AdoptSpace(t.Context(), shared, "user"); err != nil {
			t.Fatal(err)
		}
	}
	if err := other.document(false, false).AdoptSpace(t.Context(), shared, "old"); err != nil {
		t.Fatal(err)
	}
	got, err := other.document(false, false).Begin(t.Context())
	if err != nil || len(got) != 1 || got["user"] != was["user"] {
		t.Errorf("got %d entries, another secret: %v, %v", len(got), got["user"] != was["user"], err)
	}
	own := newCluster(t)
	had, err := own.document(false, false).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := own.document(false, false).AdoptSpace(t.Context(), shared, "user"); err != nil {
		t.Fatal(err)
	}
	if got, err := own.document(false, false).Load(t.Context()); err != nil || got["user"] != had["user"] {
		t.Errorf("what was counted under a secret is hashed under another: %v", err)
	}
}

func TestAMissingSecretAndADocumentOfOtherBuildsAreRefused(t *testing.T) {
	c := newCluster(t)
	if err := (keyhash.Entries{}).Check(c.stores.Mapping); !errors.Is(err, seq.ErrBadMapping) {
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
		if _, err := c.document(false, false).Begin(t.Context()); !errors.Is(err, keyhash.ErrUnsound) || strings.Contains(err.Error(), "beef") {
			t.Errorf("%s: got %v", body, err)
		}
	}
}

func TestASecretIsInNoText(t *testing.T) {
	secret := seq.NewKeySecret()
	e := keyhash.Entries{"user": {Hash: seq.SecretKeys, Secret: secret}}
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
