package processes

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
)

// frames is a connection that speaks HTTP/2 frame by frame. It sends no more than the windows
// of the server allow, answers its settings and pings, and reads the rest for nothing.
type frames struct {
	net.Conn
	fr    *http2.Framer
	write sync.Mutex // guards writes of fr and hp
	hp    *hpack.Encoder
	block bytes.Buffer

	mu      sync.Mutex // guards all below
	change  *sync.Cond
	initial int64
	windows map[uint32]int64 // by stream; 0 is of the connection
	ended   bool
}

// openFrames connects; a secured cluster sees no certificate. It returns nil if the server lets
// nobody in.
func openFrames(t *testing.T, c *localcluster.Cluster, addr string) *frames {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil
	}
	if c.Secured != nil {
		text, err := os.ReadFile(c.Secured.Caller.Files.CA)
		if err != nil {
			t.Error(err)
			return nil
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(text)
		secured := tls.Client(conn, &tls.Config{RootCAs: pool, ServerName: "127.0.0.1", NextProtos: []string{"h2"}})
		if err := secured.HandshakeContext(ctx); err != nil {
			_ = conn.Close()
			return nil
		}
		conn = secured
	}
	f := &frames{Conn: conn, fr: http2.NewFramer(conn, conn), initial: 65535, windows: map[uint32]int64{0: 65535}}
	f.hp, f.change = hpack.NewEncoder(&f.block), sync.NewCond(&f.mu)
	f.fr.AllowIllegalWrites = true
	t.Cleanup(func() { _ = conn.Close() })
	f.write.Lock()
	defer f.write.Unlock()
	_, _ = conn.Write([]byte(http2.ClientPreface))
	_ = f.fr.WriteSettings()
	go f.read()
	return f
}

func (f *frames) read() {
	defer func() {
		f.mu.Lock()
		f.ended = true
		f.change.Broadcast()
		f.mu.Unlock()
	}()
	for {
		frame, err := f.fr.ReadFrame()
		if err != nil {
			return
		}
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if frame.IsAck() {
				continue
			}
			f.mu.Lock()
			if v, ok := frame.Value(http2.SettingInitialWindowSize); ok {
				f.initial = int64(v)
			}
			f.mu.Unlock()
			f.do(func() error { return f.fr.WriteSettingsAck() })
		case *http2.PingFrame:
			if !frame.IsAck() {
				data := frame.Data
				f.do(func() error { return f.fr.WritePing(true, data) })
			}
		case *http2.WindowUpdateFrame:
			f.mu.Lock()
			f.windows[frame.StreamID] += int64(frame.Increment)
			f.change.Broadcast()
			f.mu.Unlock()
		}
	}
}

// do writes; a connection that takes nothing for long is given up.
func (f *frames) do(write func() error) {
	f.write.Lock()
	defer f.write.Unlock()
	_ = f.SetWriteDeadline(time.Now().Add(5 * time.Second))
	if write() != nil {
		_ = f.Close()
	}
}

// over reports whether the server has closed the connection.
func (f *frames) over() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ended
}

// call opens a stream.
func (f *frames) call(id uint32, path string, more ...hpack.HeaderField) {
	f.mu.Lock()
	f.windows[id] += f.initial
	f.mu.Unlock()
	f.do(func() error {
		f.block.Reset()
		for _, h := range append([]hpack.HeaderField{{Name: ":method", Value: "POST"}, {Name: ":scheme", Value: "http"}, {Name: ":path", Value: path},
			{Name: ":authority", Value: "x"}, {Name: "content-type", Value: "application/grpc"}, {Name: "te", Value: "trailers"}}, more...) {
			_ = f.hp.WriteField(h)
		}
		return f.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: f.block.Bytes(), EndHeaders: true})
	})
}

// data sends bytes on a stream in frames of so many, as the windows allow. It gives up when the
// server has closed the connection, or grants no window for a second.
func (f *frames) data(id uint32, b []byte, size int, end bool) {
	for len(b) > 0 {
		n := f.grant(id, min(len(b), size))
		if n == 0 {
			return
		}
		f.do(func() error { return f.fr.WriteData(id, end && n == len(b), b[:n]) })
		b = b[n:]
	}
}

// grant waits for a window of at most n bytes.
func (f *frames) grant(id uint32, n int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	late := false
	timer := time.AfterFunc(time.Second, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		late = true
		f.change.Broadcast()
	})
	defer timer.Stop()
	for ; !f.ended && !late; f.change.Wait() {
		if got := min(int64(n), f.windows[id], f.windows[0]); got > 0 {
			f.windows[id] -= got
			f.windows[0] -= got
			return int(got)
		}
	}
	return 0
}

// prefixed is a message of gRPC's: a byte that says whether it is compressed, its length, and as
// much of it as there is.
func prefixed(compressed byte, length int, b []byte) []byte {
	head := binary.BigEndian.AppendUint32([]byte{compressed}, uint32(length))
	return append(head, b...)
}
