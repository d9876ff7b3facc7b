package auth

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

func TestABadPolicyIsRefusedWithItsLine(t *testing.T) {
	hash := NewToken().Hash().Hex()
	secret := string(NewToken())
	tests := []struct{ text, want string }{
		{"principals:\n  - name: a\n    role: caller\n    colour: red\n", "line 4: field colour not found"},
		{"principles: []\n", "line 1: field principles not found"},
		{"principals:\n  - name: a\n    role: root\n", `line 2: principals[0] "a": role "root"`},
		{"principals:\n  - {name: a, role: store}\n", `role "store": expected caller`},
		{"principals:\n  - {name: '', role: caller}\n", "name: expected 1 to 128"},
		{"principals:\n  - {name: a/b, role: caller}\n", "name: expected 1 to 128"},
		{"principals:\n  - {name: a, role: caller}\n  - {name: a, role: caller}\n", "line 3: principals[1] \"a\": caller/a stands there twice"},
		{"principals:\n  - name: a\n    role: caller\n    tokens: [" + secret + "]\n", "hex digits"},
		{"principals:\n  - name: a\n    role: caller\n    tokens: " + secret + "\n", "line 4: cannot unmarshal"},
		{"principals:\n  - {name: a, role: caller, tokens: [" + hash + "]}\n  - {name: b, role: reader, tokens: [" + hash + "]}\n", "line 3: principals[1] \"b\": a token that caller/a has, too"},
		{"principals:\n  - {name: a, role: reader, grants: [{space: user, verbs: [read]}]}\n", "grants of a reader"},
		{"principals:\n  - {name: a, role: caller, grants: [{verbs: [read]}]}\n", "none of space, namespace and tag"},
		{"principals:\n  - {name: a, role: caller, grants: [{space: user, tag: t, verbs: [read]}]}\n", "more than one of"},
		{"principals:\n  - {name: a, role: caller, grants: [{space: user}]}\n", "no verbs"},
		{"principals:\n  - {name: a, role: caller, grants: [{space: user, verbs: [give]}]}\n", `verb "give"`},
		{"principals:\n  - {name: a, role: caller, grants: [{tag: t, verbs: [raise], max_raise: 5}]}\n", "raise of a tag"},
		{"principals:\n  - {name: a, role: caller, grants: [{space: user, verbs: [raise]}]}\n", "expected both or none"},
		{"principals:\n  - {name: a, role: caller, grants: [{space: user, verbs: [take], max_raise: 5}]}\n", "expected both or none"},
		{"principals:\n  - {name: a, role: caller, grants: [{space: user, verbs: [take], rate: 010, burst: 20}]}\n", `line 2: "010": leading zero`},
		{"principals:\n  - {name: a, role: caller, grants: [{space: user, verbs: [raise], max_raise: 9007199254740992}]}\n", "max_raise"},
		{"principals:\n  - {name: a, role: caller, grants: [{space: 'a*b', verbs: [take]}]}\n", "its beginning and one *"},
		{"principals:\n  - {name: a, role: caller, grants: [{space: user, verbs: [take], burst: 5}]}\n", "burst without rate"},
		{"principals:\n  - {name: a, role: caller, grants: [{space: user, verbs: [take], rate: -5}]}\n", "line 2: cannot unmarshal"},
		{"principals:\n  - {name: a, role: caller, grants: [{space: user, verbs: [take]}, {space: user, verbs: [read]}]}\n", "stands there twice"},
		{"clusters: [a, 'b c']\n", `clusters[1] "b c": expected 1 to 128`},
		{"clusters: [a, b, a]\n", "clusters[2]: a stands there twice"},
		{"principals: [\n", "line"},
		{"principals: []\n---\nprincipals: []\n", "more than one document"},
	}
	for _, test := range tests {
		_, err := ParsePolicy([]byte(test.text))
		if !errors.Is(err, ErrPolicy) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: got %v, want ErrPolicy with %q", test.text, err, test.want)
			continue
		}
		for _, hidden := range []string{secret, secret[len(TokenPrefix):], hash} {
			if strings.Contains(err.Error(), hidden) {
				t.Errorf("%q: the error shows a token or its hash: %v", test.text, err)
			}
		}
	}
	for _, text := range []string{"", "# nobody\n", "principals: []\n"} {
		if p, err := ParsePolicy([]byte(text)); err != nil || len(p.Principals) != 0 {
			t.Errorf("%q: got %v", text, err)
		}
	}
}

