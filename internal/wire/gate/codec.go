package gate

import (
	"runtime"
	"sync/atomic"

	"google.golang.org/grpc/mem"

	"github.com/seqsvr/seqsvr/internal/wire/rpc"
)

// reply is a message for a peer whose connection counts it.
type reply struct {
	m       any
	traffic *traffic
}

// reply is the message as it is to be handed to gRPC; a nil connection counts nothing.
func (t *traffic) reply(m any) any {
	if t == nil {
		return m
	}
	return reply{m, t}
}

// codec is the codec of protobuf that counts replies for as long as gRPC holds their bytes.
type codec struct{ rpc.Codec }

func newCodec() codec { return codec{rpc.NewCodec()} }

// Unmarshal implements encoding.CodecV2.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	in, ok := v.(*call)
	if !ok {
		return c.Codec.Unmarshal(data, v)
	}
	whole := data.MaterializeToBuffer(rpc.Buffers)
	defer whole.Free()
	if in.err = in.came(whole.ReadOnlyData()); in.err != nil {
		return in.err
	}
	if in.err = in.takeTurn(whole.Len()); in.err != nil {
		return in.err
	}
	return c.CodecV2.Unmarshal(mem.BufferSlice{whole}, in.message)
}

// Marshal implements encoding.CodecV2. Replies that are too small for a pool are not counted:
// a connection has as many as it may have calls.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	r, ok := v.(reply)
	if !ok {
		return c.Codec.Marshal(v)
	}
	return c.MarshalTo(r.m, func(buf *[]byte) mem.BufferPool { return r.traffic.hold(min(int64(cap(*buf)), maxUnread/2)) })
}

// held is where the bytes of a reply go once gRPC has written or dropped them.
type held struct{ count *count }

// count is what a reply counts for, until it is over.
type count struct {
	traffic *traffic
	bytes   int64
	over    atomic.Bool
}

func (c *count) end() {
	if !c.over.Swap(true) {
		c.traffic.gone(c.bytes)
	}
}

// hold counts the bytes of a reply. gRPC now and then forgets the bytes of a call that was
// cancelled without giving them back; these count until they are collected as garbage.
func (t *traffic) hold(bytes int64) *held {
	t.goes(bytes)
	h := &held{&count{traffic: t, bytes: bytes}}
	runtime.AddCleanup(h, (*count).end, h.count)
	return h
}

// Get implements mem.BufferPool.
func (*held) Get(n int) *[]byte { return rpc.Buffers.Get(n) }

// Put implements mem.BufferPool.
func (h *held) Put(b *[]byte) {
	h.count.end()
	rpc.Buffers.Put(b)
}
