package etcdstore

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/seqsvr/seqsvr/seq"
)

// keys are the names of everything below one prefix.
type keys struct{ prefix string } // ends in "/"

// newKeys checks the prefix: seq.ErrBadArgument.
func newKeys(prefix string) (keys, error) {
	p := strings.TrimRight(prefix, "/")
	if p == "" || strings.ContainsAny(p, "\x00 ") {
		return keys{}, fmt.Errorf("%w: prefix %q of keys in etcd, expected one such as /seqsvr", seq.ErrBadArgument, prefix)
	}
	return keys{p + "/"}, nil
}

func (k keys) meta() string                   { return k.prefix + "meta" }
func (k keys) registers() string              { return k.prefix + "r/" }
func (k keys) register(r seq.Register) string { return k.registers() + string(r) }
func (k keys) bodies() string                 { return k.prefix + "b/" }
func (k keys) body(r seq.Register) string     { return k.bodies() + string(r) }
func (k keys) sessions() string               { return k.prefix + "s/" }
func (k keys) session(s seq.Session) string   { return k.sessions() + s.String() }
func (k keys) names() string                  { return k.prefix + "n/" }
func (k keys) name(n string) string           { return k.names() + n }
func (k keys) marks() string                  { return k.prefix + "ended/" }
func (k keys) ended(s seq.Session) string     { return k.marks() + s.String() }
func (k keys) swept() string                  { return k.prefix + "swept" }
func (k keys) watch() string                  { return k.prefix + "o" }

// sessionOf is the session of a key of a session.
func (k keys) sessionOf(key string) (seq.Session, error) {
	id, err := strconv.ParseUint(strings.TrimPrefix(key, k.sessions()), 16, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: %q is the key of no session", ErrDamaged, key)
	}
	return seq.Session(id), nil
}
