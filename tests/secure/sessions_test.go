package secure

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/wire/auth"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	"github.com/seqsvr/seqsvr/internal/wire/storeclient"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

// named is a node with a certificate of its own.
func (s *site) named(r auth.Role, name string) who {
	return who{name: string(r) + "/" + name, files: s.files(r, name, time.Hour)}
}

// speak asks the store for all that is done in the name of a session, changes nothing
// that the session would not change itself, and gives the errors by call.
func (s *site) speak(as who, session seq.Session, secret seq.Secret, name string) map[string]error {
	s.t.Helper()
	opts := mustTLS(s.t, as.files).DialOptions()
	if as.token != "" {
		file := filepath.Join(s.t.TempDir(), "token")
		if err := os.WriteFile(file, []byte(as.token), 0o600); err != nil {
			s.t.Fatal(err)
		}
		token, err := rpc.TokenFile(file)
		if err != nil {
			s.t.Fatal(err)
		}
		opts = append(opts, grpc.WithPerRPCCredentials(token))
	}
	to, err := storeclient.Dial(s.store.Addr(), opts...)
	if err != nil {
		s.t.Fatal(err)
	}
	defer to.Close()
	by, err := storeclient.Dial(s.store.Addr(), append(opts, storeclient.Alone(func(context.Context) bool { return true }))...)
	if err != nil {
		s.t.Fatal(err)
	}
	defer by.Close()
	ctx := harness.Within(s.t)
	var id quorum.Identity
	harness.Until(s.t, "the store votes", func() bool { id, err = to.Describe(ctx); return err == nil && id.Voting })
	out := map[string]error{}
	_, out["prepare"] = to.Prepare(ctx, quorum.PrepareRequest{Ref: id.Ref, Session: session, Secret: secret, Items: []quorum.PrepareItem{{Register: "snone", Round: 1}}})
	_, out["step"] = to.Step(ctx, quorum.StepRequest{Ref: id.Ref, Session: session, Secret: secret, Items: []quorum.StepItem{{Register: "snone", Round: 1}}})
	_, out["step by a call"] = by.Step(ctx, quorum.StepRequest{Ref: id.Ref, Session: session, Secret: secret, Items: []quorum.StepItem{{Register: "snone", Round: 1}}})
	_, out["renew"] = to.Renew(ctx, quorum.RenewRequest{Ref: id.Ref, Session: session, Secret: secret, Name: name, Lease: 300 * time.Millisecond, Attached: 8})
	_, out["release"] = to.Release(ctx, quorum.ReleaseRequest{Ref: id.Ref, Session: session, Secret: secret, Items: []quorum.LeaseItem{{Register: "snone", Round: 1}}})
	return out
}

func TestASessionIsOfTheNodeInTheCertificateAlsoAfterTheStoreRestarted(t *testing.T) {
	s := startSite(t, auth.Require)
	stolen := s.secret // by somebody who read the environment of the process
	as := func(node string) seq.Secret { return seq.Secret{Seed: stolen.Seed, Node: node} }
	check := func(when string, by who, secret seq.Secret, name, want string) {
		t.Helper()
		for call, err := range s.speak(by, stolen.Session(), secret, name) {
			switch {
			case want == "" && err != nil:
				t.Errorf("%s: %s as %s: %v", when, call, by.name, err)
			case want != "" && (!errors.Is(err, seq.ErrNotSession) || !strings.Contains(err.Error(), want)):
				t.Errorf("%s: %s as %s with node %q: got %v, want %q", when, call, by.name, secret.Node, err, want)
			}
		}
	}
	all := func(when string) {
		t.Helper()
		check(when, s.named(auth.Alloc, "alloc-2"), stolen, "alloc-1", `alloc/alloc-2 speaks for a session of node "alloc-1"`)
		check(when, s.named(auth.Alloc, "alloc-2"), as("alloc-2"), "alloc-2", "session "+stolen.Session().String())
		check(when, s.named(auth.Alloc, "alloc-2"), seq.Secret{Seed: stolen.Key()}, "alloc-1", "session of no node")
		check(when, s.byToken(auth.Operator), stolen, "alloc-1", `operator/operator-1 speaks for a session of node "alloc-1"`)
		check(when, s.named(auth.Alloc, "alloc-1"), stolen, "alloc-1", "") // a new key and certificate of the same name
	}
	all("at first")
	s.restart()
	all("after a restart of the store")
	ops, err := s.sdk(s.alloc.Addr(), s.tokens[auth.Operator], nil)
	if err != nil {
		t.Fatal(err)
	}
	harness.Until(t, "the node goes on under its session", func() bool {
		_, err := ops.Next(harness.Within(t), client.Key{UID: 42})
		return err == nil && s.alloc.Session() == stolen.Session()
	})
	own := seq.NewSecret("") // of an operator's tool
	for call, err := range s.speak(s.byToken(auth.Operator), own.Session(), own, "tool") {
		if err != nil {
			t.Errorf("a tool of an operator: %s: %v", call, err)
		}
	}
	if !strings.Contains(s.log.String(), "call refused") {
		t.Errorf("the log says nothing of it: %s", s.log)
	}
}

func TestOnTheWayToRequireASessionOfAnotherNodeIsServedAndCounted(t *testing.T) {
	s := startSite(t, auth.Accept)
	own := seq.NewSecret("alloc-9")
	before := s.guards[0].Refused()["forbidden"]
	for call, err := range s.speak(s.named(auth.Alloc, "alloc-2"), own.Session(), own, "alloc-9") {
		if err != nil {
			t.Errorf("%s: %v", call, err)
		}
	}
	if got := s.guards[0].Refused()["forbidden"] - before; got != 5 {
		t.Errorf("counted %d calls, want 5", got)
	}
}

func TestSectionsAreHandedOverOnlyByTheNodeThatTheStoresListForTheSession(t *testing.T) {
	s := startSite(t, auth.Require)
	own, unlisted := uint64(s.secret.Session()), uint64(seq.NewSecret("alloc-2").Session())
	harness.Until(t, "the node is known to the stores", func() bool {
		_, err := pb.NewPeerClient(s.dial(s.named(auth.Alloc, "alloc-1"), s.alloc.Addr())).Look(harness.Within(t), &pb.LookRequest{ClusterId: cluster, Ended: own})
		return err == nil
	})
	for _, test := range []struct {
		by   who
		from uint64
		want string // empty if the call is accepted
	}{
		{s.named(auth.Alloc, "alloc-1"), own, ""},
		{s.named(auth.Alloc, "alloc-2"), own, `alloc/alloc-2 speaks for a session of node "alloc-1"`},
		{s.named(auth.Alloc, "alloc-2"), unlisted, "the stores have not listed session"},
		{s.named(auth.Alloc, "alloc-2"), 0, "the stores have not listed session"},
	} {
		peer := pb.NewPeerClient(s.dial(test.by, s.alloc.Addr()))
		ctx := harness.Within(t)
		_, offer := peer.Offer(ctx, &pb.OfferRequest{ClusterId: cluster, From: test.from, To: own})
		_, take := peer.Take(ctx, &pb.TakeRequest{ClusterId: cluster, From: test.from, To: own})
		_, look := peer.Look(ctx, &pb.LookRequest{ClusterId: cluster, Ended: test.from})
		for call, err := range map[string]error{"offer": offer, "take": take, "look": look} {
			if test.want == "" && err != nil || test.want != "" && (!errors.Is(err, seq.ErrNotSession) || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("%s from %x as %s: got %v, want %q", call, test.from, test.by.name, err, test.want)
			}
		}
	}
}
