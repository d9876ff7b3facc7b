package rpc

import (
	"fmt"

	"google.golang.org/grpc/encoding"
	protocodec "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
)

// Buffers hold messages on their way. gRPC's own pool lacks most of these sizes: a message waits in up to sixteen
// times its bytes, and one above 32 KiB takes a MiB, all of which is cleared first.
var Buffers = newBuffers()

func newBuffers() mem.BufferPool {
	pool, err := mem.NewBinaryTieredBufferPool(7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 20)
	if err != nil {
		panic(err) // two sizes are alike
	}
	return pool
}

// Codec is the codec of protobuf, with Buffers.
type Codec struct{ encoding.CodecV2 }

// NewCodec returns the codec.
func NewCodec() Codec { return Codec{encoding.GetCodecV2(protocodec.Name)} }

// Unmarshal implements encoding.CodecV2.
func (c Codec) Unmarshal(data mem.BufferSlice, v any) error {
	whole := data.MaterializeToBuffer(Buffers)
	defer whole.Free()
	return c.CodecV2.Unmarshal(mem.BufferSlice{whole}, v)
}

// Marshal implements encoding.CodecV2.
func (c Codec) Marshal(v any) (mem.BufferSlice, error) {
	return c.MarshalTo(v, func(*[]byte) mem.BufferPool { return Buffers })
}

// MarshalTo is Marshal whose buffer goes to a pool of its own in the end, which must give it to Buffers. A message
// that is too small for a pool has none.
func (c Codec) MarshalTo(v any, pool func(buf *[]byte) mem.BufferPool) (mem.BufferSlice, error) {
	m, ok := v.(proto.Message)
	if !ok {
		return c.CodecV2.Marshal(v)
	}
	size := proto.Size(m)
	if mem.IsBelowBufferPoolingThreshold(size) {
		return c.CodecV2.Marshal(m)
	}
	buf := Buffers.Get(size)
	if _, err := (proto.MarshalOptions{UseCachedSize: true}).MarshalAppend((*buf)[:0], m); err != nil {
		Buffers.Put(buf)
		return nil, fmt.Errorf("encode a message: %w", err)
	}
	return mem.BufferSlice{mem.NewBuffer(buf, pool(buf))}, nil
}
