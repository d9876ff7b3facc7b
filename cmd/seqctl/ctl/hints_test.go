package ctl

import (
	"errors"
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/internal/ops/survey"
)

// The texts are those that real daemons gave.
func TestWhatIsWrongWithACertificateIsSaidOfTheRightOne(t *testing.T) {
	const handshake = `rpc error: code = Unavailable desc = connection error: desc = "transport: authentication handshake failed: `
	for _, test := range []struct{ err, reason, hint string }{
		{`rpc error: code = Unavailable desc = connection error: desc = "error reading server preface: remote error: tls: expired certificate"`, "expired certificate", "the certificate in --tls-cert has expired"},
		{handshake + `verify the certificate of 127.0.0.1:1 by the CA in ca.pem: tls: failed to verify certificate: x509: certificate has expired or is not yet valid: current time 2026-11-22T23:50:36Z is after 2026-11-22T23:49:15Z"`,
			"current time 2026-11-22T23:50:36Z is after 2026-11-22T23:49:15Z", "its certificate has expired"},
		{handshake + `server is not the one dialled: not authenticated: certificate of another cluster: \"spiffe://shop/alloc/alloc-1\": expected cluster \"other\""`,
			`expected cluster "other"`, "another cluster than --tls-cluster"},
		{handshake + `server is not the one dialled: it is spiffe://shop/caller/eve: expected role [store alloc router]"`, "expected role [store alloc router]", "no AllocSvr, router or store is there"},
		{handshake + `verify the certificate of 127.0.0.1:1 by the CA in ca.pem: tls: failed to verify certificate: x509: certificate signed by unknown authority"`,
			"certificate signed by unknown authority", "not one of the CA in --tls-ca"},
		{`rpc error: code = Unavailable desc = connection error: desc = "transport: Error while dialing: dial tcp 127.0.0.1:1: connect: connection refused"`, "connection refused", "is the cluster running?"},
	} {
		reason := survey.LastReason(errors.New(test.err))
		if got := hint(reason); reason != test.reason || !strings.Contains(got, test.hint) {
			t.Errorf("%s:\ngot %q (%s)\nwant %q (%s)", test.err, reason, got, test.reason, test.hint)
		}
	}
}
