package rpc

import (
	"encoding/binary"
	"net"

	"golang.org/x/net/http2"
)

const (
	frameHeader = 9
	// frameCost is what gRPC keeps for a DATA frame beside its bytes, in bytes.
	frameCost = 128
)

// framed counts the frames of messages that a connection brings, above its TLS. All others end
// when they are read. It reads nothing but the headers of frames and changes no byte.
type framed struct {
	net.Conn
	traffic *traffic
	skip    int               // bytes up to the next header
	header  [frameHeader]byte // as far as it has come
	have    int
}

// Read implements net.Conn.
func (f *framed) Read(b []byte) (int, error) {
	n, err := f.Conn.Read(b)
	if bad := f.look(b[:n]); bad != nil {
		return 0, bad
	}
	return n, err
}

// look goes on with b where the last one ended.
func (f *framed) look(b []byte) error {
	for len(b) > 0 {
		if n := min(f.skip, len(b)); n > 0 {
			f.skip -= n
			b = b[n:]
			continue
		}
		n := copy(f.header[f.have:], b)
		f.have += n
		b = b[n:]
		if f.have < frameHeader {
			return nil
		}
		f.have, f.skip = 0, int(binary.BigEndian.Uint32(f.header[:])>>8)
		if http2.FrameType(f.header[3]) != http2.FrameData {
			continue
		}
		if err := f.traffic.arrived(int64(f.skip)+frameCost, false); err != nil {
			return err
		}
	}
	return nil
}
