package proxy

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

const patience = 20 * time.Second

// pair is a connection through a proxy, and the other end of it.
func pair(t *testing.T, p *Proxy, target net.Listener) (client, server net.Conn) {
	t.Helper()
	client, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	if server, err = target.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	return client, server
}

func start(t *testing.T) (*Proxy, net.Listener) {
	t.Helper()
	target, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = target.Close() })
	p, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	p.Target(target.Addr().String())
	return p, target
}

func send(t *testing.T, to net.Conn, data []byte) {
	t.Helper()
	if _, err := to.Write(data); err != nil {
		t.Fatal(err)
	}
}

func expect(t *testing.T, from net.Conn, want []byte) {
	t.Helper()
	got := make([]byte, len(want))
	_ = from.SetReadDeadline(time.Now().Add(patience))
	if _, err := io.ReadFull(from, got); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Fatalf("got other bytes than were sent")
	}
}

func TestWhatIsSentArrivesWholeAndInOrderThoughEveryPieceIsDelayed(t *testing.T) {
	p, target := start(t)
	client, server := pair(t, p, target)
	p.Set(Mode{Delay: time.Millisecond, Jitter: 3 * time.Millisecond})
	data := make([]byte, 300_000)
	for i := range data {
		data[i] = byte(i * 7 / 3)
	}
	go func() { _, _ = client.Write(data) }()
	expect(t, server, data)
	send(t, server, data[:5000])
	expect(t, client, data[:5000])
}

func TestADelayIsWaitedFor(t *testing.T) {
	p, target := start(t)
	client, server := pair(t, p, target)
	p.Set(Mode{Delay: 50 * time.Millisecond})
	began := time.Now()
	send(t, client, []byte("x"))
	expect(t, server, []byte("x"))
	if took := time.Since(began); took < 50*time.Millisecond {
		t.Errorf("arrived after %v, want 50ms at least", took)
	}
}

func TestAStalledWayHoldsItsBytesAndTheOtherWayGoesOn(t *testing.T) {
	p, target := start(t)
	client, server := pair(t, p, target)
	p.Set(Mode{StallA: true})
	send(t, client, []byte("held"))
	send(t, server, []byte("free"))
	expect(t, client, []byte("free"))
	_ = server.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if n, err := server.Read(make([]byte, 4)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("read %d bytes, %v, want none", n, err)
	}
	p.Set(Mode{})
	expect(t, server, []byte("held"))
}

func TestBreakAndRefuseEndConnections(t *testing.T) {
	p, target := start(t)
	client, _ := pair(t, p, target)
	p.Break()
	ended(t, client)
	p.Set(Mode{Refuse: true})
	refused, err := net.Dial("tcp", p.Addr())
	if err == nil { // the reset may come with the handshake, or after it
		t.Cleanup(func() { _ = refused.Close() })
		ended(t, refused)
	}
	p.Set(Mode{})
	again, server := pair(t, p, target)
	send(t, again, []byte("again"))
	expect(t, server, []byte("again"))
}

func TestTheEndOfWhatOneSideSendsIsPassedOn(t *testing.T) {
	p, target := start(t)
	client, server := pair(t, p, target)
	send(t, client, []byte("last words"))
	_ = client.(*net.TCPConn).CloseWrite()
	expect(t, server, []byte("last words"))
	if _, err := server.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("got %v, want the end", err)
	}
}

func TestCloseEndsConnectionsThatAreStalled(t *testing.T) {
	p, target := start(t)
	client, _ := pair(t, p, target)
	p.Set(Mode{StallA: true, StallB: true})
	send(t, client, []byte("never"))
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	ended(t, client)
}

// ended waits until a connection is known to be over.
func ended(t *testing.T, c net.Conn) {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(patience))
	if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read gave %v, want an end", err)
	}
}
