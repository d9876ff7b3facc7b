package auth

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/seqsvr/seqsvr/internal/base/config"
	"github.com/seqsvr/seqsvr/seq"
)

// ErrPolicy is a policy file that cannot be used; the error has its line.
var ErrPolicy = errors.New("bad policy")

// maxPolicy bounds a policy file in bytes.
const maxPolicy = 16 << 20

// Policy is a valid policy file. It is immutable.
type Policy struct {
	Principals []*Principal // as in the file
	Clusters   []string     // that are Sets of one system: certificates of each count in all
	byToken    map[Hash]*Principal
	byName     map[string]*Principal
}

// Principal is one who may do something.
type Principal struct {
	Name   string
	Role   Role // Caller, Reader or Operator
	Tokens []Hash
	Grants []*Grant // of a Caller
}

// ID is the principal in logs and events, such as caller/chat.
func (p *Principal) ID() string { return string(p.Role) + "/" + p.Name }

// Grant lets a caller do something with a space, a namespace or a tag.
type Grant struct {
	Kind     Kind
	Pattern  string // a name, or the beginning of names and *
	Verbs    []Verb
	MaxRaise uint64 // how far above the number of now a raise may go
	Rate     Rate

	quota *quota
}

// A policy file as it is written.
type (
	policyFile struct {
		Clusters   []string    `yaml:"clusters,flow,omitempty"`
		Principals []principal `yaml:"principals"`
	}
	principal struct {
		Name   string   `yaml:"name"`
		Role   Role     `yaml:"role"`
		Tokens []string `yaml:"tokens,flow,omitempty"`
		Grants []grant  `yaml:"grants,omitempty"`
	}
	grant struct {
		Space     string `yaml:"space,omitempty"`
		Namespace string `yaml:"namespace,omitempty"`
		Tag       string `yaml:"tag,omitempty"`
		Verbs     []Verb `yaml:"verbs,flow"`
		MaxRaise  uint64 `yaml:"max_raise,omitempty"`
		Rate      uint64 `yaml:"rate,omitempty"`
		Burst     uint64 `yaml:"burst,omitempty"`
	}
)

// ReadPolicy reads a policy file. ErrPolicy with the line that is wrong, ErrOpenFile, or
// the system's error.
func ReadPolicy(path string) (*Policy, error) {
	if err := CheckPrivate(path); err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxPolicy+1))
	if err == nil && len(text) > maxPolicy {
		err = fmt.Errorf("larger than %d bytes", maxPolicy)
	}
	var p *Policy
	if err == nil {
		p, err = ParsePolicy(text)
	}
	if err != nil {
		return nil, fmt.Errorf("policy %s: %w", path, err)
	}
	return p, nil
}

// ParsePolicy reads the text of a policy file. ErrPolicy.
func ParsePolicy(text []byte) (*Policy, error) {
	bad := func(err error) (*Policy, error) {
		return nil, fmt.Errorf("%w: %w", ErrPolicy, err)
	}
	var raw policyFile
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&raw); err != nil && !errors.Is(err, io.EOF) {
		return bad(hideValues(err))
	}
	var doc yaml.Node
	if yaml.Unmarshal(text, &doc) == nil {
		if line, number := config.DigitsInYAML(&doc, "max_raise", "rate", "burst"); line > 0 {
			return bad(fmt.Errorf("line %d: %q: %w", line, number, config.ErrLeadingZero))
		}
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return bad(errors.New("more than one document: expected one"))
	}
	for i, id := range raw.Clusters {
		switch {
		case !part.MatchString(id):
			return bad(fmt.Errorf("clusters[%d] %.128q: expected 1 to 128 letters, digits, '.', '_' and '-', the first a letter or digit", i, id))
		case slices.Contains(raw.Clusters[:i], id):
			return bad(fmt.Errorf("clusters[%d]: %s stands there twice", i, id))
		}
	}
	lines := linesOf(text)
	p := &Policy{Clusters: raw.Clusters, byToken: map[Hash]*Principal{}, byName: map[string]*Principal{}}
	for i, one := range raw.Principals {
		if err := p.add(one); err != nil {
			where := fmt.Sprintf("principals[%d] %.128q", i, one.Name)
			if i < len(lines) { // else it came by a merge key
				where = fmt.Sprintf("line %d: %s", lines[i], where)
			}
			return bad(fmt.Errorf("%s: %w", where, err))
		}
	}
	return p, nil
}

// add checks a principal and takes it in.
func (p *Policy) add(one principal) error {
	next := &Principal{Name: one.Name, Role: one.Role}
	switch {
	case !part.MatchString(one.Name):
		return errors.New("name: expected 1 to 128 letters, digits, '.', '_' and '-', the first a letter or digit")
	case !one.Role.ofPolicy():
		return fmt.Errorf("role %q: expected caller, reader or operator", one.Role)
	case one.Role != Caller && len(one.Grants) > 0:
		return fmt.Errorf("grants of a %s: expected them of callers alone", one.Role)
	case p.byName[next.ID()] != nil:
		return fmt.Errorf("%s stands there twice", next.ID())
	}
	p.byName[next.ID()] = next
	for _, text := range one.Tokens {
		h, err := parseHash(text)
		if err != nil {
			return err
		}
		if other := p.byToken[h]; other != nil {
			return fmt.Errorf("a token that %s has, too", other.ID())
		}
		p.byToken[h] = next
		next.Tokens = append(next.Tokens, h)
	}
	for j, g := range one.Grants {
		grant, err := g.checked()
		if err == nil && next.grant(grant.Kind, grant.Pattern) != nil {
			err = fmt.Errorf("%s %q stands there twice", grant.Kind, grant.Pattern)
		}
		if err != nil {
			return fmt.Errorf("grants[%d]: %w", j, err)
		}
		next.Grants = append(next.Grants, grant)
	}
	p.Principals = append(p.Principals, next)
	return nil
}

