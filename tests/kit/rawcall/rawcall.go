// Package rawcall makes gRPC calls frame by frame, as no gRPC library would. Nothing but tests
// may import it.
package rawcall

import (
	"encoding/binary"
	"io"
	"net"
)

const (
	data, headers, reset, settings = 0, 1, 3, 4 // frames
	endStream, endHeaders          = 1, 4       // flags
	cancelled                      = 8          // an error code
)

// Frames holds the frames of calls that were not sent yet. The zero value begins a connection.
type Frames struct {
	out  []byte
	last uint32 // stream
}

// Take returns the bytes of the frames and forgets them.
func (f *Frames) Take() []byte {
	out := f.out
	f.out = nil
	return out
}

func (f *Frames) frame(kind, flags byte, stream uint32, payload []byte) {
	n := len(payload)
	f.out = append(f.out, byte(n>>16), byte(n>>8), byte(n), kind, flags)
	f.out = binary.BigEndian.AppendUint32(f.out, stream)
	f.out = append(f.out, payload...)
}

// Open adds the headers of a call, with more of them as names and values of up to 126 bytes.
func (f *Frames) Open(method string, more ...string) (stream uint32) {
	if f.last == 0 {
		f.out = append(f.out, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"...)
		f.frame(settings, 0, 0, nil)
		f.last--
	}
	f.last += 2
	var block []byte
	for i, all := 0, append([]string{":method", "POST", ":scheme", "http", ":path", method, ":authority", "a", "content-type", "application/grpc", "te", "trailers"}, more...); i < len(all); i += 2 {
		block = append(block, 0) // a literal that is not indexed
		for _, text := range all[i : i+2] {
			block = append(append(block, byte(len(text))), text...)
		}
	}
	f.frame(headers, endHeaders, f.last, block)
	return f.last
}

// Send adds the message of a call and ends it.
func (f *Frames) Send(stream uint32, message []byte) {
	prefix := binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message)))
	f.frame(data, endStream, stream, append(prefix, message...))
}

// Reset adds the frame that cancels a call.
func (f *Frames) Reset(stream uint32) {
	f.frame(reset, 0, stream, binary.BigEndian.AppendUint32(nil, cancelled))
}

// Conn is a connection without TLS whose server's frames are discarded. Its methods are for one
// goroutine.
type Conn struct {
	Frames
	conn  net.Conn
	ended chan struct{}
}

// Dial connects to a server. Close must follow.
func Dial(addr string) (*Conn, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	c := &Conn{conn: conn, ended: make(chan struct{})}
	go func() {
		defer close(c.ended)
		_, _ = io.Copy(io.Discard, conn)
	}()
	return c, nil
}

// Flush sends the frames that were added.
func (c *Conn) Flush() error {
	_, err := c.conn.Write(c.Take())
	return err
}

// Ended is closed once nothing more comes from the server.
func (c *Conn) Ended() <-chan struct{} { return c.ended }

// Close ends the connection.
func (c *Conn) Close() error {
	err := c.conn.Close()
	<-c.ended
	return err
}
