package router

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/seqsvr/seqsvr/seq"
)

// This file turns JSON into the messages of proto/ and back. Names in JSON are the names of the
// fields. In a request a number may be a JSON number or a string. In a reply:
//
//   - every field is present, also a zero. A oneof or an optional field that is not set is left out.
//   - a number is a JSON number, and a string where the field says jstype = JS_STRING
//   - an enum is its name without the prefix that all of its names have
//
// protojson writes every 64-bit number as a string, and it has one switch for all zeros. So it
// cannot write this. Also, its errors have no stable text.

// internal says of a field that it is none of the JSON: HTTP callers hold no route table, are never sent to
// another Set, and are not told what an owner keeps for readers.
func internal(fd protoreflect.FieldDescriptor) bool {
	switch fd.Name() {
	case "route_version", "routes", "set", "kept":
		return true
	}
	return false
}

// quoteOf is what stands on both sides of a field's numbers.
func quoteOf(fd protoreflect.FieldDescriptor) string {
	options, _ := fd.Options().(*descriptorpb.FieldOptions)
	if options.GetJstype() == descriptorpb.FieldOptions_JS_STRING {
		return `"`
	}
	return ""
}

// readMessage reads the JSON object of a request into m. One of needs must be in it, if
// there are any. seq.ErrBadArgument, seq.ErrBadCount.
func readMessage(r *http.Request, m protoreflect.Message, needs []string) error {
	body, err := readObject(r)
	if err != nil {
		return err
	}
	fields := m.Descriptor().Fields()
	var given uint64 // a bit a field, by its index
	for body = skip(body[1:]); body[0] != '}'; body = skip(body) {
		var name, raw []byte
		name, body = cut(body)
		raw, body = cut(skip(body))
		fd := fields.ByName(protoreflect.Name(inner(name)))
		switch {
		case fd == nil || internal(fd):
			return badArgument(fmt.Sprintf("malformed JSON: unknown field %.40s", name))
		case string(raw) == "null":
			continue
		case given&(1<<fd.Index()) != 0:
			return badArgument(fmt.Sprintf("field %s is set more than once", fd.Name()))
		}
		given |= 1 << fd.Index()
		if err := setField(m, fd, raw); err != nil {
			return err
		}
	}
	return lacking(needs, func(name string) bool { return given&(1<<fields.ByName(protoreflect.Name(name)).Index()) != 0 })
}

// readObject reads the JSON object in the body of a request. It returns valid JSON only, so the
// caller can take it apart without bounds checks.
func readObject(r *http.Request) ([]byte, error) {
	body, err := readBody(r)
	if err != nil {
		return nil, err
	}
	if !json.Valid(body) || skip(body)[0] != '{' {
		var object map[string]json.RawMessage
		if err := parseJSON(body, &object); err != nil {
			return nil, err
		}
		return []byte("{}"), nil // it was null
	}
	return skip(body), nil
}

// skip leaves out what stands in front of the next value.
func skip(raw []byte) []byte { return bytes.TrimLeft(raw, ",: \t\r\n") }

// cut gives the value that stands in front, and the rest.
func cut(raw []byte) (value, rest []byte) {
	depth := 0
	for i := 0; ; i++ {
		switch raw[i] {
		case '"':
			for i++; raw[i] != '"'; i++ {
				if raw[i] == '\\' {
					i++
				}
			}
		case '[', '{':
			depth++
			continue
		case ']', '}':
			depth--
		default:
			if depth > 0 {
				continue
			}
			n := bytes.IndexAny(raw[i:], ",]} \t\r\n")
			return raw[:i+n], raw[i+n:]
		}
		if depth == 0 {
			return raw[:i+1], raw[i+1:]
		}
	}
}

// setField sets a field to what stands in JSON.
func setField(m protoreflect.Message, fd protoreflect.FieldDescriptor, raw []byte) error {
	if !fd.IsList() {
		return addJSON(m, fd, raw)
	}
	if raw[0] != '[' {
		return badArgument(fmt.Sprintf("field %s: %.40q, expected an array", fd.Name(), raw))
	}
	for raw = skip(raw[1:]); raw[0] != ']'; raw = skip(raw) {
		var item []byte
		item, raw = cut(raw)
		if err := addJSON(m, fd, item); err != nil {
			return err
		}
	}
	return nil
}

// addJSON is addValue of a JSON value.
func addJSON(m protoreflect.Message, fd protoreflect.FieldDescriptor, item []byte) error {
	if item[0] != '"' {
		return addValue(m, fd, item, false)
	}
	return addValue(m, fd, inner(item), true)
}

// inner is what a JSON string says.
func inner(quoted []byte) []byte {
	if plain := quoted[1 : len(quoted)-1]; bytes.IndexByte(plain, '\\') < 0 && utf8.Valid(plain) {
		return plain
	}
	var text string
	_ = json.Unmarshal(quoted, &text)
	return []byte(text)
}

// expected is the error of a value of a wrong kind: what it should be.
type expected string

func (e expected) Error() string { return "expected " + string(e) }

// errCount is a number that no count's field holds. It is a bad count as every other one.
const errCount = expected("at most 4294967295")