// grant returns the grant of a pattern, or nil if there is none.
func (p *Principal) grant(k Kind, pattern string) *Grant {
	for _, g := range p.Grants {
		if g.Kind == k && g.Pattern == pattern {
			return g
		}
	}
	return nil
}

// checked is a grant that is sound.
func (w grant) checked() (*Grant, error) {
	g := &Grant{Verbs: w.Verbs, MaxRaise: w.MaxRaise, Rate: Rate{w.Rate, w.Burst}, quota: &quota{}}
	for kind, pattern := range map[Kind]string{Space: w.Space, Namespace: w.Namespace, Tag: w.Tag} {
		if pattern == "" {
			continue
		}
		if g.Kind != "" {
			return nil, errors.New("more than one of space, namespace and tag")
		}
		g.Kind, g.Pattern = kind, pattern
	}
	return g, g.check()
}

// check completes a grant, and says what is wrong with it.
func (g *Grant) check() error {
	if g.Kind == "" {
		return errors.New("none of space, namespace and tag")
	}
	if star := strings.IndexByte(g.Pattern, '*'); star >= 0 && star != len(g.Pattern)-1 {
		return fmt.Errorf("%s %q: expected a name, or its beginning and one *", g.Kind, g.Pattern)
	}
	if len(g.Verbs) == 0 {
		return errors.New("no verbs: expected some of take, read and raise")
	}
	for _, v := range g.Verbs {
		switch {
		case v != Take && v != Read && v != Raise:
			return fmt.Errorf("verb %q: expected take, read or raise", v)
		case v == Raise && g.Kind != Space:
			return fmt.Errorf("verb raise of a %s: expected a space", g.Kind)
		case v == Read && g.Kind == Namespace:
			return errors.New("verb read of a namespace: expected take, reading needs no grant")
		}
	}
	if g.may(Raise) != (g.MaxRaise > 0) {
		return errors.New("verb raise and max_raise: expected both or none")
	}
	if g.MaxRaise > uint64(seq.MaxSeq) {
		return fmt.Errorf("max_raise %d: expected at most %d", g.MaxRaise, uint64(seq.MaxSeq))
	}
	switch {
	case g.Rate.PerSecond > maxRate:
		return fmt.Errorf("rate %d: expected at most %d keys a second", g.Rate.PerSecond, maxRate)
	case g.Rate.Burst > 0 && g.Rate.PerSecond == 0:
		return errors.New("burst without rate")
	case g.Rate.Burst > maxRate:
		return fmt.Errorf("burst %d: expected at most %d keys", g.Rate.Burst, maxRate)
	case g.Rate.Burst == 0:
		g.Rate.Burst = g.Rate.PerSecond
	}
	return nil
}

func (g *Grant) may(v Verb) bool {
	for _, has := range g.Verbs {
		if has == v {
			return true
		}
	}
	return false
}

func (g *Grant) covers(k Kind, name string) bool {
	if g.Kind != k {
		return false
	}
	if start, many := strings.CutSuffix(g.Pattern, "*"); many {
		return strings.HasPrefix(name, start)
	}
	return g.Pattern == name
}

// keep takes over the quotas of the policy before: a new file gives nobody a fresh burst.
func (p *Policy) keep(before *Policy) {
	if before == nil {
		return
	}
	for id, now := range p.byName {
		was := before.byName[id]
		if was == nil {
			continue
		}
		for _, g := range now.Grants {
			if old := was.grant(g.Kind, g.Pattern); old != nil {
				g.quota = old.quota
			}
		}
	}
}

// linesOf are the lines of the principals in a text that has been decoded.
func linesOf(text []byte) []int {
	var doc yaml.Node
	if yaml.Unmarshal(text, &doc) != nil || len(doc.Content) == 0 {
		return nil
	}
	root := doc.Content[0]
	for i := 0; i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value != "principals" {
			continue
		}
		var lines []int
		list := root.Content[i+1]
		if list.Alias != nil {
			list = list.Alias
		}
		for _, one := range list.Content {
			lines = append(lines, one.Line)
		}
		return lines
	}
	return nil
}

// hideValues leaves out what stands between backquotes in yaml's errors: a token may have
// been written where a number belongs.
func hideValues(err error) error {
	var mismatch *yaml.TypeError
	if !errors.As(err, &mismatch) {
		return err
	}
	out := make([]string, len(mismatch.Errors))
	for i, text := range mismatch.Errors {
		if from, to := strings.IndexByte(text, '`'), strings.LastIndexByte(text, '`'); from >= 0 && to > from {
			text = text[:from] + "a value" + text[to+1:]
		}
		out[i] = text
	}
	return errors.New(strings.Join(out, "; "))
}
