package gate

import (
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
)

// newTraffic is a connection with so many bytes of unfinished messages at most.
func newTraffic(raw net.Conn, limit int64) *traffic {
	return &traffic{Conn: raw, limit: limit, all: new(atomic.Int64), memory: memory{account: newAccount(memoryBudget, strangersBudget)}}
}

// dataFrame is the header of a DATA frame of so many bytes, and these.
func dataFrame(n int) []byte {
	b := append([]byte{byte(n >> 16), byte(n >> 8), byte(n), 0, 0}, 0, 0, 0, 1)
	return append(b, make([]byte, n)...)
}

func TestOfUnfinishedMessagesNoMoreThanTheLimitIsRead(t *testing.T) {
	raw, other := net.Pipe()
	defer raw.Close()
	defer other.Close()
	conn := &framed{Conn: raw, traffic: newTraffic(raw, 1000+2*frameCost)}
	go func() {
		_, _ = other.Write(append([]byte{0, 0, 200, 4, 0, 0, 0, 0, 0}, make([]byte, 200)...)) // settings count for nothing
		_, _ = other.Write(dataFrame(900))
		_, _ = other.Write(dataFrame(100))
		_, _ = other.Write(dataFrame(1))
	}()
	if n, err := io.ReadFull(conn, make([]byte, 209+909+109)); err != nil {
		t.Errorf("up to the limit: %d, %v", n, err)
	}
	if _, err := io.ReadFull(conn, make([]byte, 10)); !errors.Is(err, errUnfinished) {
		t.Errorf("beyond it: got %v, want %v", err, errUnfinished)
	}
}
