package gate_test

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/seqsvr/seqsvr/internal/wire/auth"
	"github.com/seqsvr/seqsvr/internal/wire/gate"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/textlog"
	"github.com/seqsvr/seqsvr/tests/kit/tlstest"
)

// counter is a Sequence that answers takes.
type counter struct{ pb.UnimplementedSequenceServer }

func (counter) Next(context.Context, *pb.NextRequest) (*pb.NextReply, error) {
	return &pb.NextReply{First: 1, Last: 1}, nil
}

func (counter) Stream(stream grpc.BidiStreamingServer[pb.StreamRequest, pb.StreamReply]) error {
	for {
		r, err := stream.Recv()
		if err != nil {
			return err
		}
		if err := stream.Send(&pb.StreamReply{Id: r.GetId()}); err != nil {
			return err
		}
	}
}

func (counter) Watch(stream grpc.BidiStreamingServer[pb.WatchRequest, pb.WatchReply]) error {
	for {
		r, err := stream.Recv()
		if err != nil {
			return err
		}
		if err := stream.Send(&pb.WatchReply{Ids: []uint32{r.GetFirstId()}}); err != nil {
			return err
		}
	}
}

// guarded serves a counter, checked by a policy, and gives its address and its log.
func guarded(t *testing.T, f rpc.TLSFiles, policy string, plaintext rpc.Plaintext) (addr string, guard *auth.Guard, log *textlog.Log) {
	t.Helper()
	log = &textlog.Log{}
	logger := slog.New(slog.NewTextHandler(log, nil))
	guard, err := auth.New(auth.Config{Mode: auth.Require, Cluster: "c", PolicyFile: policy, Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	secured, err := rpc.NewTLS(f, logger)
	if err != nil {
		t.Fatal(err)
	}
	secured.Identify("c", true)
	secured.AllowPlaintext(plaintext)
	creds, err := secured.ServerCreds(rpc.RequireClients)
	if err != nil {
		t.Fatal(err)
	}
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := gate.NewServer(gate.ServerConfig{Creds: creds, Auth: guard, Logger: logger})
	pb.RegisterSequenceServer(srv, counter{})
	gate.RegisterHealth(srv)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- gate.Serve(ctx, srv, lis) }()
	t.Cleanup(func() {
		stop()
		<-done
	})
	return lis.Addr().String(), guard, log
}

// take asks for a number over a new connection.
func take(t *testing.T, addr string, opts ...grpc.DialOption) error {
	t.Helper()
	conn, err := rpc.Dial(addr, opts...)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	_, err = pb.NewSequenceClient(conn).Next(ctx, &pb.NextRequest{Count: 1})
	return err
}

func TestABadCertificateIsRefusedWithItsReason(t *testing.T) {
	ca := tlstest.New(t, "ca")
	good := tlstest.As(t, "spiffe://c/operator/ops")
	server := ca.Issue(t.TempDir(), "server", -time.Hour, tlstest.As(t, "spiffe://c/alloc/a1"))
	for what, test := range map[string]struct {
		by      *tlstest.Authority
		changes []func(*x509.Certificate)
		want    string // of the call's error
		logged  string // by the server, for those that get no further than the handshake
	}{
		"expired":       {ca, []func(*x509.Certificate){good, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }}, "", "certificate has expired"},
		"not yet valid": {ca, []func(*x509.Certificate){good, func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Minute) }}, "", "not yet valid"},
		"unknown CA":    {tlstest.New(t, "other"), []func(*x509.Certificate){good}, "", "unknown authority"},
		"no URI":        {ca, nil, "certificate without a URI", ""},
		"two URIs":      {ca, []func(*x509.Certificate){good, good}, "certificate with several URIs", ""},
		"other cluster": {ca, []func(*x509.Certificate){tlstest.As(t, "spiffe://d/operator/ops")}, `expected cluster "c"`, ""},
		"unknown role":  {ca, []func(*x509.Certificate){tlstest.As(t, "spiffe://c/root/ops")}, "unknown role", ""},
		"not its role":  {ca, []func(*x509.Certificate){tlstest.As(t, "spiffe://c/store/s1")}, "store/s1 calls /seqsvr.v1.Sequence/Next", ""},
		"malformed":     {ca, []func(*x509.Certificate){tlstest.As(t, "spiffe://c/operator")}, "malformed URI", ""},
	} {
		addr, _, log := guarded(t, server, "", rpc.NoPlaintext)
		f := test.by.Issue(t.TempDir(), "client", 0, test.changes...)
		f.CA = server.CA
		err := take(t, addr, tlstest.Open(t, f).DialOptions()...)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", what, err, test.want)
		}
		if test.logged == "" {
			continue
		}
		for deadline := time.Now().Add(30 * time.Second); !strings.Contains(log.String(), test.logged); <-time.After(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s: the server's log does not say %q: %s", what, test.logged, log)
			}
		}
	}
	f := ca.Issue(t.TempDir(), "client", 0, good)
	f.CA = server.CA
	addr, _, _ := guarded(t, server, "", rpc.NoPlaintext)
	if err := take(t, addr, tlstest.Open(t, f).DialOptions()...); err != nil {
		t.Errorf("a sound one: %v", err)
	}
}

