package linetest

import (
	"bufio"
	"errors"
	"io"
	"net"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Caller is a client of Redis's protocol on a connection of its own.
type Caller struct {
	Conn net.Conn
	In   *bufio.Reader
	t    *testing.T
}

// Dial connects a Caller, for at most Bound.
func Dial(t *testing.T, addr string) *Caller {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(Bound))
	return &Caller{conn, bufio.NewReader(conn), t}
}

// Send sends bytes.
func (c *Caller) Send(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c.Conn, text); err != nil {
		c.t.Fatal(err)
	}
}

// Reply reads one reply: "+OK", ":7", "$text", "-ERR ...", "nil", "[a b]".
func (c *Caller) Reply() string {
	c.t.Helper()
	line, err := c.In.ReadString('\n')
	if err != nil {
		c.t.Fatalf("reply: %v after %q", err, line)
	}
	line = strings.TrimSuffix(line, "\r\n")
	n, _ := strconv.Atoi(line[1:])
	switch {
	case line == "$-1" || line == "*-1" || line == "_":
		return "nil"
	case line[0] == '$':
		text := make([]byte, n+2)
		if _, err := io.ReadFull(c.In, text); err != nil {
			c.t.Fatal(err)
		}
		return "$" + string(text[:n])
	case line[0] == '*' || line[0] == '%':
		if line[0] == '%' {
			n *= 2
		}
		parts := make([]string, n)
		for i := range parts {
			parts[i] = c.Reply()
		}
		return line[:1] + "[" + strings.Join(parts, " ") + "]"
	}
	return line
}

// Want sends a command and checks its reply.
func (c *Caller) Want(want string, words ...string) {
	c.t.Helper()
	c.Send(Array(words...))
	if got := c.Reply(); got != want {
		c.t.Errorf("%q: got %s, want %s", words, got, want)
	}
}

// Array returns a command as clients send it.
func Array(words ...string) string {
	var b strings.Builder
	b.WriteString("*" + strconv.Itoa(len(words)) + "\r\n")
	for _, w := range words {
		b.WriteString("$" + strconv.Itoa(len(w)) + "\r\n" + w + "\r\n")
	}
	return b.String()
}

// Ended waits for the end of a connection.
func (c *Caller) Ended() error {
	_, err := io.Copy(io.Discard, c.In)
	if errors.Is(err, syscall.ECONNRESET) {
		return nil
	}
	return err
}

// DialFrom is Dial from another address of the loopback interface.
func DialFrom(t *testing.T, from, addr string) *Caller {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("elsewhere the loopback interface has one address")
	}
	conn, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}).Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(Bound))
	return &Caller{conn, bufio.NewReader(conn), t}
}

// Until waits for a condition.
func Until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(Bound); !ok(); <-time.After(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("still not: %s", what)
		}
	}
}
