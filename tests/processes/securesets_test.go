package processes

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/internal/wire/auth"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/sets"
	"github.com/seqsvr/seqsvr/snowflake"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

// Two Sets that want certificates of everybody: callers with one certificate or one token follow
// sections that an operator moves, the second Set hears of the map from the root, and its
// certificates open nothing at the root that is the root's alone.
func TestSetsThatWantRolesMoveSectionsWhileTheyAreCalled(t *testing.T) {
	c := harness.Start(t, func(cfg *localcluster.Config) {
		cfg.Secure, cfg.Sets, cfg.Stores, cfg.Allocs, cfg.Sections = true, 2, 1, 1, setSections
		cfg.Lease = 5 * time.Second // none ends on a busy machine
		harness.AskOnce(cfg)
	})
	if err := c.JoinSets(harness.Within(t)); err != nil {
		t.Fatal(err)
	}
	other, app, ops := c.Others[0], c.Secured.Caller, c.Secured.Operator
	both := c.ClusterID + "," + other.ClusterID
	secured := &client.TLS{CAFile: app.Files.CA, CertFile: app.Files.Cert, KeyFile: app.Files.Key, VerifyRole: true, Sets: []string{other.ClusterID}}
	callers := []*climbing{
		climbBy(t, client.Config{Addrs: c.Addrs(localcluster.RoleAlloc), ClusterID: c.ClusterID, TLS: secured}),
		climbBy(t, client.Config{Addrs: other.Addrs(localcluster.RoleAlloc), TLS: &client.TLS{CAFile: app.Files.CA}, TokenFile: app.TokenFile}),
		climbBy(t, client.Config{Addrs: c.Addrs(localcluster.RoleRouter), Indirect: true, ClusterID: c.ClusterID, TLS: secured}),
	}
	goOn := func(what string) {
		t.Helper()
		for _, l := range callers {
			before := l.good.Load()
			harness.Until(t, what, func() bool { return t.Failed() || l.good.Load() >= before+100 })
		}
	}
	seqctl := func(into any, args ...string) {
		t.Helper()
		args = append(args, "--addr", c.GRPC(), "-o", "json", "--timeout", "2m", "--tls-cluster", both,
			"--tls-ca", ops.Files.CA, "--tls-cert", ops.Files.Cert, "--tls-key", ops.Files.Key)
		r := harness.Run(t, harness.Command(harness.Within(t), t, nil, "seqctl", args...))
		if r.Code != 0 {
			t.Fatalf("%v: exit %d: %s", args, r.Code, r.Stderr)
		}
		if err := json.Unmarshal([]byte(r.Stdout), into); err != nil {
			t.Fatalf("%v: %v: %s", args, err, r.Stdout)
		}
	}
	goOn("numbers before a move")
	var moved struct {
		Move  uint64 `json:"move"`
		State string `json:"state"`
	}
	seqctl(&moved, "set", "move", "--sections", "0-5", "--to", other.Set)
	if moved.State != "moved" {
		t.Errorf("got %+v", moved)
	}
	goOn("numbers after a move to the other Set")
	seqctl(&moved, "set", "move", "--sections", "3-9", "--to", sets.RootName)
	goOn("numbers after a move back")

	// It asks the root for worker ids, too, and makes global IDs with them.
	sdk, err := client.New(harness.Within(t), client.Config{Addrs: append(other.Addrs(localcluster.RoleAlloc), c.Addrs(localcluster.RoleAlloc)...), ClusterID: c.ClusterID, TLS: secured, Timeout: harness.Patience})
	if err != nil {
		t.Fatal(err)
	}
	defer sdk.Close()
	workers := map[snowflake.Worker]bool{}
	harness.Until(t, "global IDs of both Sets", func() bool {
		ids, err := sdk.Generate(harness.Within(t), "", 3)
		if err != nil {
			t.Error(err)
		}
		workers[ids.Worker] = true
		return len(workers) == 2 || t.Failed()
	})

	// The AllocSvr of the other Set asks the root for the map every few seconds.
	var rows []struct {
		Set      string `json:"set"`
		Sections int    `json:"sections"`
		Alive    bool   `json:"alive"`
	}
	seqctl(&rows, "set", "list")
	if len(rows) != 2 || rows[0].Sections != 7 || rows[1].Sections != 9 || !rows[0].Alive || !rows[1].Alive {
		t.Fatalf("got %+v", rows)
	}
	heard := pb.NewSetsClient(dialAs(t, ops.Files, other.Addrs(localcluster.RoleAlloc)[0]))
	harness.Until(t, "the map at the other Set", func() bool {
		reply, err := heard.Map(harness.Within(t), &pb.SetMapRequest{})
		if err != nil {
			t.Fatal(err)
		}
		m, err := rpc.SetMapFromProto(reply.GetSets())
		return err == nil && m.Index(3) == 0 && m.Index(2) == 1
	})
	for _, l := range callers {
		l.end()
		t.Logf("%d numbers, %d skipped, longest wait %v", l.good.Load(), l.skipped.Load(), time.Duration(l.longest.Load()))
	}

	// A node of the other Set at the root: the map, and nothing that is the root's own.
	dir := filepath.Dir(app.Files.CA)
	node := filepath.Join(dir, "alloc-"+other.Role(localcluster.RoleAlloc)[0].Name)
	theirs := rpc.TLSFiles{CA: app.Files.CA, Cert: node + ".pem", Key: node + "-key.pem"}
	root := dialAs(t, theirs, c.Addrs(localcluster.RoleAlloc)[0])
	if _, err := pb.NewSetsClient(root).Map(harness.Within(t), &pb.SetMapRequest{}); err != nil {
		t.Errorf("an AllocSvr of another Set reads the map: %v", err)
	}
	store := dialAs(t, theirs, c.Addrs(localcluster.RoleStore)[0])
	ctx := harness.Within(t)
	_, record := pb.NewSetsClient(root).Record(ctx, &pb.SetRecordRequest{})
	_, look := pb.NewPeerClient(root).Look(ctx, &pb.LookRequest{})
	_, promise := pb.NewStoreClient(store).Prepare(ctx, &pb.PrepareRequest{Node: "alloc-1"})
	_, step := pb.NewStoreClient(store).Step(ctx, &pb.StepRequest{Node: "alloc-1"})
	for what, err := range map[string]error{"the record": record, "a peer's look": look, "a promise": promise, "a step": step} {
		if rpc.CodeOf(err) != pb.ErrorCode_ERROR_CODE_FORBIDDEN || !strings.Contains(err.Error(), "of "+other.ClusterID) {
			t.Errorf("%s for an AllocSvr of another Set: got %v, want FORBIDDEN with its cluster", what, err)
		}
	}
	// Whom the CA signed for a cluster that the policy does not name.
	ca, err := auth.OpenCA(dir)
	if err != nil {
		t.Fatal(err)
	}
	eve := rpc.TLSFiles{CA: app.Files.CA, Cert: filepath.Join(t.TempDir(), "cert.pem"), Key: filepath.Join(t.TempDir(), "key.pem")}
	if _, err := ca.Issue(auth.Cert{Cluster: "elsewhere", Role: auth.Operator, Name: "ops", Valid: time.Hour}, eve.Cert, eve.Key); err != nil {
		t.Fatal(err)
	}
	for _, addr := range c.AllocsOfAllSets() {
		_, err := pb.NewSetsClient(dialAs(t, eve, addr)).Record(harness.Within(t), &pb.SetRecordRequest{})
		if rpc.CodeOf(err) != pb.ErrorCode_ERROR_CODE_UNAUTHENTICATED {
			t.Errorf("an operator of another cluster at %s: got %v, want UNAUTHENTICATED", addr, err)
		}
	}
}

// dialAs connects with a certificate, whoever the server is.
func dialAs(t *testing.T, files rpc.TLSFiles, addr string) *grpc.ClientConn {
	t.Helper()
	secured, err := rpc.NewTLS(files, nil)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := rpc.Dial(addr, secured.DialOptions()...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}
