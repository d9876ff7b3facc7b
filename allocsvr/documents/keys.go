package documents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/seqsvr/seqsvr/seq"
)

// KeyEntry says how the string keys of one space are hashed.
type KeyEntry struct {
	Hash    seq.KeyHash   `json:"hash"`
	Secret  seq.KeySecret `json:"secret,omitzero"` // of seq.SecretKeys
	Version uint64        `json:"version"`         // 1 when it was first set, one more with each change
}

// KeyEntries are the entries of Keys, by the names of spaces. A space without an entry hashes as its mapping says.
type KeyEntries map[string]KeyEntry

// ErrUnsoundKeys is returned for a document that this build cannot read.
var ErrUnsoundKeys = errors.New("unsound document of key hashes")

func parseKeys(body []byte) (KeyEntries, error) {
	if len(body) == 0 {
		return KeyEntries{}, nil
	}
	e := KeyEntries{}
	if json.Unmarshal(body, &e) != nil || e == nil { // the reason might repeat a part of a secret
		return nil, fmt.Errorf("%w: it is not what this build writes", ErrUnsoundKeys)
	}
	for space, one := range e {
		if one.Hash != seq.SHA256Keys && one.Hash != seq.SecretKeys || one.Secret.IsZero() != (one.Hash == seq.SHA256Keys) {
			return nil, fmt.Errorf("%w: space %q has hash %q, expected %s, or %s and a secret", ErrUnsoundKeys, space, one.Hash, seq.SHA256Keys, seq.SecretKeys)
		}
	}
	return e, nil
}

// Hashers returns the hashers of string keys.
func (e KeyEntries) Hashers() seq.KeyHashers {
	out := seq.KeyHashers{}
	for space, one := range e {
		out[space] = seq.KeyHasher{Secret: one.Secret}
	}
	return out
}

// Check returns seq.ErrBadMapping if a space needs a secret and has none.
func (e KeyEntries) Check(m seq.Mapping) error {
	if space := e.lacks(m); space != "" {
		return fmt.Errorf("%w: the string keys of space %q have no secret", seq.ErrBadMapping, space)
	}
	return nil
}

// lacks returns the name of a space of the mapping that needs a secret and has none, or "".
func (e KeyEntries) lacks(m seq.Mapping) string {
	for _, s := range m.Spaces {
		if _, there := e[s.Name]; !there && s.KeyHash == seq.SecretKeys {
			return s.Name
		}
	}
	return ""
}

// Of returns the entry of a space.
func (e KeyEntries) Of(s *seq.Space) KeyEntry {
	if one, there := e[s.Name]; there {
		return one
	}
	return KeyEntry{Hash: seq.SHA256Keys}
}

// Keys is the document of how the string keys of each space are hashed, with the secrets, as a session reads
// and changes it.
//
//   - A space that needs a secret has one before any of its keys is hashed, and it is the same for all nodes.
//   - A node uses the document that it read when its session began, until the session ends. The marks of
//     counters decide how a later change affects them (handover.Sealed.Mark, docs/decisions.md, 038).
//   - No secret is in an error, a log line, an event or a reply.
type Keys struct {
	mapping seq.Mapping
	doc     *Document[KeyEntries]
}

// NewKeys makes Keys. Each call has its own context, so life bounds none of them.
func NewKeys(life context.Context, stores Stores, session seq.Session, m seq.Mapping) *Keys {
	return &Keys{m, New(Config[KeyEntries]{
		Life: life, Stores: stores, Session: session, Register: seq.KeysRegister, Parse: parseKeys,
		Encode: func(e KeyEntries) ([]byte, error) { return json.Marshal(e) },
	}, nil)}
}

// Load reads the present entries. Stores of v0.1.0 have none, and then Load returns none. It returns the
// errors of Document.Load.
func (d *Keys) Load(ctx context.Context) (KeyEntries, error) {
	e, err := d.doc.Load(ctx)
	if errors.Is(err, seq.ErrUnknownRegister) {
		return KeyEntries{}, nil
	}
	return e, err
}

