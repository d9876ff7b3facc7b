package auth

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/seqsvr/seqsvr/internal/base/config"
)

// Entry is a principal to be written.
type Entry struct {
	Name   string
	Role   Role
	Token  Hash
	Grants []string // as ParseGrant reads them
}

// AddToken gives a token to a principal of a policy file, which is added with its grants if
// it is not there, as is the file, with mode 0600. Comments stay. The file is replaced as a
// whole, and only by one that is sound. ErrPolicy, ErrOpenFile.
func AddToken(path string, e Entry) error {
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	default:
		if _, err := ReadPolicy(path); err != nil {
			return err
		}
	}
	next, err := e.addTo(text)
	if err != nil {
		return err
	}
	p, err := ParsePolicy(next)
	if err == nil && p.byToken[e.Token] == nil {
		err = fmt.Errorf("%w: %s is written in a way that cannot be added to", ErrPolicy, path)
	}
	if err != nil {
		return err
	}
	return replace(path, next)
}

// Text is the entry as it stands in a policy file of its own.
func (e Entry) Text() (string, error) {
	text, err := e.addTo(nil)
	if err == nil {
		_, err = ParsePolicy(text)
	}
	return string(text), err
}

func (e Entry) addTo(text []byte) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPolicy, hideValues(err))
	}
	if len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode {
		comment := doc.HeadComment
		doc = yaml.Node{Kind: yaml.DocumentNode, HeadComment: comment, Content: []*yaml.Node{{Kind: yaml.MappingNode}}}
	}
	list := child(doc.Content[0], "principals", yaml.SequenceNode)
	list.Style = 0
	for _, one := range list.Content {
		if value(one, "name") != e.Name || value(one, "role") != string(e.Role) {
			continue
		}
		if len(e.Grants) > 0 {
			return nil, fmt.Errorf("%w: %s/%s is there: expected no grants, they are changed in the file", ErrPolicy, e.Role, e.Name)
		}
		tokens := child(one, "tokens", yaml.SequenceNode)
		tokens.Content = append(tokens.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: e.Token.Hex(), Style: yaml.DoubleQuotedStyle})
		return encode(&doc)
	}
	fresh := principal{Name: e.Name, Role: e.Role, Tokens: []string{e.Token.Hex()}}
	for _, text := range e.Grants {
		g, err := parseGrant(text)
		if err != nil {
			return nil, err
		}
		fresh.Grants = append(fresh.Grants, g)
	}
	var node yaml.Node
	if err := node.Encode(fresh); err != nil {
		return nil, err
	}
	list.Content = append(list.Content, &node)
	return encode(&doc)
}

// AddClusters names clusters as Sets of one system in a policy file, which is there; those that
// are named already stay. As AddToken: ErrPolicy, ErrOpenFile.
func AddClusters(path string, ids ...string) error {
	now, err := ReadPolicy(path)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return fmt.Errorf("%w: %w", ErrPolicy, hideValues(err))
	}
	if len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode {
		return fmt.Errorf("%w: %s names no principal", ErrPolicy, path)
	}
	list := child(doc.Content[0], "clusters", yaml.SequenceNode)
	list.Style = yaml.FlowStyle
	for _, id := range ids {
		if !slices.Contains(now.Clusters, id) {
			list.Content = append(list.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: id})
		}
	}
	next, err := encode(&doc)
	if err == nil {
		_, err = ParsePolicy(next)
	}
	if err != nil {
		return err
	}
	return replace(path, next)
}

func encode(doc *yaml.Node) ([]byte, error) {
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	err := e.Encode(doc)
	return out.Bytes(), errors.Join(err, e.Close())
}

// child is the value of a key, which is made if there is none.
func child(of *yaml.Node, key string, kind yaml.Kind) *yaml.Node {
	for i := 0; i+1 < len(of.Content); i += 2 {
		if of.Content[i].Value == key {
			if of.Content[i+1].Kind != kind { // null
				*of.Content[i+1] = yaml.Node{Kind: kind}
			}
			return of.Content[i+1]
		}
	}
	made := &yaml.Node{Kind: kind}
	of.Content = append(of.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: key}, made)
	return made
}

func value(of *yaml.Node, key string) string {
	for i := 0; i+1 < len(of.Content); i += 2 {
		if of.Content[i].Value == key {
			return of.Content[i+1].Value
		}
	}
	return ""
}

