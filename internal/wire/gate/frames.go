package gate

import (
	"encoding/binary"
	"net"

	"golang.org/x/net/http2"
)

const (
	frameHead = 9 // bytes
	// frameCost is what gRPC keeps for a DATA frame beside its bytes, in bytes.
	frameCost = 128
)

// preface is the number of bytes that a client sends before its first frame.
const preface = len(http2.ClientPreface)

// frame is a frame of HTTP/2, as far as it is looked at.
type frame struct {
	kind   http2.FrameType
	flags  http2.Flags
	length int // of what follows the head, in bytes
	stream uint32
	code   http2.ErrCode // of a reset alone
}

// frames finds the frames in what passes a connection in one direction. It changes no byte.
type frames struct {
	skip int // bytes that are no head
	head [frameHead + 4]byte
	have int
}

// scan calls seen for each frame whose head has come; of a reset the code belongs to it.
func (f *frames) scan(b []byte, seen func(frame)) {
	for len(b) > 0 {
		if f.skip > 0 {
			n := min(f.skip, len(b))
			f.skip, b = f.skip-n, b[n:]
			continue
		}
		need := frameHead
		if f.have >= frameHead {
			need = len(f.head) // of a reset
		}
		n := copy(f.head[f.have:need], b)
		f.have, b = f.have+n, b[n:]
		if f.have < need {
			return
		}
		now := frame{kind: http2.FrameType(f.head[3]), flags: http2.Flags(f.head[4]), length: int(binary.BigEndian.Uint32(f.head[:]) >> 8),
			stream: binary.BigEndian.Uint32(f.head[5:]) &^ (1 << 31)}
		if now.kind == http2.FrameRSTStream && need == frameHead && now.length >= 4 {
			continue
		}
		if need > frameHead {
			now.code = http2.ErrCode(binary.BigEndian.Uint32(f.head[frameHead:]))
		}
		f.skip, f.have = now.length-(need-frameHead), 0
		seen(now)
	}
}

// framed counts the frames of messages that a connection brings, above its TLS. All others end
// when they are read.
type framed struct {
	net.Conn
	traffic *traffic
	in      frames
}

// Read implements net.Conn.
func (f *framed) Read(b []byte) (int, error) {
	n, err := f.Conn.Read(b)
	var bad error
	f.in.scan(b[:n], func(one frame) {
		if one.kind == http2.FrameData && bad == nil {
			bad = f.traffic.arrived(int64(one.length)+frameCost, false)
		}
	})
	if bad != nil {
		return 0, bad
	}
	return n, err
}