// written is a policy file of one caller with a token, and a reader and an operator.
type written struct {
	path                     string
	caller, reader, operator Token
}

func write(t *testing.T, grants string) written {
	t.Helper()
	w := written{filepath.Join(t.TempDir(), "policy.yaml"), NewToken(), NewToken(), NewToken()}
	w.put(t, fmt.Sprintf("principals:\n  - {name: chat, role: caller, tokens: [%s], grants: [%s]}\n  - {name: eye, role: reader, tokens: [%s]}\n  - {name: ops, role: operator, tokens: [%s]}\n",
		w.caller.Hash().Hex(), grants, w.reader.Hash().Hex(), w.operator.Hash().Hex()))
	return w
}

func (w written) put(t *testing.T, text string) {
	t.Helper()
	if err := os.WriteFile(w.path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func guard(t *testing.T, mode Mode, policy string) (*Guard, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	g, err := New(Config{Mode: mode, Cluster: "c", PolicyFile: policy, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	return g, &log
}

func next(space string) any { return &pb.NextRequest{Space: space, Count: 1} }

func TestARaiseIsToldHowFarItsGrantGoes(t *testing.T) {
	w := write(t, "{space: user, verbs: [take, raise], max_raise: 100}, {space: 'us*', verbs: [raise], max_raise: 1000}, {space: 'r*', verbs: [raise], max_raise: 7}")
	for _, one := range []struct {
		mode        Mode
		space       string
		asked, want uint64
	}{
		{Require, "user", 0, 1000}, // of two grants the one that goes further
		{Require, "", 0, 1000},
		{Require, "room", 0, 7},
		{Require, "room", 5, 5}, // less than the grant
		{Require, "room", 8, 7},
		{Accept, "room", 0, 0}, // every call is served
	} {
		g, _ := guard(t, one.mode, w.path)
		r := &pb.RaiseRequest{Space: one.space, AtLeast: 5000, MaxJump: one.asked}
		if err := g.Check(Credentials{Token: w.caller.Secret()}, pb.Sequence_Raise_FullMethodName, r); err != nil || r.MaxJump != one.want {
			t.Errorf("%+v: got %d, %v", one, r.MaxJump, err)
		}
	}
	g, _ := guard(t, Require, w.path)
	for demand, ok := range map[string]bool{"user:raise=1000": true, "user:raise=1001": false, "room:raise=7": true, "room:raise=8": false} {
		d, err := ParseDemand(demand)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := g.Try(Credentials{Token: w.caller.Secret()}, "", d); (err == nil) != ok {
			t.Errorf("%s: got %v", demand, err)
		}
	}
}

func TestACallerMayWhatItsGrantsSayAndNothingElse(t *testing.T) {
	w := write(t, "{space: user, verbs: [take, read]}, {space: 'room*', verbs: [take, raise], max_raise: 100}, {namespace: orders, verbs: [take]}, {namespace: '7', verbs: [take]}, {tag: 'inv-*', verbs: [take]}")
	g, log := guard(t, Require, w.path)
	batch := func(spaces ...string) *pb.BatchNextRequest {
		r := &pb.BatchNextRequest{}
		for _, s := range spaces {
			r.Batches = append(r.Batches, &pb.Batch{Space: s, Uids: []uint64{1}})
		}
		return r
	}
	type m = any
	tests := []struct {
		method  string
		message m
		ok      bool
	}{
		{pb.Sequence_Next_FullMethodName, next(""), true},
		{pb.Sequence_Next_FullMethodName, next("user"), true},
		{pb.Sequence_Next_FullMethodName, next("users"), false},
		{pb.Sequence_Next_FullMethodName, next("room-1"), true},
		{pb.Sequence_Next_FullMethodName, next("roo"), false},
		{pb.Sequence_Next_FullMethodName, &pb.RaiseRequest{}, false}, // a message of another method
		{pb.Sequence_BatchNext_FullMethodName, batch("user", "room"), true},
		{pb.Sequence_BatchNext_FullMethodName, batch("user", "other"), false},
		{pb.Sequence_BatchNext_FullMethodName, batch("other", "user"), false},
		{pb.Sequence_Current_FullMethodName, &pb.CurrentRequest{Batches: batch("user").Batches}, true},
		{pb.Sequence_Current_FullMethodName, &pb.CurrentRequest{Batches: batch("room").Batches}, false},
		{pb.Sequence_Stream_FullMethodName, &pb.StreamRequest{Call: &pb.StreamRequest_Next{Next: batch("user")}}, true},
		{pb.Sequence_Stream_FullMethodName, &pb.StreamRequest{Call: &pb.StreamRequest_Next{Next: batch("other")}}, false},
		{pb.Sequence_Stream_FullMethodName, &pb.StreamRequest{Call: &pb.StreamRequest_Current{Current: &pb.CurrentRequest{Batches: batch("room").Batches}}}, false},
		{pb.Sequence_Stream_FullMethodName, tickets("user", "room"), true},
		{pb.Sequence_Stream_FullMethodName, tickets("user", "other"), false},
		{pb.Sequence_Stream_FullMethodName, tickets("other", "user"), false},
		{pb.Sequence_Raise_FullMethodName, &pb.RaiseRequest{Space: "room", AtLeast: 100}, true},
		{pb.Sequence_Raise_FullMethodName, &pb.RaiseRequest{Space: "room", AtLeast: 101}, true}, // how far it is, the owner knows
		{pb.Sequence_Raise_FullMethodName, &pb.RaiseRequest{Space: "room", AtLeast: 5, Force: true}, false},
		{pb.Sequence_Raise_FullMethodName, &pb.RaiseRequest{AtLeast: 5}, false},
		{pb.Snowflake_Generate_FullMethodName, &pb.SnowflakeGenerateRequest{Namespace: "orders", Count: 1}, true},
		{pb.Snowflake_Generate_FullMethodName, &pb.SnowflakeGenerateRequest{Alias: 7, Count: 1}, true},
		{pb.Snowflake_Generate_FullMethodName, &pb.SnowflakeGenerateRequest{Namespace: "007", Count: 1}, true},
		{pb.Snowflake_Generate_FullMethodName, &pb.SnowflakeGenerateRequest{Namespace: "orders", Alias: 8, Count: 1}, false},
		{pb.Snowflake_Generate_FullMethodName, &pb.SnowflakeGenerateRequest{Count: 1}, false}, // "default"
		{pb.Snowflake_Delegate_FullMethodName, &pb.SnowflakeDelegateRequest{Namespace: "orders"}, true},
		{pb.Snowflake_PutNamespace_FullMethodName, &pb.SnowflakePutNamespaceRequest{Name: "orders"}, false},
		{pb.Segment_Take_FullMethodName, &pb.SegmentTakeRequest{Tag: "inv-1"}, true},
		{pb.Segment_Take_FullMethodName, &pb.SegmentTakeRequest{Tag: "inv"}, false},
		{pb.Segment_Status_FullMethodName, &pb.SegmentStatusRequest{Tag: "inv-1"}, false},
		{pb.Admin_Status_FullMethodName, &pb.StatusRequest{}, false},
		{pb.Store_Read_FullMethodName, &pb.ReadRequest{}, false},
		{pb.Peer_Offer_FullMethodName, &pb.OfferRequest{}, false},
		{"/seqsvr.v1.Sequence/Nothing", nil, false},
		{"", nil, false},
	}
	for _, test := range tests {
		err := g.Check(Credentials{Token: string(w.caller)}, test.method, test.message)
		if (err == nil) != test.ok || err != nil && !errors.Is(err, seq.ErrForbidden) {
			t.Errorf("%s %v: got %v, want allowed: %v", test.method, test.message, err, test.ok)
		}
	}
	for _, secret := range []Token{w.caller, w.reader} {
		if strings.Contains(log.String(), string(secret)) || strings.Contains(log.String(), secret.Hash().Hex()) {
			t.Error("the log shows a token or its hash")
		}
	}
}

// tickets is a message that opens a ticket in a space, and ends one in another.
func tickets(opens, ends string) *pb.StreamRequest {
	return &pb.StreamRequest{Call: &pb.StreamRequest_Tickets{Tickets: &pb.TicketsRequest{
		Opens: []*pb.OpenBatch{{Keys: &pb.Batch{Space: opens, Uids: []uint64{1}}}},
		Dones: []*pb.DoneBatch{{Keys: &pb.Batch{Space: ends, Uids: []uint64{1}}, First: []uint64{1}, Tickets: []uint64{1}}}}}}
}

func TestAReaderReadsAndARouterDoesNotForce(t *testing.T) {
	w := write(t, "")
	g, _ := guard(t, Require, w.path)
	reads := &pb.StreamRequest{Call: &pb.StreamRequest_Current{Current: &pb.CurrentRequest{Batches: []*pb.Batch{{Uids: []uint64{1}}}}}}
	takes := &pb.StreamRequest{Call: &pb.StreamRequest_Next{Next: &pb.BatchNextRequest{Batches: []*pb.Batch{{Uids: []uint64{1}}}}}}
	router := Credentials{Evidence: Evidence{Identity: Identity{"c", Router, "r1"}, Until: time.Now().Add(time.Hour)}}
	for _, test := range []struct {
		who     Credentials
		method  string
		message any
		ok      bool
	}{
		{Credentials{Token: string(w.reader)}, pb.Sequence_Stream_FullMethodName, reads, true},
		{Credentials{Token: string(w.reader)}, pb.Sequence_Stream_FullMethodName, takes, false},
		{router, pb.Sequence_Stream_FullMethodName, takes, true},
		{router, pb.Sequence_Raise_FullMethodName, &pb.RaiseRequest{AtLeast: 5}, true},
		{router, pb.Sequence_Raise_FullMethodName, &pb.RaiseRequest{AtLeast: 5, Force: true}, false},
		{Credentials{Token: string(w.operator)}, pb.Sequence_Raise_FullMethodName, &pb.RaiseRequest{AtLeast: 5, Force: true}, true},
	} {
		if err := g.Check(test.who, test.method, test.message); (err == nil) != test.ok {
			t.Errorf("%s: got %v, want allowed: %v", test.method, err, test.ok)
		}
	}
}

func TestWhoIsNobodyIsToldWhy(t *testing.T) {
	w := write(t, "{space: user, verbs: [take]}")
	g, log := guard(t, Require, w.path)
	soon := time.Now().Add(time.Hour)
	unknown := NewToken()
	shown := func(r Role, name string) Evidence { return Evidence{Identity: Identity{"c", r, name}, Until: soon} }
	for _, test := range []struct {
		who  Credentials
		want string // empty if the call is allowed
	}{
		{Credentials{}, "neither a certificate with a role nor a token"},
		{Credentials{Token: string(unknown)}, "unknown or was revoked"},
		{Credentials{Token: string(unknown), Evidence: shown(Caller, "chat")}, "unknown or was revoked"}, // a certificate mends no token
		{Credentials{Token: "swordfish"}, "malformed token"},
		{Credentials{Err: fmt.Errorf("%w: two headers", seq.ErrUnauthenticated)}, "two headers"},
		{Credentials{Evidence: Evidence{Err: ErrNoURI}}, "without a URI"},
		{Credentials{Evidence: Evidence{Identity: Identity{"c", Caller, "chat"}, Until: time.Now().Add(-time.Second)}}, "has expired"},
		{Credentials{Evidence: shown(Caller, "eve")}, "caller/eve is not in the policy"},
		{Credentials{Evidence: shown(Operator, "chat")}, "operator/chat is not in the policy"},
		{Credentials{Evidence: shown(Caller, "chat")}, ""},
		{Credentials{Token: string(w.caller), Evidence: shown(Store, "s1")}, ""}, // the token counts
	} {
		err := g.Check(test.who, pb.Sequence_Next_FullMethodName, next(""))
		if test.want == "" && err == nil {
			continue
		}
		if err == nil || !errors.Is(err, seq.ErrUnauthenticated) || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "swordfish") {
			t.Errorf("%+v: got %v, want %q", test.who, err, test.want)
		}
	}
	if text := log.String(); strings.Contains(text, string(unknown)) || strings.Contains(text, "swordfish") {
		t.Errorf("the log shows a token: %s", text)
	}
}

func TestAPolicyTakesEffectAtReloadAndABadOneLeavesTheFormerInUse(t *testing.T) {
	w := write(t, "{space: user, verbs: [take]}")
	g, log := guard(t, Require, w.path)
	ask := func() error {
		return g.Check(Credentials{Token: string(w.caller)}, pb.Sequence_Next_FullMethodName, next(""))
	}
	if err := ask(); err != nil {
		t.Fatal(err)
	}
	w.put(t, "principals:\n  - name: chat\n    rolle: caller\n")
	g.Reload()
	g.Reload()
	if err := ask(); err != nil {
		t.Errorf("after a bad policy: %v", err)
	}
	if text := log.String(); !strings.Contains(text, "line 3: field rolle not found") || strings.Count(text, "level=ERROR") != 1 {
		t.Errorf("log %q, want one error with the line", text)
	}
	w.put(t, "principals: []\n")
	if err := os.Chmod(w.path, 0o644); err != nil {
		t.Fatal(err)
	}
	g.Reload()
	if err := ask(); err != nil || !strings.Contains(log.String(), "mode 0644: expected 0600, chmod 600") {
		t.Errorf("after a policy that is open to others: %v, log %q", err, log)
	}
	if err := os.Chmod(w.path, 0o600); err != nil {
		t.Fatal(err)
	}
	g.Reload()
	if err := ask(); !errors.Is(err, seq.ErrUnauthenticated) {
		t.Errorf("after its principal was deleted: got %v", err)
	}
	if err := os.Remove(w.path); err != nil {
		t.Fatal(err)
	}
	g.Reload()
	if err := ask(); !errors.Is(err, seq.ErrUnauthenticated) {
		t.Errorf("without a file: got %v, want the former policy", err)
	}
}

func TestAChangedPolicyIsNoticedWithoutASignal(t *testing.T) {
	w := write(t, "{space: user, verbs: [take]}")
	g, _ := guard(t, Require, w.path)
	w.put(t, "principals: []\n")
	g.looked.Store(-int64(lookEvery)) // a second has gone by
	if err := g.Check(Credentials{Token: string(w.caller)}, pb.Sequence_Next_FullMethodName, next("")); !errors.Is(err, seq.ErrUnauthenticated) {
		t.Errorf("got %v", err)
	}
}

func TestAcceptServesAndCountsWhatRequireRefuses(t *testing.T) {
	g, log := guard(t, Accept, "")
	for range 3 {
		if err := g.Check(Credentials{}, pb.Peer_Offer_FullMethodName, nil); err != nil {
			t.Errorf("got %v", err)
		}
	}
	var counted uint64
	for _, n := range g.Refused() {
		counted += n
	}
	if counted != 3 || !strings.Contains(log.String(), "would refuse") {
		t.Errorf("counted %d, log %q", counted, log)
	}
	var off *Guard
	if off.Check(Credentials{}, "", nil) != nil || off.Mode() != Off || off.Refused()["forbidden"] != 0 {
		t.Error("a nil guard refuses")
	}
	off.Reload()
}

func TestAQuotaIsChargedByKeysAndSurvivesANewPolicy(t *testing.T) {
	w := write(t, "{space: user, verbs: [take, read], rate: 1, burst: 20}, {space: other, verbs: [take]}")
	g, _ := guard(t, Require, w.path)
	ask := func(keys int) error {
		return g.Check(Credentials{Token: string(w.caller)}, pb.Sequence_BatchNext_FullMethodName, &pb.BatchNextRequest{Batches: []*pb.Batch{{Uids: make([]uint64, keys)}}})
	}
	if err := ask(20); err != nil {
		t.Fatal(err)
	}
	var quota *QuotaError
	if err := ask(15); !errors.As(err, &quota) || !errors.Is(err, seq.ErrQuota) || !errors.Is(err, seq.ErrOverloaded) ||
		quota.RetryAfter <= 0 || quota.RetryAfter > 15001*time.Millisecond || !strings.Contains(err.Error(), "caller/chat has 1 keys a second of space user") {
		t.Errorf("got %v", err)
	}
	g.Reload()
	if err := ask(15); !errors.Is(err, seq.ErrQuota) {
		t.Errorf("after a new policy: %v", err)
	}
	if err := g.Check(Credentials{Token: string(w.caller)}, pb.Sequence_Next_FullMethodName, next("other")); err != nil {
		t.Errorf("another space: %v", err)
	}
	if err := g.Check(Credentials{Token: string(w.operator)}, pb.Sequence_Next_FullMethodName, next("")); err != nil {
		t.Errorf("another principal: %v", err)
	}
}

func TestTheCellRateLetsThroughTheBurstAndThenTheRate(t *testing.T) {
	var q quota
	r := Rate{PerSecond: 100, Burst: 10}
	steps := []struct {
		at   time.Duration
		keys int
		wait time.Duration
	}{
		{0, 10, 0},
		{0, 1, 10 * time.Millisecond},
		{10 * time.Millisecond, 1, 0},
		{10 * time.Millisecond, 1, 10 * time.Millisecond},
		{time.Second, 1000, 0}, // above the burst: when nothing else is charged
		{time.Second, 1, 9910 * time.Millisecond},
		{10900 * time.Millisecond, 1, 10 * time.Millisecond},
		{10910 * time.Millisecond, 1, 0},
		{10910 * time.Millisecond, 0, 0},
	}
	for i, s := range steps {
		if got := q.charge(r, s.keys, s.at); got != s.wait {
			t.Errorf("step %d: got %v, want %v", i, got, s.wait)
		}
	}
	if q.charge(Rate{}, 1<<30, 0) != 0 {
		t.Error("no rate, and yet bounded")
	}
}

func TestATokenShowsItselfToNobody(t *testing.T) {
	token := NewToken()
	if got, err := ParseToken(" " + token.Secret() + "\n"); err != nil || got != token {
		t.Errorf("got %v", err)
	}
	for _, text := range []string{fmt.Sprint(token), fmt.Sprintf("%v %s %q %+v %#v", token, token, token, struct{ T Token }{token}, token), fmt.Sprint(token.Hash())} {
		if strings.Contains(text, token.Secret()[len(TokenPrefix):]) {
			t.Errorf("printed: %s", text)
		}
	}
	for _, text := range []string{"", TokenPrefix, token.Secret() + "x", token.Secret()[1:], strings.ToUpper(token.Secret())} {
		if _, err := ParseToken(text); !errors.Is(err, ErrBadToken) || text != "" && text != TokenPrefix && strings.Contains(err.Error(), text) {
			t.Errorf("%q: got %v", text, err)
		}
	}
}

func TestBearerTakesOneHeaderOfThatScheme(t *testing.T) {
	for _, test := range []struct {
		values []string
		want   string
		ok     bool
	}{
		{nil, "", true}, {[]string{"Bearer x"}, "x", true}, {[]string{"bearer  x "}, "x", true},
		{[]string{"Basic x"}, "", false}, {[]string{"Bearer "}, "", false}, {[]string{""}, "", false}, {[]string{"Bearer x", "Bearer x"}, "", false},
	} {
		got, err := Bearer(test.values)
		if got != test.want || (err == nil) != test.ok {
			t.Errorf("%q: got %q, %v", test.values, got, err)
		}
	}
}

func FuzzParsePolicy(f *testing.F) {
	f.Add("principals:\n  - {name: a, role: caller, grants: [{space: user, verbs: [take], rate: 5}]}\n")
	f.Add("<<: {principals: [{name: a, role: root}]}\n")
	f.Add("principals: &p\n  - name: a\n    role: reader\n")
	f.Add("~\n")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePolicy([]byte(text))
		if (p == nil) == (err == nil) || err != nil && !errors.Is(err, ErrPolicy) {
			t.Fatalf("%q: %v, %v", text, p, err)
		}
		if err != nil {
			return
		}
		token := NewToken()
		next, err := Entry{Name: "added", Role: Reader, Token: token.Hash()}.addTo([]byte(text))
		if err != nil {
			return
		}
		if after, err := ParsePolicy(next); err == nil && len(after.Principals) < len(p.Principals) {
			t.Errorf("%q: principals are lost: %q", text, next)
		}
	})
}

func TestRefusalsAreCountedByTheirReason(t *testing.T) {
	w := write(t, "{space: user, verbs: [take], rate: 1}")
	g, _ := guard(t, Require, w.path)
	known, method := Credentials{Token: w.caller.Secret()}, pb.Sequence_Next_FullMethodName
	for range 3 {
		_ = g.Check(Credentials{}, method, next("user"))
	}
	_, _ = g.Identify(Credentials{Token: "x"})
	_, _ = g.Identify(known)
	for range 2 {
		_ = g.Check(known, method, next("other"))
	}
	_ = g.Check(known, method, next("user"))
	_ = g.Check(known, method, next("user"))
	want := map[string]uint64{"unauthenticated": 4, "forbidden": 2, "quota": 1}
	if got := g.Refused(); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := (*Guard)(nil).Refused(); len(got) != len(want) {
		t.Errorf("without a guard: %v, want zeros for the same reasons", got)
	}
}
