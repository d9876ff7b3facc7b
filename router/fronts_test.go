package router

import (
	"errors"
	"net"
	"strings"
	"testing"
)

func TestARouterOpensAllItsFrontsOrNone(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	r := &Router{cfg: Config{Listen: "127.0.0.1:0", RESPListen: "127.0.0.1:0", ConsoleListen: taken.Addr().String()}}
	r.fronts = r.ports()
	if err := r.listen(); err == nil || !strings.HasPrefix(err.Error(), "router: console: ") {
		t.Fatalf("an address that is taken: got %v, want an error of the console", err)
	}
	for _, p := range r.fronts[:2] {
		if p.lis == nil {
			t.Fatalf("%s was not opened", p.name)
		}
		if err := p.lis.Close(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s: got %v, want a listener that was closed before", p.name, err)
		}
	}
	if got := r.addr(httpFront); got != "" {
		t.Errorf("a front that the router does not have: got %q", got)
	}
}