// addValue sets a field, or appends to one that is a list.
func addValue(m protoreflect.Message, fd protoreflect.FieldDescriptor, text []byte, quoted bool) error {
	if of := fd.ContainingOneof(); of != nil && !of.IsSynthetic() && m.WhichOneof(of) != nil {
		return badArgument(fmt.Sprintf("%s and %s are both set, expected one", of.Fields().Get(0).Name(), of.Fields().Get(1).Name()))
	}
	v, err := parseScalar(fd, text, quoted)
	if err == nil && fd.IsList() {
		m.Mutable(fd).List().Append(v)
		return nil
	}
	path := string(fd.Name())
	if fd.IsList() {
		path = fmt.Sprintf("%s[%d]", path, m.Get(fd).List().Len())
	}
	switch {
	case err == errCount:
		return fmt.Errorf("%w: %s is %s, %w", seq.ErrBadCount, path, text, err)
	case err != nil:
		return badArgument(fmt.Sprintf("field %s: %.40q, %v", path, text, err))
	case fd.Name() == "count" && v.Uint() == 0: // here it was said, other than in a message of gRPC
		return fmt.Errorf("%w: count is 0, expected at least 1", seq.ErrBadCount)
	}
	m.Set(fd, v)
	return nil
}

func parseScalar(fd protoreflect.FieldDescriptor, text []byte, quoted bool) (protoreflect.Value, error) {
	switch fd.Kind() {
	case protoreflect.StringKind:
		if !quoted {
			return protoreflect.Value{}, expected("a string")
		}
		return protoreflect.ValueOfString(string(text)), nil
	case protoreflect.BytesKind: // a request id: the bytes of the text
		if !quoted {
			return protoreflect.Value{}, expected("a string")
		}
		return protoreflect.ValueOfBytes(append([]byte{}, text...)), nil
	case protoreflect.BoolKind:
		if quoted || string(text) != "true" && string(text) != "false" {
			return protoreflect.Value{}, expected("true or false")
		}
		return protoreflect.ValueOfBool(string(text) == "true"), nil
	case protoreflect.Uint32Kind:
		n, err := strconv.ParseUint(string(text), 10, 64)
		switch {
		case err == nil && n <= math.MaxUint32:
			return protoreflect.ValueOfUint32(uint32(n)), nil
		case err == nil && strings.HasPrefix(string(fd.Name()), "count"):
			return protoreflect.Value{}, errCount
		}
		return protoreflect.Value{}, expected("a whole number from 0 to 4294967295")
	case protoreflect.Int64Kind, protoreflect.Sfixed64Kind:
		n, err := strconv.ParseInt(string(text), 10, 64)
		if err != nil {
			return protoreflect.Value{}, expected("a whole number from -9223372036854775808 to 9223372036854775807")
		}
		return protoreflect.ValueOfInt64(n), nil
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		n, err := strconv.ParseUint(string(text), 10, 64)
		if err != nil {
			return protoreflect.Value{}, expected(wholeNumber)
		}
		return protoreflect.ValueOfUint64(n), nil
	}
	return protoreflect.Value{}, expected("no value") // no request has a field of another kind
}

// appendMessage appends m as a JSON object.
func appendMessage(b []byte, m protoreflect.Message) []byte {
	b = append(b, '{')
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		fd := fields.Get(i)
		if internal(fd) || fd.HasPresence() && !m.Has(fd) {
			continue
		}
		if b[len(b)-1] != '{' {
			b = append(b, ',')
		}
		b = append(append(append(b, '"'), fd.Name()...), '"', ':')
		if !fd.IsList() {
			b = appendValue(b, fd, m.Get(fd), quoteOf(fd))
			continue
		}
		b = append(b, '[')
		list, quote, begun := m.Get(fd).List(), quoteOf(fd), len(b)
		for k := range list.Len() {
			if k == 1 { // the others are about as long as the first
				b = slices.Grow(b, list.Len()*(len(b)-begun+1))
			}
			if k > 0 {
				b = append(b, ',')
			}
			b = appendValue(b, fd, list.Get(k), quote)
		}
		b = append(b, ']')
	}
	return append(b, '}')
}

func appendValue(b []byte, fd protoreflect.FieldDescriptor, v protoreflect.Value, quote string) []byte {
	switch fd.Kind() {
	case protoreflect.MessageKind:
		return appendMessage(b, v.Message())
	case protoreflect.StringKind:
		return appendString(b, v.String())
	case protoreflect.BoolKind:
		return strconv.AppendBool(b, v.Bool())
	case protoreflect.EnumKind:
		return appendString(b, enumName(fd.Enum(), v.Enum()))
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Int64Kind, protoreflect.Sfixed64Kind:
		return append(strconv.AppendInt(append(b, quote...), v.Int(), 10), quote...)
	}
	return append(strconv.AppendUint(append(b, quote...), v.Uint(), 10), quote...)
}

// appendString appends a JSON string. Most of ours need nothing escaped.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' || s[i] == '"' || s[i] == '\\' {
			quoted, _ := json.Marshal(s)
			return append(b, quoted...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

// enumName is the name of a value without its prefix: NO_QUORUM, not ERROR_CODE_NO_QUORUM.
func enumName(of protoreflect.EnumDescriptor, n protoreflect.EnumNumber) string {
	zero := string(of.Values().ByNumber(0).Name())
	value := of.Values().ByNumber(n)
	if value == nil { // of a newer build
		return strconv.Itoa(int(n))
	}
	return strings.TrimPrefix(string(value.Name()), strings.TrimSuffix(zero, "UNSPECIFIED"))
}

func writeMessage(w http.ResponseWriter, m proto.Message) {
	jsonHeader(w, http.StatusOK)
	_, _ = w.Write(append(appendMessage(make([]byte, 0, 256), m.ProtoReflect()), '\n')) // a caller that hung up cannot be told
}
