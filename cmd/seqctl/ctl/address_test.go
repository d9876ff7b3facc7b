package ctl

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/internal/process/daemon"
	"github.com/seqsvr/seqsvr/seq"
)

func TestOfSeveralAddressesTheFirstThatAnswersIsAsked(t *testing.T) {
	n := serve(t)
	t.Setenv("SEQ_ADDR", gone.Addr+","+n.addr)
	for _, line := range []string{"status", "status --addr 127.0.0.1:1," + n.addr, "route --addr 127.0.0.1:1 --addr " + n.addr} {
		if out, err := call(t, strings.Fields(line)...); err != nil {
			t.Errorf("%s: %v and %q", line, err, out)
		}
	}
	_, err := call(t, "status", "--addr", "127.0.0.1:1,127.0.0.1:2")
	if !errors.Is(err, errNoAnswer) || !strings.Contains(err.Error(), "any of 2 addresses: ") || !strings.Contains(err.Error(), "127.0.0.1:1") || !strings.Contains(err.Error(), "127.0.0.1:2") {
		t.Errorf("got %v, want both addresses", err)
	}
	if _, err := call(t, "status", "--addr", n.addr+",there"); !errors.Is(err, daemon.ErrUsage) || !strings.Contains(err.Error(), `"there"`) {
		t.Errorf("got %v, want the address that is none", err)
	}
}

func TestAnAddressThatSpeaksHTTPIsCalledThat(t *testing.T) {
	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()
	addr := strings.TrimPrefix(web.URL, "http://")
	for _, line := range []string{"status", "next 42", "drain a"} {
		_, err := call(t, append(strings.Fields(line), "--addr", addr)...)
		if !errors.Is(err, errNoAnswer) || !strings.Contains(err.Error(), addr+": it speaks HTTP") || strings.Contains(err.Error(), "frame") {
			t.Errorf("%s: got %v, want that it speaks HTTP", line, err)
		}
	}
}

func TestAnAddressThatSpeaksSomethingElseIsCalledThat(t *testing.T) {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer lis.Close()
	go func() {
		for {
			conn, err := lis.Accept()
			if err != nil {
				return
			}
			fmt.Fprint(conn, "-ERR unknown command 'PRI'\r\n")
		}
	}()
	_, err = call(t, "status", "--addr", lis.Addr().String())
	if !errors.Is(err, errNoAnswer) || !strings.Contains(err.Error(), "it speaks another protocol") {
		t.Errorf("got %v, want that it speaks another protocol", err)
	}
}

func TestANodeThatThereIsNotFailsWithThoseThatThereAre(t *testing.T) {
	n := serve(t, gone)
	for _, line := range []string{"leases --node nosuch", "drain nobody"} {
		out, err := call(t, append(strings.Fields(line), "--addr", n.addr)...)
		if !errors.Is(err, seq.ErrUnknownNode) || !strings.Contains(err.Error(), "expected one of a, gone") || out != "" {
			t.Errorf("%s: got %v and %q, want ErrUnknownNode with the nodes", line, err, out)
		}
	}
}
