package auth

import (
	"errors"
	"strings"
	"testing"
	"time"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// certified is a caller with a certificate.
func certified(r Role, name string) Credentials {
	return Credentials{Evidence: Evidence{Identity: Identity{"c", r, name}, Until: time.Now().Add(time.Hour)}}
}

func TestASessionIsSpokenForByItsNodeAlone(t *testing.T) {
	messages := map[string]func(node string) any{
		pb.Store_Prepare_FullMethodName: func(n string) any { return &pb.PrepareRequest{Node: n} },
		pb.Store_Step_FullMethodName:    func(n string) any { return &pb.StepRequest{Node: n} },
		pb.Store_Renew_FullMethodName:   func(n string) any { return &pb.RenewRequest{Node: n} },
		pb.Store_Release_FullMethodName: func(n string) any { return &pb.ReleaseRequest{Node: n} },
	}
	for _, test := range []struct {
		by   Credentials
		node string
		want string // if empty, the call is allowed
	}{
		{certified(Alloc, "alloc-1"), "alloc-1", ""},
		{certified(Alloc, "alloc-1"), "alloc-2", `alloc/alloc-1 speaks for a session of node "alloc-2"`},
		{certified(Alloc, "alloc-1"), "", "no node, as AllocSvr of v0.1.0 do: upgrade it"},
		{certified(Operator, "ops"), "", ""},
		{certified(Operator, "alloc-1"), "alloc-1", "operator/alloc-1 speaks for a session of node"},
	} {
		g, log := guard(t, Require, "")
		for method, message := range messages {
			err := g.Check(test.by, method, message(test.node))
			if test.want == "" && err != nil || test.want != "" && (!errors.Is(err, seq.ErrNotSession) || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("%s of %q as %s: got %v, want %q", method, test.node, test.by.Evidence.Identity.URI(), err, test.want)
			}
			if err := g.Speaks(test.by, method, test.node); (err == nil) != (test.want == "") {
				t.Errorf("%s, said by itself: %v", method, err)
			}
		}
		if test.want != "" && (all(g.Refused()) != 2*uint64(len(messages)) || !strings.Contains(log.String(), test.want[:12])) {
			t.Errorf("counted %v refusals, log %q", g.Refused(), log)
		}
		accepting, log := guard(t, Accept, "")
		if err := accepting.Speaks(test.by, pb.Peer_Offer_FullMethodName, test.node); err != nil || (all(accepting.Refused()) == 0) != (test.want == "") ||
			test.want != "" && !strings.Contains(log.String(), "would refuse") {
			t.Errorf("on the way to require: %v, counted %v, log %q", err, accepting.Refused(), log)
		}
	}
	if err := (*Guard)(nil).Speaks(Credentials{}, pb.Peer_Offer_FullMethodName, "alloc-1"); err != nil {
		t.Errorf("without --auth: %v", err)
	}
}

// all is the sum over the reasons.
func all(refused map[string]uint64) (sum uint64) {
	for _, n := range refused {
		sum += n
	}
	return sum
}
