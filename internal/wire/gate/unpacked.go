package gate

import (
	"encoding/binary"
	"math/bits"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// The memory that a message takes once it is unpacked, in bytes.
const (
	structCost = 192 // a message in a message, or an entry of a map
	stringCost = 16  // a string or bytes, beside its own
	numberCost = 8
	// smallMessage need not be looked at: its call costs more.
	smallMessage = 256
	// maxDepth bounds the depth to which messages are looked at. No message of ours is deeper.
	maxDepth = 8
)

// unpacked estimates what a message of the descriptor takes once it is unpacked: one of many
// empty messages takes a hundred times what it travels as.
func unpacked(of protoreflect.MessageDescriptor, b []byte) int64 {
	if len(b) <= smallMessage {
		return int64(len(b))
	}
	return unpackedIn(of, b, maxDepth)
}

func unpackedIn(of protoreflect.MessageDescriptor, b []byte, depth int) (sum int64) {
	var field protoreflect.FieldDescriptor
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return sum + int64(len(b)) // gRPC refuses it
		}
		b = b[n:]
		if field == nil || field.Number() != number {
			field = of.Fields().ByNumber(number)
		}
		if kind != protowire.BytesType {
			if n = protowire.ConsumeFieldValue(number, kind, b); n < 0 {
				return sum + int64(len(b))
			}
			sum += numberCost
			b = b[n:]
			continue
		}
		value, n := protowire.ConsumeBytes(b)
		if n < 0 {
			return sum + int64(len(b))
		}
		b = b[n:]
		sum += unpackedField(field, value, depth)
	}
	return sum
}

// unpackedField is unpacked for one value that has a length; a nil field is not known.
func unpackedField(field protoreflect.FieldDescriptor, value []byte, depth int) int64 {
	switch {
	case field == nil:
		return int64(len(value))
	case field.Message() != nil && depth > 0:
		return structCost + unpackedIn(field.Message(), value, depth-1)
	case field.IsList() && field.Kind() != protoreflect.StringKind && field.Kind() != protoreflect.BytesKind:
		return max(numberCost*numbers(value), int64(len(value)))
	}
	return stringCost + int64(len(value))
}

// numbers counts the varints of a packed list. For fixed widths it is no more than eight times
// too many.
func numbers(b []byte) (n int64) {
	for ; len(b) >= 8; b = b[8:] {
		n += int64(bits.OnesCount64(^binary.LittleEndian.Uint64(b) & 0x8080808080808080))
	}
	for _, c := range b {
		if c < 0x80 {
			n++
		}
	}
	return n
}
