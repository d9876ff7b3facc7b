package config

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

// Print renders the effective value of every flag as YAML, in the order of
// fs, with the source of each as a comment:
//
//	max-batch: 100 # environment SEQ_MAX_BATCH
//
// The result is a config file that sets the same values again. No setting is a secret:
// those stand in files of their own.
func Print(fs *pflag.FlagSet) ([]byte, error) {
	root := &yaml.Node{Kind: yaml.MappingNode}
	fs.VisitAll(func(flag *pflag.Flag) {
		if flag.Name == FileFlag || commandLineOnly(flag.Name) {
			return
		}
		key := &yaml.Node{Kind: yaml.ScalarNode, Value: flag.Name}
		value := valueNode(flag)
		value.LineComment = source(flag)
		root.Content = append(root.Content, key, value)
	})
	if len(root.Content) == 0 {
		return nil, nil
	}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(root); err != nil {
		return nil, fmt.Errorf("print config: %w", err)
	}
	if err := encoder.Close(); err != nil {
		return nil, fmt.Errorf("print config: %w", err)
	}
	return out.Bytes(), nil
}

func valueNode(flag *pflag.Flag) *yaml.Node {
	text := flag.Value.String()
	list, isList := flag.Value.(pflag.SliceValue)
	switch {
	case isList:
		node := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		for _, item := range list.GetSlice() {
			node.Content = append(node.Content, stringNode(item))
		}
		return node
	case isPlain(flag.Value.Type()):
		return &yaml.Node{Kind: yaml.ScalarNode, Value: text}
	default:
		return stringNode(text)
	}
}

// stringNode lets the encoder quote text where it would read as something else.
func stringNode(text string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
}

// isPlain tells the types whose text is the same YAML scalar.
func isPlain(kind string) bool {
	return kind == "bool" || kind == "count" || strings.HasPrefix(kind, "int") ||
		strings.HasPrefix(kind, "uint") || strings.HasPrefix(kind, "float")
}
