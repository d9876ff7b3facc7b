package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

// maxFile bounds a config file, in bytes, so that a mistaken path (a log, a
// device) fails fast instead of filling the memory.
const maxFile = 1 << 20

// loadFile fills the flags that no stronger source set from the file at path,
// which was named by the given source. It reports every bad line.
func loadFile(fs *pflag.FlagSet, path, namedBy string) []error {
	text, err := readFile(path)
	if err != nil {
		return []error{&Error{Kind: ErrFile, Source: namedBy, Wrong: err.Error(), Want: "a readable YAML file"}}
	}
	root, err := parse(text)
	if err != nil {
		return []error{&Error{Kind: ErrFile, Source: path, Wrong: err.Error(),
			Want: "one flat YAML mapping from flag names to values"}}
	}
	var errs []error
	seen := make(map[string]int)
	for i := 0; root != nil && i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], resolve(root.Content[i+1])
		where := fmt.Sprintf("%s:%d", path, key.Line)
		if line, twice := seen[key.Value]; twice {
			errs = append(errs, &Error{Kind: ErrDuplicateKey, Source: where,
				Wrong: fmt.Sprintf("%q stands in line %d already", key.Value, line), Want: "each key once"})
			continue
		}
		seen[key.Value] = key.Line
		flag := lookup(fs, key)
		if flag == nil {
			errs = append(errs, unknownKey(fs, where, key.Value))
			continue
		}
		if flag.Changed {
			continue
		}
		if err := setFromNode(fs, flag, value, where); err != nil {
			errs = append(errs, err)
			continue
		}
		setSource(flag, where)
	}
	return errs
}

func readFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxFile {
		return nil, fmt.Errorf("%s is larger than %d bytes", path, maxFile)
	}
	return text, nil
}

// parse returns the mapping in text, or nil for a file with nothing but
// comments.
func parse(text []byte) (*yaml.Node, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var document yaml.Node
	err := decoder.Decode(&document)
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var second yaml.Node
	if err := decoder.Decode(&second); err == nil {
		return nil, fmt.Errorf("a second document begins at line %d", second.Line)
	} else if !errors.Is(err, io.EOF) {
		return nil, err
	}
	root := resolve(document.Content[0])
	switch {
	case root.Kind == yaml.ScalarNode && root.Tag == "!!null":
		return nil, nil
	case root.Kind != yaml.MappingNode:
		return nil, fmt.Errorf("line %d is no mapping", root.Line)
	}
	return root, nil
}

// resolve follows an alias. An alias of an alias does not exist in YAML.
func resolve(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.AliasNode {
		return node.Alias
	}
	return node
}

// lookup finds the flag that a key of the file may set.
func lookup(fs *pflag.FlagSet, key *yaml.Node) *pflag.Flag {
	if key.Kind != yaml.ScalarNode || key.Value == FileFlag || commandLineOnly(key.Value) {
		return nil
	}
	return fs.Lookup(key.Value)
}

func unknownKey(fs *pflag.FlagSet, where, key string) error {
	err := &Error{Kind: ErrUnknownKey, Source: where, Wrong: fmt.Sprintf("%q", key),
		Want: "the name of a flag that --help lists, without its dashes"}
	if key == FileFlag || commandLineOnly(key) {
		err.Wrong += " can be set on the command line only"
		return err
	}
	if near := strings.ToLower(strings.ReplaceAll(strings.TrimLeft(key, "-"), "_", "-")); fs.Lookup(near) != nil {
		err.Want = fmt.Sprintf("%q", near)
	}
	return err
}

// setFromNode sets one flag from a scalar or, for a flag that takes a list,
// from a list of scalars.
func setFromNode(fs *pflag.FlagSet, flag *pflag.Flag, node *yaml.Node, where string) error {
	switch {
	case node.Kind == yaml.ScalarNode && node.Tag == "!!null":
		return &Error{Kind: ErrValue, Source: where, Wrong: "no value for " + flag.Name, Want: expected(flag)}
	case node.Kind == yaml.ScalarNode:
		if err := fs.Set(flag.Name, node.Value); err != nil {
			return valueError(where, flag, node.Value)
		}
		return nil
	}
	list, isList := flag.Value.(pflag.SliceValue)
	if node.Kind != yaml.SequenceNode || !isList {
		return &Error{Kind: ErrValue, Source: where, Wrong: "nested value for " + flag.Name, Want: expected(flag)}
	}
	values := make([]string, 0, len(node.Content))
	for _, item := range node.Content {
		item = resolve(item)
		if item.Kind != yaml.ScalarNode || item.Tag == "!!null" {
			return &Error{Kind: ErrValue, Source: where, Wrong: "nested or empty item in " + flag.Name, Want: expected(flag)}
		}
		values = append(values, item.Value)
	}
	if err := list.Replace(values); err != nil {
		return valueError(where, flag, strings.Join(values, ", "))
	}
	flag.Changed = true
	return nil
}
