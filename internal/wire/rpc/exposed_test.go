package rpc_test

import (
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	"github.com/seqsvr/seqsvr/tests/kit/textlog"
	"github.com/seqsvr/seqsvr/tests/kit/tlstest"
)

func TestPlaintextIsToldOfBeyondLoopbackAlone(t *testing.T) {
	files := tlstest.New(t, "ca").Issue(t.TempDir(), "server", 0)
	with := func(p rpc.Plaintext) *rpc.TLS {
		secured := tlstest.Open(t, files)
		secured.AllowPlaintext(p)
		return secured
	}
	addrs := []string{"127.0.0.1:1", "", "[::1]:1", "localhost:1", "127.3.2.1:1", "[::]:1", "0.0.0.0:1", "10.0.0.1:1", "store-1:1", ":1"}
	open := addrs[5:]
	for name, test := range map[string]struct {
		tls  *rpc.TLS
		want []string
	}{
		"without TLS":             {nil, open},
		"with TLS":                {with(rpc.NoPlaintext), nil},
		"with both":               {with(rpc.AcceptPlaintext), open},
		"with plaintext dialled":  {with(rpc.DialPlaintext), open},
		"a certificate, no steps": {tlstest.Open(t, files), nil},
	} {
		if got := test.tls.Exposed(addrs...); !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
		log := &textlog.Log{}
		test.tls.WarnExposed(slog.New(slog.NewTextHandler(log, nil)), addrs...)
		lines := strings.Count(log.String(), "\n")
		if told := strings.Contains(log.String(), "level=WARN msg=\"PLAINTEXT BEYOND THIS MACHINE") && strings.Contains(log.String(), "10.0.0.1:1"); told != (test.want != nil) || lines > 1 {
			t.Errorf("%s: the log has %s", name, log)
		}
	}
	log := &textlog.Log{}
	(*rpc.TLS)(nil).WarnExposed(slog.New(slog.NewTextHandler(log, nil)), addrs[:5]...)
	if log.String() != "" {
		t.Errorf("on loopback: %s", log)
	}
}