// Begin reads the entries for a session that begins. At the first start of a cluster it draws the missing
// secrets. The first node writes them, and the other nodes use them.
func (d *Keys) Begin(ctx context.Context) (KeyEntries, error) {
	e, err := d.Load(ctx)
	if err != nil || e.lacks(d.mapping) == "" {
		return e, err
	}
	return d.doc.Change(ctx, func(now KeyEntries, _ bool) (KeyEntries, bool, error) {
		next := maps.Clone(now)
		for space := next.lacks(d.mapping); space != ""; space = next.lacks(d.mapping) {
			next[space] = KeyEntry{Hash: seq.SecretKeys, Secret: seq.NewKeySecret(), Version: 1}
		}
		return next, len(next) > len(now), nil
	})
}

// Share returns the present document, with its secrets, for Adopt in another Set. It returns the errors of
// Load.
func (d *Keys) Share(ctx context.Context) ([]byte, error) {
	e, err := d.Load(ctx)
	if err != nil {
		return nil, err
	}
	return json.Marshal(e)
}

// Adopt replaces the document by another Set's document, so that sections from there go on from their
// counters. Nothing may have been counted under the old document. Adopt returns ErrUnsoundKeys,
// seq.ErrBadMapping if a secret is missing, or the errors of Document.Change.
func (d *Keys) Adopt(ctx context.Context, shared []byte) (KeyEntries, error) {
	next, err := parseKeys(shared)
	if err == nil {
		err = next.Check(d.mapping)
	}
	if err != nil {
		return nil, fmt.Errorf("take over how another Set hashes string keys: %w", err)
	}
	return d.doc.Change(ctx, func(now KeyEntries, _ bool) (KeyEntries, bool, error) { return next, !maps.Equal(now, next), nil })
}

// AdoptSpace takes the entry of a space that is to be added from another Set's document. If the space has
// an entry already, the entry stays. AdoptSpace returns the errors of Adopt.
func (d *Keys) AdoptSpace(ctx context.Context, shared []byte, space string) error {
	all, err := parseKeys(shared)
	if err != nil {
		return fmt.Errorf("take over how another Set hashes string keys: %w", err)
	}
	one, there := all[space]
	if !there {
		return nil // by the hash that needs no secret
	}
	_, err = d.doc.Change(ctx, func(now KeyEntries, _ bool) (KeyEntries, bool, error) {
		if _, there := now[space]; there {
			return now, false, nil
		}
		next := maps.Clone(now)
		next[space] = one
		return next, true, nil
	})
	return err
}

// Rehashable returns seq.ErrUnsafeChange for a space whose hash cannot change. An exact space has no
// ceiling above which keys under another hash could begin. Its keys would begin at 1 again, and repeated
// requests would take other numbers.
func Rehashable(s *seq.Space) error {
	if s.Mode != seq.Exact {
		return nil
	}
	return fmt.Errorf("rehash space %q: %w: its mode is %s, so each string key would begin at 1 again; expected a space of another mode", s.Name, seq.ErrUnsafeChange, s.Mode)
}

// Rehash changes the hash of a space's string keys, with a new secret each time. It is one swap, so after a
// crash it was done or not done. Sessions that have begun keep the old hash. Rehash returns
// seq.ErrBadMapping for an unknown hash, the errors of Rehashable, or the errors of Document.Change.
func (d *Keys) Rehash(ctx context.Context, s *seq.Space, hash seq.KeyHash) (KeyEntry, error) {
	if err := errors.Join(hash.Validate(), Rehashable(s)); err != nil {
		return KeyEntry{}, err
	}
	if hash == "" {
		hash = seq.SecretKeys
	}
	next := KeyEntry{Hash: hash}
	if hash == seq.SecretKeys {
		next.Secret = seq.NewKeySecret()
	}
	after, err := d.doc.Change(ctx, func(now KeyEntries, _ bool) (KeyEntries, bool, error) {
		old := now.Of(s)
		if old.Hash == next.Hash && old.Secret == next.Secret { // by an attempt of unknown outcome, or as it was
			return now, false, nil
		}
		next.Version = old.Version + 1
		changed := maps.Clone(now)
		changed[s.Name] = next
		return changed, true, nil
	})
	if err != nil {
		return KeyEntry{}, fmt.Errorf("rehash space %q: %w", s.Name, err)
	}
	return after.Of(s), nil
}