func TestACertificateOfAnotherNodeDoesNotTakeThePlaceOfTheOwn(t *testing.T) {
	ca, dir := tlstest.New(t, "ca"), t.TempDir()
	own := auth.Identity{Cluster: "c", Role: auth.Alloc, Name: "alloc-1"}
	log := &textlog.Log{}
	secured, err := rpc.NewTLS(ca.Issue(dir, "own", -time.Hour, tlstest.As(t, own.URI())), slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	for what, other := range map[string]auth.Identity{
		"another name":    {Cluster: "c", Role: auth.Alloc, Name: "alloc-2"},
		"another role":    {Cluster: "c", Role: auth.Store, Name: "alloc-1"},
		"another cluster": {Cluster: "d", Role: auth.Alloc, Name: "alloc-1"},
	} {
		if err := secured.Expect(other); !errors.Is(err, rpc.ErrTLS) || !strings.Contains(err.Error(), "expected "+other.URI()) {
			t.Errorf("%s: got %v", what, err)
		}
	}
	if err := errors.Join(secured.Expect(auth.Identity{Cluster: "c", Role: auth.Alloc}), secured.Expect(own)); err != nil {
		t.Fatal(err)
	}
	shows := func() string {
		cfg, err := secured.Listener(rpc.OptionalClients)
		if err != nil {
			t.Fatal(err)
		}
		now, err := cfg.GetConfigForClient(nil)
		if err != nil {
			t.Fatal(err)
		}
		return now.Certificates[0].Leaf.Subject.CommonName
	}
	ca.Issue(dir, "other", -time.Minute, tlstest.As(t, "spiffe://c/alloc/alloc-2"))
	if got := shows(); got != "own" || !strings.Contains(log.String(), "is the certificate of spiffe://c/alloc/alloc-2: expected spiffe://c/alloc/alloc-1") {
		t.Errorf("with another's in its place it shows that of %q; log %s", got, log)
	}
	ca.Issue(dir, "next", 0, tlstest.As(t, own.URI()))
	if got := shows(); got != "next" {
		t.Errorf("after its own was replaced it shows that of %q", got)
	}
}

func TestAServerOfAnotherRoleIsNotSpokenTo(t *testing.T) {
	ca := tlstest.New(t, "ca")
	eve := tlstest.As(t, "spiffe://c/caller/eve")
	addr, _, _ := guarded(t, ca.Issue(t.TempDir(), "server", -time.Hour, eve), "", rpc.NoPlaintext)
	mine := ca.Issue(t.TempDir(), "client", 0, tlstest.As(t, "spiffe://c/operator/ops"))
	for _, strict := range []bool{true, false} {
		log := &textlog.Log{}
		secured, err := rpc.NewTLS(mine, slog.New(slog.NewTextHandler(log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		secured.Identify("c", strict)
		err = take(t, addr, secured.DialOptions(auth.Alloc, auth.Store)...)
		if strict && (err == nil || !strings.Contains(err.Error(), "server is not the one dialled: it is spiffe://c/caller/eve: expected role [alloc store]")) {
			t.Errorf("got %v", err)
		}
		if !strict && (err != nil || !strings.Contains(log.String(), "would be refused")) {
			t.Errorf("on the way there: got %v, log %s", err, log)
		}
		if err := take(t, addr, secured.DialOptions()...); err != nil {
			t.Errorf("without roles: %v", err)
		}
	}
}

func TestAServerOfAnotherSetIsSpokenToByThoseWhoAskedForIt(t *testing.T) {
	ca := tlstest.New(t, "ca")
	addr, _, _ := guarded(t, ca.Issue(t.TempDir(), "server", -time.Hour, tlstest.As(t, "spiffe://c/alloc/a1")), "", rpc.NoPlaintext)
	dials := func(of string, sets func(string) bool) (own, any error) {
		secured := tlstest.Open(t, ca.Issue(t.TempDir(), "client", 0, tlstest.As(t, "spiffe://c/operator/ops")))
		secured.Identify(of, true)
		secured.TrustSets(sets)
		return take(t, addr, secured.DialOptions(auth.Alloc)...), take(t, addr, secured.DialSets(auth.Alloc)...)
	}
	isC := func(cluster string) bool { return cluster == "c" }
	for _, row := range []struct {
		of       string
		sets     func(string) bool
		own, any bool
	}{
		{"c", nil, true, true}, {"c", isC, true, true}, {"d", isC, false, true}, {"d", nil, false, false},
		{"d", func(cluster string) bool { return cluster == "e" }, false, false},
	} {
		own, any := dials(row.of, row.sets)
		if (own == nil) != row.own || (any == nil) != row.any {
			t.Errorf("as one of %s: dialled as an own server %v, as one of any Set %v, want %v and %v", row.of, own, any, row.own, row.any)
		}
		if any != nil && !strings.Contains(any.Error(), `expected cluster \"d\"`) {
			t.Errorf("got %v", any)
		}
	}
}

func TestOneListenerTakesPlaintextAndTLSWhileAClusterGoesOver(t *testing.T) {
	ca := tlstest.New(t, "ca")
	files := ca.Issue(t.TempDir(), "server", -time.Hour, tlstest.As(t, "spiffe://c/alloc/a1"))
	mine := tlstest.Open(t, ca.Issue(t.TempDir(), "client", 0, tlstest.As(t, "spiffe://c/operator/ops")))
	for _, plaintext := range []rpc.Plaintext{rpc.NoPlaintext, rpc.AcceptPlaintext, rpc.DialPlaintext} {
		addr, _, _ := guarded(t, files, "", plaintext)
		if err := take(t, addr, mine.DialOptions()...); err != nil {
			t.Errorf("%s: TLS: %v", plaintext, err)
		}
		// Plaintext shows nobody.
		err := take(t, addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if taken := errors.Is(err, seq.ErrUnauthenticated); taken != (plaintext != rpc.NoPlaintext) {
			t.Errorf("%s: plaintext: got %v", plaintext, err)
		}
	}
	mine.AllowPlaintext(rpc.DialPlaintext)
	if options := mine.DialOptions(); options != nil {
		t.Errorf("plaintext is dialled with %v", options)
	}
}

// onePolicy writes a policy with one caller, and a file with its token.
func onePolicy(t *testing.T, grant string) (policy, tokenFile string, token auth.Token) {
	t.Helper()
	dir := t.TempDir()
	policy, tokenFile, token = filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "token"), auth.NewToken()
	if err := auth.AddToken(policy, auth.Entry{Name: "chat", Role: auth.Caller, Token: token.Hash(), Grants: []string{grant}}); err != nil {
		t.Fatal(err)
	}
	if err := auth.WriteSecret(tokenFile, []byte(token.Secret()+"\n")); err != nil {
		t.Fatal(err)
	}
	return policy, tokenFile, token
}

func TestARevokedTokenEndsOnAnOpenStreamAndAQuotaSaysWhenToComeAgain(t *testing.T) {
	ca := tlstest.New(t, "ca")
	policy, file, token := onePolicy(t, "user:take,rate=1,burst=2")
	addr, guard, log := guarded(t, ca.Issue(t.TempDir(), "server", -time.Hour, tlstest.As(t, "spiffe://c/router/r1")), policy, rpc.NoPlaintext)
	creds, err := rpc.TokenFile(file)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := rpc.Dial(addr, append(tlstest.Open(t, rpc.TLSFiles{CA: ca.Issue(t.TempDir(), "none", 0).CA}).DialOptions(), grpc.WithPerRPCCredentials(creds))...)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	stream, err := pb.NewSequenceClient(conn).Stream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ask := func(id uint64, space string, uids ...uint64) pb.ErrorCode {
		t.Helper()
		call := &pb.StreamRequest_Next{Next: &pb.BatchNextRequest{Batches: []*pb.Batch{{Space: space, Uids: uids}}}}
		if err := stream.Send(&pb.StreamRequest{Id: id, Call: call}); err != nil {
			t.Fatal(err)
		}
		reply, err := stream.Recv()
		if err != nil || reply.GetId() != id {
			t.Fatalf("call %d: %v, %v", id, reply, err)
		}
		return reply.GetError().GetCode()
	}
	for i, step := range []struct {
		space string
		uids  []uint64
		want  pb.ErrorCode
	}{
		{"other", []uint64{1}, pb.ErrorCode_ERROR_CODE_FORBIDDEN},
		{"user", []uint64{1, 2, 3}, 0}, // more than the burst, of which nothing was used
		{"user", []uint64{1}, pb.ErrorCode_ERROR_CODE_QUOTA},
		{"other", []uint64{1}, pb.ErrorCode_ERROR_CODE_FORBIDDEN},
	} {
		if got := ask(uint64(i+1), step.space, step.uids...); got != step.want {
			t.Errorf("step %d: got %v, want %v", i, got, step.want)
		}
	}
	_, err = pb.NewSequenceClient(conn).Next(t.Context(), &pb.NextRequest{Count: 1})
	if !errors.Is(err, seq.ErrQuota) || !errors.Is(err, seq.ErrOverloaded) || !strings.Contains(err.Error(), "come again in") || rpc.RetryAfter(err) <= 0 {
		t.Errorf("a unary call: got %v, to come again in %v", err, rpc.RetryAfter(err))
	}
	if err := os.WriteFile(policy, []byte("principals: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	guard.Reload()
	if got := ask(9, "user", 1); got != pb.ErrorCode_ERROR_CODE_UNAUTHENTICATED {
		t.Errorf("after it was revoked: got %v", got)
	}
	if text := log.String(); strings.Contains(text, token.Secret()) || strings.Contains(text, token.Hash().Hex()) {
		t.Error("the log shows the token or its hash")
	}
}

func TestATokenIsNotSentOverPlaintext(t *testing.T) {
	_, file, _ := onePolicy(t, "user:take")
	creds, err := rpc.TokenFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if conn, err := rpc.Dial("127.0.0.1:1", grpc.WithPerRPCCredentials(creds)); err == nil {
		_ = conn.Close()
		t.Error("a connection without TLS takes a token")
	}
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := rpc.TokenFile(file); !errors.Is(err, auth.ErrOpenFile) || !strings.Contains(err.Error(), "chmod 600 "+file) {
		t.Errorf("a file that others read: got %v", err)
	}
}

func TestHealthIsForEverybody(t *testing.T) {
	ca := tlstest.New(t, "ca")
	addr, _, _ := guarded(t, ca.Issue(t.TempDir(), "server", -time.Hour), "", rpc.NoPlaintext)
	conn, err := rpc.Dial(addr, tlstest.Open(t, rpc.TLSFiles{CA: ca.Issue(t.TempDir(), "none", 0).CA}).DialOptions()...)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{}); err != nil {
		t.Error(err)
	}
	stream, err := healthpb.NewHealthClient(conn).Watch(t.Context(), &healthpb.HealthCheckRequest{})
	if err == nil {
		_, err = stream.Recv()
	}
	if err != nil && !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}

func TestKeysOfAWatchWithoutAGrantAreRefusedAndTheWatchGoesOn(t *testing.T) {
	ca := tlstest.New(t, "ca")
	policy, file, _ := onePolicy(t, "user:read,rate=1,burst=2")
	addr, _, _ := guarded(t, ca.Issue(t.TempDir(), "server", -time.Hour, tlstest.As(t, "spiffe://c/router/r1")), policy, rpc.NoPlaintext)
	creds, err := rpc.TokenFile(file)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := rpc.Dial(addr, append(tlstest.Open(t, rpc.TLSFiles{CA: ca.Issue(t.TempDir(), "none", 0).CA}).DialOptions(), grpc.WithPerRPCCredentials(creds))...)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	w, err := pb.NewSequenceClient(conn).Watch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, step := range []struct {
		space string
		uids  []uint64
		want  error
	}{
		{"other", []uint64{1, 2}, seq.ErrForbidden},
		{"user", []uint64{1, 2, 3}, nil},
		{"user", []uint64{1}, seq.ErrQuota},
		{"other", []uint64{1}, seq.ErrForbidden},
	} {
		if err := w.Send(&pb.WatchRequest{FirstId: uint32(10 * i), Add: []*pb.Batch{{Space: step.space, Uids: step.uids}}}); err != nil {
			t.Fatal(err)
		}
		r, err := w.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if step.want == nil {
			if len(r.Ids) != 1 || len(r.Errors) > 0 {
				t.Errorf("step %d: got %v, want that it passed", i, r)
			}
			continue
		}
		if len(r.Errors) != len(step.uids) {
			t.Fatalf("step %d: got %v, want an error for each of %d keys", i, r, len(step.uids))
		}
		for k, e := range r.Errors {
			if e.Index != uint32(10*i+k) || !errors.Is(rpc.FromKeyError(e), step.want) {
				t.Errorf("step %d: got %v, want %v of key %d", i, e, step.want, 10*i+k)
			}
		}
	}
}
