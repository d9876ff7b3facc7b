package auth

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// shows is one who came with a certificate.
func shows(cluster string, role Role, name string) Credentials {
	return Credentials{Evidence: Evidence{Identity: Identity{cluster, role, name}, Until: time.Now().Add(time.Hour)}}
}

func TestANodeOfAnotherSetMayReadTheMapAndAskForWorkerIDsAndNothingElse(t *testing.T) {
	w := write(t, "{space: '*', verbs: [take]}")
	if err := AddClusters(w.path, "c", "c2"); err != nil {
		t.Fatal(err)
	}
	g, _ := guard(t, Require, w.path)
	abroad := map[string]bool{pb.Sets_Map_FullMethodName: true, pb.Sets_Allot_FullMethodName: true}
	for _, public := range []string{healthpb.Health_Check_FullMethodName, healthpb.Health_Watch_FullMethodName, healthpb.Health_List_FullMethodName} {
		abroad[public] = true
	}
	for method := range Methods {
		for _, role := range []Role{Alloc, Store} {
			want := abroad[method] && Methods[method].May(role)
			err := g.Check(shows("c2", role, "a1"), method, nil)
			if (err == nil) != want || err != nil && !errors.Is(err, seq.ErrForbidden) {
				t.Errorf("%s of another Set, %s: got %v, want allowed: %v", role, method, err, want)
			}
			own := g.Check(shows("c", role, "a1"), method, nil)
			if (own == nil) != Methods[method].May(role) {
				t.Errorf("%s of this Set, %s: got %v", role, method, own)
			}
		}
	}
	if err := g.Speaks(shows("c2", Alloc, "a1"), pb.Peer_Offer_FullMethodName, "a1"); !errors.Is(err, seq.ErrNotSession) || !strings.Contains(err.Error(), "alloc/a1 of c2") {
		t.Errorf("it speaks for the node of its name: %v", err)
	}
}

func TestWhoMayCallDoesNotDependOnTheSetInACertificate(t *testing.T) {
	w := write(t, "{space: user, verbs: [take]}")
	if err := AddClusters(w.path, "c2"); err != nil {
		t.Fatal(err)
	}
	g, _ := guard(t, Require, w.path)
	for _, one := range []struct {
		role   Role
		name   string
		method string
		in     any
		want   error
	}{
		{Router, "r1", pb.Sequence_Next_FullMethodName, next("any"), nil},
		{Router, "r1", pb.Sets_Step_FullMethodName, nil, seq.ErrForbidden},
		{Caller, "chat", pb.Sequence_Next_FullMethodName, next("user"), nil},
		{Caller, "chat", pb.Sequence_Next_FullMethodName, next("other"), seq.ErrForbidden},
		{Caller, "eve", pb.Sequence_Next_FullMethodName, next("user"), seq.ErrUnauthenticated},
		{Reader, "eye", pb.Admin_Status_FullMethodName, nil, nil},
		{Operator, "ops", pb.Sets_Step_FullMethodName, nil, nil},
		{Operator, "eve", pb.Sets_Step_FullMethodName, nil, seq.ErrUnauthenticated},
	} {
		for _, cluster := range []string{"c", "c2"} {
			if err := g.Check(shows(cluster, one.role, one.name), one.method, one.in); !errors.Is(err, one.want) {
				t.Errorf("%s/%s of %s, %s: got %v, want %v", one.role, one.name, cluster, one.method, err, one.want)
			}
		}
		err := g.Check(shows("elsewhere", one.role, one.name), one.method, one.in)
		if !errors.Is(err, ErrOtherCluster) || !errors.Is(err, seq.ErrUnauthenticated) {
			t.Errorf("%s/%s of a cluster that is no Set, %s: got %v, want ErrOtherCluster", one.role, one.name, one.method, err)
		}
	}
}

func TestASetThatThePolicyNamesNoMoreIsAStranger(t *testing.T) {
	w := write(t, "{space: user, verbs: [take]}")
	before, err := os.ReadFile(w.path)
	if err != nil {
		t.Fatal(err)
	}
	if err := AddClusters(w.path, "c2"); err != nil {
		t.Fatal(err)
	}
	g, _ := guard(t, Require, w.path)
	router := shows("c2", Router, "r1")
	if err := g.Check(router, pb.Sequence_Next_FullMethodName, next("")); err != nil || !g.Takes("c2") || !g.Takes("c") || g.Takes("c3") {
		t.Errorf("a Set: got %v", err)
	}
	w.put(t, string(before))
	g.Reload()
	if err := g.Check(router, pb.Sequence_Next_FullMethodName, next("")); !errors.Is(err, ErrOtherCluster) || g.Takes("c2") || !g.Takes("c") {
		t.Errorf("no Set any more: got %v", err)
	}
	alone, _ := guard(t, Require, "")
	if err := alone.Check(router, pb.Sequence_Next_FullMethodName, next("")); !errors.Is(err, ErrOtherCluster) {
		t.Errorf("without a policy: got %v", err)
	}
	if (*Guard)(nil).Takes("c") {
		t.Error("a nil guard takes certificates")
	}
}

func TestClustersAreAddedToAPolicyOnceAndChangeNothingElse(t *testing.T) {
	w := write(t, "{space: user, verbs: [take]}")
	text, _ := os.ReadFile(w.path)
	w.put(t, "# who may do what\n"+string(text))
	for range 2 {
		if err := AddClusters(w.path, "shop", "shop-2"); err != nil {
			t.Fatal(err)
		}
	}
	p, err := ReadPolicy(w.path)
	text, _ = os.ReadFile(w.path)
	if err != nil || strings.Join(p.Clusters, " ") != "shop shop-2" || len(p.Principals) != 3 || !strings.Contains(string(text), "# who may do what") {
		t.Errorf("got %v: %s", err, text)
	}
	if err := AddClusters(w.path, "no cluster"); !errors.Is(err, ErrPolicy) {
		t.Errorf("got %v, want ErrPolicy", err)
	}
	if after, _ := os.ReadFile(w.path); string(after) != string(text) {
		t.Errorf("a policy that is not sound took its place: %s", after)
	}
	if err := AddToken(w.path, Entry{Name: "chat", Role: Caller, Token: NewToken().Hash()}); err != nil {
		t.Fatal(err)
	}
	if p, err = ReadPolicy(w.path); err != nil || len(p.Clusters) != 2 {
		t.Errorf("after a token was added: %v, %v", p.Clusters, err)
	}
}
