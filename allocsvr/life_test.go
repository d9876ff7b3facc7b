package allocsvr

import (
	"errors"
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

func TestACallForAnotherLifeOfTheClusterIsRefused(t *testing.T) {
	s, _ := serverOf(t, threeStores(t), seq.Secret{})
	next(t, s.Addr())
	own := s.parts.Load().Incarnation()
	if !own.Known() {
		t.Fatal("the node does not know its incarnation")
	}
	other, older := own, own
	other.Cluster[0]++
	older.Era++
	for _, row := range []struct {
		life seq.Incarnation
		want error
	}{{own, nil}, {other, seq.ErrForeignCluster}, {older, seq.ErrStaleEra}} {
		conn, err := rpc.Dial(s.Addr(), rpc.SayTarget(func() *rpc.Target { return rpc.NewTarget("c1", row.life) }))
		if err != nil {
			t.Fatal(err)
		}
		_, err = pb.NewSequenceClient(conn).Next(t.Context(), &pb.NextRequest{Id: &pb.NextRequest_Uid{Uid: 42}})
		_, admin := pb.NewAdminClient(conn).Status(t.Context(), &pb.StatusRequest{})
		_, peer := pb.NewPeerClient(conn).Look(t.Context(), &pb.LookRequest{ClusterId: "c1"})
		for what, err := range map[string]error{"sequence": err, "admin": admin, "peer": peer} {
			if !errors.Is(err, row.want) || err != nil && !strings.Contains(err.Error(), own.String()) {
				t.Errorf("%s for %v: %v, expected %v that names %v", what, row.life, err, row.want, own)
			}
		}
		_ = conn.Close()
	}
}
