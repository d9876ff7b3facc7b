package resp

import (
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/internal/wire/auth"
)

// guarded returns a guard that requires a token, and a token that may take from the space of users.
func guarded(t *testing.T) (*auth.Guard, auth.Token) {
	t.Helper()
	token := auth.NewToken()
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	text := fmt.Sprintf("principals:\n  - name: chat\n    role: caller\n    tokens: [%s]\n    grants: [{space: user, verbs: [take, read]}]\n", token.Hash().Hex())
	if err := os.WriteFile(policy, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	guard, err := auth.New(auth.Config{Mode: auth.Require, Cluster: "c1", PolicyFile: policy})
	if err != nil {
		t.Fatal(err)
	}
	return guard, token
}

func TestATransactionIsAllowedAsAWholeOrNotAtAll(t *testing.T) {
	guard, token := guarded(t)
	eachWay(t, func() Numbers { return newCounters() }, func(s *Server) {
		s.Authorize(guard, func(*tls.ConnectionState) auth.Evidence { return auth.Evidence{} })
	}, func(t *testing.T, s *Server, addr string, _ func()) {
		c := dial(t, addr)
		starts := func(want string, words ...string) {
			t.Helper()
			c.send(array(words...))
			if got := c.reply(); !strings.HasPrefix(got, want) {
				t.Errorf("%q: got %s, want %s ...", words, got, want)
			}
		}
		starts("-NOAUTH", "INCR", "seq:1")
		starts("-WRONGPASS", "AUTH", "chat", "wrong")
		starts("+OK", "AUTH", "chat", token.Secret())
		starts(":1", "INCR", "seq:1")
		starts("-NOPERM", "INCR", "tag:orders")
		starts("+OK", "MULTI")
		starts("+QUEUED", "INCR", "seq:1")
		starts("+QUEUED", "INCR", "tag:orders")
		starts("-EXECABORT Transaction discarded because of: NOPERM", "EXEC")
		starts("$1", "GET", "seq:1") // nothing was taken
		starts("+OK", "MULTI")
		starts("+QUEUED", "INCR", "seq:1")
		starts("*[:2]", "EXEC")
	})
}
