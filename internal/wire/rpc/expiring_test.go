package rpc

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"
)

func TestAConnectionEndsWithItsCertificate(t *testing.T) {
	mine, other := net.Pipe()
	defer mine.Close()
	held := expiring(mine, time.Now())
	if _, err := other.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("got %v, want the end", err)
	}
	if err := held.Close(); err != nil {
		t.Error(err)
	}
	if free := expiring(mine, time.Time{}); free != mine {
		t.Error("a connection without a certificate is held")
	}
}