// replace puts a file there as a whole.
func replace(path string, text []byte) error {
	file, err := os.CreateTemp(filepath.Dir(path), ".policy-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return nil
}

// ErrBadGrant is a text that is no grant or demand.
var ErrBadGrant = errors.New("malformed grant")

// splitScope reads NAME, namespace/NAME or tag/NAME, and what stands behind the last colon.
func splitScope(text string) (kind Kind, name, rest string, err error) {
	at := strings.LastIndexByte(text, ':')
	if at < 1 {
		return "", "", "", fmt.Errorf("%w: %q: expected SPACE:VERBS, namespace/NAME:take or tag/NAME:VERBS", ErrBadGrant, text)
	}
	kind, name, rest = Space, text[:at], text[at+1:]
	if tag, ok := strings.CutPrefix(name, "tag/"); ok {
		kind, name = Tag, tag
	} else if ns, ok := strings.CutPrefix(name, "namespace/"); ok {
		kind, name = Namespace, ns
	}
	return kind, name, rest, nil
}

// parseGrant reads user:take,read,raise,max-raise=1000,rate=50,burst=100.
func parseGrant(text string) (g grant, err error) {
	kind, name, rest, err := splitScope(text)
	if err != nil {
		return g, err
	}
	switch kind {
	case Space:
		g.Space = name
	case Namespace:
		g.Namespace = name
	case Tag:
		g.Tag = name
	}
	for word := range strings.SplitSeq(rest, ",") {
		key, number, numbered := strings.Cut(word, "=")
		into := map[string]*uint64{"max-raise": &g.MaxRaise, "rate": &g.Rate, "burst": &g.Burst}[key]
		if !numbered {
			g.Verbs = append(g.Verbs, Verb(word))
			continue
		}
		if into == nil {
			return g, fmt.Errorf("%w: %q: %q: expected max-raise, rate or burst", ErrBadGrant, text, key)
		}
		if *into, err = strconv.ParseUint(number, 10, 64); err != nil || config.Digits(number) != nil {
			return g, fmt.Errorf("%w: %q: %q: expected a whole number without leading zeros", ErrBadGrant, text, word)
		}
	}
	if _, err := g.checked(); err != nil {
		return g, fmt.Errorf("%w: %q: %w", ErrBadGrant, text, err)
	}
	return g, nil
}

// ParseDemand reads what one call asks for: user:take, tag/orders:take or user:raise=1000, by
// so much.
func ParseDemand(text string) (d Demand, err error) {
	kind, name, rest, err := splitScope(text)
	if err != nil {
		return d, err
	}
	verb, number, numbered := strings.Cut(rest, "=")
	d = Demand{Kind: kind, Name: name, Verb: Verb(verb), Keys: 1}
	if d.Verb != Take && d.Verb != Read && d.Verb != Raise || numbered != (d.Verb == Raise) {
		return d, fmt.Errorf("%w: %q: expected take, read or raise=NUMBER behind the colon", ErrBadGrant, text)
	}
	if numbered {
		if d.Jump, err = strconv.ParseUint(number, 10, 64); err != nil || config.Digits(number) != nil {
			return d, fmt.Errorf("%w: %q: expected a whole number without leading zeros behind raise=", ErrBadGrant, text)
		}
	}
	return d, nil
}

// String is the grant as parseGrant reads it.
func (g *Grant) String() string {
	name := g.Pattern
	if g.Kind != Space {
		name = string(g.Kind) + "/" + name
	}
	var words []string
	for _, v := range g.Verbs {
		words = append(words, string(v))
	}
	if g.MaxRaise > 0 {
		words = append(words, fmt.Sprintf("max-raise=%d", g.MaxRaise))
	}
	if g.Rate.PerSecond > 0 {
		words = append(words, fmt.Sprintf("rate=%d,burst=%d", g.Rate.PerSecond, g.Rate.Burst))
	}
	return name + ":" + strings.Join(words, ",")
}

// FindMethod is the full name of a method of the table that a text such as Sequence.Next
// or Sequence/Next ends in. ErrBadName for none.
func FindMethod(text string) (string, error) {
	short := strings.ReplaceAll(strings.TrimPrefix(text, "/"), ".", "/")
	for full := range Methods {
		if flat := strings.ReplaceAll(full, ".", "/"); flat == "/"+short || strings.HasSuffix(flat, "/v1/"+short) {
			return full, nil
		}
	}
	return "", fmt.Errorf("%w: method %q: expected one such as Sequence.Next", ErrBadName, text)
}
