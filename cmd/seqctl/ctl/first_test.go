package ctl

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/internal/process/daemon"
	"github.com/seqsvr/seqsvr/internal/wire/gate"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/tlstest"
)

func TestStatusSaysWhatToDoFirst(t *testing.T) {
	tests := []struct {
		name   string
		others []seq.Node
		spoil  func(s *pb.StatusReply)
		want   string
	}{
		{"well", nil, func(*pb.StatusReply) {}, ""},
		{"no quorum, and so nothing is ready", nil, func(s *pb.StatusReply) {
			s.Stores[0].Reachable, s.Stores[1].Reachable, s.Ready, s.Reason = false, false, false, "no quorum"
		}, "on s1: systemctl start seqsvr-storesvr"},
		{"a store away", nil, func(s *pb.StatusReply) { s.Stores[2].Reachable = false }, "on s3:1: systemctl start seqsvr-storesvr"},
		{"an old disk", nil, func(s *pb.StatusReply) { s.Stores[0].State = "distrusted: session 1 has seen more" }, "seqctl store replace --dead s1 "},
		{"a node away", []seq.Node{gone}, func(*pb.StatusReply) {}, "on gone: systemctl start seqsvr-allocsvr"},
		{"a node without its lease", nil, func(s *pb.StatusReply) { s.Ready, s.Reason = false, "lease ended" }, "on a: journalctl -u seqsvr-allocsvr"},
		{"a node without its lease in dev", nil, func(s *pb.StatusReply) {
			s.Ready, s.Reason, s.DevLog = false, "lease ended", "data/dev/dev.log"
		}, "tail data/dev/dev.log"},
		{"a store away in dev", nil, func(s *pb.StatusReply) { s.Stores[2].Reachable, s.DevLog = false, "data/dev/dev.log" }, "tail data/dev/dev.log"},
		{"a frozen table", nil, func(s *pb.StatusReply) { s.Frozen = "2 of 3 nodes" }, "seqctl rebalance"},
		{"sections in between", nil, func(s *pb.StatusReply) { s.SectionsUnowned = 3 }, "seqctl leases"},
		{"a section used up", nil, func(s *pb.StatusReply) { s.Ending = []*pb.EndingSection{{Section: 3, Space: "user", Spent: true}} }, "seqctl events"},
		{"a router away", nil, func(s *pb.StatusReply) {
			s.Members = append(s.Members, &pb.MemberStatus{Name: "r1", Role: "router", State: "dead"})
		}, "on r1: systemctl start seqsvr-router"},
		{"on etcd and well", nil, toEtcd, ""},
		{"a member of etcd away", nil, func(s *pb.StatusReply) { toEtcd(s); s.Stores[2].Reachable = false }, "on s3: systemctl start etcd"},
		{"a member of etcd away in dev", nil, func(s *pb.StatusReply) {
			toEtcd(s)
			s.Stores[2].Reachable, s.DevLog = false, "data/dev/dev.log"
		}, "on s3: systemctl start etcd"},
		{"a full etcd", nil, func(s *pb.StatusReply) {
			toEtcd(s)
			s.Stores[1].State, s.Stores[1].Etcd.Alarms = "alarms: [NOSPACE]", []string{"NOSPACE"}
		}, "etcdctl alarm list"},
		{"an etcd near its quota", nil, func(s *pb.StatusReply) { toEtcd(s); s.Stores[0].NearlyFull = true }, "etcdctl defrag"},
		{"an etcd without a leader", nil, func(s *pb.StatusReply) { toEtcd(s); s.Stores[0].State = "knows no leader" }, "seqctl store status --etcd s1:1"},
		{"no etcd", nil, func(s *pb.StatusReply) {
			toEtcd(s)
			for _, st := range s.Stores {
				st.Reachable = false
			}
		}, "seqctl store status --etcd s1:1"},
		{"an etcd with a later era", nil, func(s *pb.StatusReply) {
			toEtcd(s)
			for _, st := range s.Stores {
				st.State = "etcd below /seqsvr: " + seq.ErrStaleEra.Error() + ": era 1 in place of 0"
			}
		}, "systemctl restart seqsvr-allocsvr"},
		{"an etcd that was put back", nil, func(s *pb.StatusReply) {
			toEtcd(s)
			for _, st := range s.Stores {
				st.State, st.Etcd.Restored = "put back", "put back"
			}
		}, "seqctl store restore --etcd "},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			n := serve(t, test.others...)
			test.spoil(n.status)
			r, _ := statusOf(t, n)
			if (test.want == "") != (r.First == "") || !strings.Contains(r.First, test.want) {
				t.Errorf("got %q, want %q; problems %q", r.First, test.want, r.Problems)
			}
		})
	}
}

// toEtcd makes the stores members of an etcd.
func toEtcd(s *pb.StatusReply) {
	for _, st := range s.Stores {
		st.Etcd = &pb.EtcdMember{Version: "3.6.5", SizeBytes: 1 << 20, QuotaBytes: 2 << 30, Prefix: "/seqsvr"}
	}
	s.Stores[0].Etcd.Leader = true
}

func TestStatusShowsTheMembersOfEtcd(t *testing.T) {
	n := serve(t)
	toEtcd(n.status)
	if r, _ := statusOf(t, n); r.Engine != "etcd" || len(r.Stores) != 3 || r.Stores[0].Etcd == nil || r.Stores[0].Etcd.Quota != 2<<30 {
		t.Errorf("got engine %q and %+v", r.Engine, r.Stores)
	}
	out, err := call(t, "status", "--addr", n.addr)
	if err != nil || !strings.Contains(out, "leads") || !strings.Contains(out, "2.0 GiB") || strings.Contains(out, "STORE ") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestVerbsShowACertificateWhereOneIsWanted(t *testing.T) {
	files := tlstest.New(t, "ca").Issue(t.TempDir(), "node", 0)
	secured, err := rpc.NewTLS(files, nil)
	if err != nil {
		t.Fatal(err)
	}
	creds, err := secured.ServerCreds(rpc.RequireClients)
	if err != nil {
		t.Fatal(err)
	}
	n := serveBy(t, gate.ServerConfig{Creds: creds})
	status := func(args ...string) error {
		return Execute(t.Context(), Root(), append([]string{"status", "--addr", n.addr}, args...), io.Discard, io.Discard)
	}
	if err := status("--tls-ca", files.CA, "--tls-cert", files.Cert, "--tls-key", files.Key); err != nil {
		t.Errorf("with a certificate: %v", err)
	}
	if err := status("--tls-ca", files.CA); err == nil {
		t.Error("without a certificate: no error")
	}
	if err := status(); err == nil {
		t.Error("in plaintext: no error")
	}
	if err := status("--tls-cert", files.Cert); !errors.Is(err, daemon.ErrUsage) {
		t.Errorf("without a key: got %v, want a usage error", err)
	}
}

func TestCompletionIsThereForEveryShell(t *testing.T) {
	for shell, want := range map[string]string{"bash": "__start_seqctl", "zsh": "#compdef seqctl", "fish": "complete -c seqctl"} {
		var out bytes.Buffer
		if err := Execute(t.Context(), Root(), []string{"completion", shell}, &out, io.Discard); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("%s: got %v and %d bytes without %q", shell, err, out.Len(), want)
		}
	}
}
