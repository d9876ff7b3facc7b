package secure

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/wire/auth"
	"github.com/seqsvr/seqsvr/seq"
)

// sdk is a client that shows a token.
func (s *site) sdk(addr string, token auth.Token, change func(*client.Config)) (*client.Client, error) {
	s.t.Helper()
	file := filepath.Join(s.t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(token.Secret()), 0o600); err != nil {
		s.t.Fatal(err)
	}
	cfg := client.Config{Addrs: []string{addr}, ClusterID: cluster, TokenFile: file, Timeout: patient,
		TLS: &client.TLS{CAFile: filepath.Join(s.caDir, auth.CAFile), VerifyRole: true}}
	if change != nil {
		change(&cfg)
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), patient)
	defer cancel()
	c, err := client.New(ctx, cfg)
	if err == nil {
		s.t.Cleanup(func() { _ = c.Close() })
	}
	return c, err
}

func TestARevokedCallerOfTheSDKIsToldAtOnceByBothTiers(t *testing.T) {
	s := startSite(t, auth.Require)
	var known []*client.Client
	for _, addr := range []string{s.alloc.Addr(), s.route.Addr()} {
		c, err := s.sdk(addr, s.tokens[auth.Caller], func(cfg *client.Config) { cfg.Indirect = addr == s.route.Addr() })
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Next(t.Context(), client.Key{UID: 42}); err != nil {
			t.Fatal(err)
		}
		known = append(known, c)
		if _, err := s.sdk(addr, auth.NewToken(), nil); !errors.Is(err, seq.ErrUnauthenticated) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("an unknown token: got %v", err)
		}
	}
	s.write(auth.Operator)
	s.reload()
	for i, c := range known {
		if _, err := c.Next(t.Context(), client.Key{UID: 42}); !errors.Is(err, seq.ErrUnauthenticated) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("client %d, revoked: got %v", i, err)
		}
	}
	s.write(auth.Caller)
	s.reload()
	for i, c := range known {
		if _, err := c.Next(t.Context(), client.Key{UID: 42}); err != nil {
			t.Errorf("client %d, known again: %v", i, err)
		}
	}
	s.noSecrets()
}

func TestTheRouterForcesForNobody(t *testing.T) {
	s := startSite(t, auth.Require)
	const far = `{"uid":7,"at_least":100000000000,"force":true}`
	for _, r := range []auth.Role{auth.Caller, auth.Operator} {
		if code, answer := s.web(s.byToken(r), "POST", "/v1/raise", far); code != 403 || !strings.Contains(answer, "FORBIDDEN") {
			t.Errorf("as %s: got %d %s", r, code, answer)
		}
	}
	ops, err := s.sdk(s.alloc.Addr(), s.tokens[auth.Operator], nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ops.Raise(t.Context(), client.Key{UID: 7}, 100_000_000_000, client.Forced); err != nil {
		t.Errorf("an operator at the AllocSvr: %v", err)
	}
}

func TestAGrantBoundsHowFarARaiseGoesAndNotWhereItEnds(t *testing.T) {
	s := startSite(t, auth.Require)
	direct, err := s.sdk(s.alloc.Addr(), s.tokens[auth.Caller], nil)
	if err != nil {
		t.Fatal(err)
	}
	raise := func(to int) (code int, answer string) {
		return s.web(s.byToken(auth.Caller), "POST", "/v1/raise", fmt.Sprintf(`{"uid":7,"at_least":%d}`, to))
	}
	for _, to := range []int{1000, 2000, 3000} { // 1,000 each: what the grant lets one go
		if code, answer := raise(to); code != 200 {
			t.Errorf("to %d by the router: %d %s", to, code, answer)
		}
		if code, answer := raise(to + 1001); code != 403 || !strings.Contains(answer, "FORBIDDEN") {
			t.Errorf("to %d by the router: %d %s", to+1001, code, answer)
		}
		if _, err := direct.Raise(t.Context(), client.Key{UID: 7}, seq.Seq(to+1001)); !errors.Is(err, seq.ErrForbidden) {
			t.Errorf("to %d at the AllocSvr: %v", to+1001, err)
		}
	}
	if _, err := direct.Raise(t.Context(), client.Key{UID: 7}, 4000); err != nil {
		t.Errorf("to 4000 at the AllocSvr: %v", err)
	}
	// Of many, each by itself: uid 7 stands at 4,000, and 8 and 9 at 0.
	code, answer := s.web(s.byToken(auth.Caller), "POST", "/v1/raise/batch", `{"uids":[7,8,9],"at_least":[5000,1001,1000],"max_jump":0}`)
	if code != 200 || !strings.Contains(answer, `"values":[5000,0,1000]`) || !strings.Contains(answer, `"index":1,"code":"FORBIDDEN"`) {
		t.Errorf("of many by the router: %d %s", code, answer)
	}
	got, err := direct.RaiseBatch(t.Context(), "", []seq.UID{7, 8}, []seq.Seq{6001, 1000}, client.Within(1<<40))
	if err != nil || !errors.Is(got[0].Err, seq.ErrForbidden) || got[1] != (client.Raised{Seq: 1000}) {
		t.Errorf("of many at the AllocSvr: %+v, %v", got, err)
	}
	if got := s.redis(s.byToken(auth.Caller), "SEQ.RAISE seq:8 2000", "SEQ.RAISE seq:8 3001"); got[0] != ":2000" || !strings.HasPrefix(got[1], "-NOPERM FORBIDDEN") {
		t.Errorf("by RESP: %q", got)
	}
}

func TestAcceptServesEverybodyAndCountsThem(t *testing.T) {
	s := startSite(t, auth.Accept)
	if code, answer := s.web(s.nobody(), "POST", "/v1/next", `{"uid":7}`); code != 200 {
		t.Errorf("nobody by HTTP: %d %s", code, answer)
	}
	if got := s.redis(s.nobody(), "AUTH swordfish", "INCR seq:7"); got[0] != "+OK" || !strings.HasPrefix(got[1], ":") {
		t.Errorf("nobody by RESP: %q", got)
	}
	var refused uint64
	for _, g := range s.guards {
		for _, n := range g.Refused() {
			refused += n
		}
	}
	if refused != 2 || !strings.Contains(s.log.String(), "would refuse") || strings.Contains(s.log.String(), "swordfish") {
		t.Errorf("counted %d calls, want 2; log %s", refused, s.log)
	}
}
