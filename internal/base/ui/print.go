package ui

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"
)

// Format names a form in which results are printed.
type Format string

// The formats that -o takes.
const (
	FormatTable Format = "table" // for people; its layout may change
	FormatJSON  Format = "json"  // indented, ends in a newline
	FormatYAML  Format = "yaml"  // the keys and the order of the JSON
)

// ParseFormat reads the value of -o. An unknown one is ErrFormat.
func ParseFormat(text string) (Format, error) {
	switch f := Format(text); f {
	case FormatTable, FormatJSON, FormatYAML:
		return f, nil
	}
	return "", fmt.Errorf("%w %q: expected table, json or yaml", ErrFormat, text)
}

// Print writes a result to w: table() as a table, or v, which must encode with
// encoding/json, as JSON or YAML. table is called for FormatTable only and must
// not be nil then. Nothing is written if v does not encode.
func Print(w io.Writer, format Format, v any, table func() *Table) error {
	switch format {
	case FormatTable:
		return table().Write(w)
	case FormatJSON, FormatYAML:
	default:
		return fmt.Errorf("%w %q: expected table, json or yaml", ErrFormat, string(format))
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(v); err != nil {
		return fmt.Errorf("encode the result: %w", err)
	}
	if format == FormatYAML {
		converted, err := toYAML(text.Bytes())
		if err != nil {
			return fmt.Errorf("encode the result as yaml: %w", err)
		}
		text = *converted
	}
	_, err := text.WriteTo(w)
	return err
}

// toYAML goes by way of the JSON, so that struct tags are written once, keys
// keep their order and a number keeps its digits.
func toYAML(text []byte) (*bytes.Buffer, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	node, err := yamlNode(decoder)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := errors.Join(encoder.Encode(node), encoder.Close()); err != nil {
		return nil, err
	}
	return &out, nil
}

// yamlNode reads the next JSON value.
func yamlNode(decoder *json.Decoder) (*yaml.Node, error) {
	token, err := decoder.Token()
	if err != nil {
		return nil, err
	}
	switch token := token.(type) {
	case json.Delim:
		node := &yaml.Node{Kind: yaml.MappingNode}
		if token == '[' {
			node.Kind = yaml.SequenceNode
		}
		for decoder.More() {
			child, err := yamlNode(decoder) // in a mapping, keys and values take turns
			if err != nil {
				return nil, err
			}
			node.Content = append(node.Content, child)
		}
		_, err := decoder.Token()
		return node, err
	case string:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: token}, nil
	case nil:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}, nil
	default: // json.Number and bool are the same text in YAML
		return &yaml.Node{Kind: yaml.ScalarNode, Value: fmt.Sprint(token)}, nil
	}
}
