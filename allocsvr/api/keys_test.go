package api

import (
	"context"
	"errors"
	"testing"

	"google.golang.org/grpc/metadata"

	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// A build of v0.1.0 hashes string keys itself and sends UIDs, also through a router. In a space with a
// secret such a UID would name a different counter than the key does.
func TestACallerThatHashesKeysItselfIsRefusedWhereASecretIsUsed(t *testing.T) {
	s := serving(t, seq.Space{Name: seq.DefaultSpace, Sections: 1, Step: 100}, nil)
	s.own(0, 100)
	said := func(header, protocol string) context.Context {
		return metadata.NewIncomingContext(t.Context(), metadata.Pairs(header, protocol))
	}
	for _, row := range []struct {
		name    string
		ctx     context.Context
		refused bool
	}{
		{"another language", t.Context(), false},
		{"this build", said(rpc.ProtocolHeader, "2/1"), false},
		{"v0.1.0", said(rpc.ProtocolHeader, "1/1"), true},
		{"v0.1.0 behind a router", said("seqsvr-relayed-protocol", "1/1"), true},
	} {
		for _, secret := range []seq.KeySecret{{}, {1}} {
			s.Keys = func() seq.KeyHashers { return seq.KeyHashers{seq.DefaultSpace: {Secret: secret}} }
			one := []*pb.Batch{{Uids: []uint64{7}}}
			_, next := s.Next(row.ctx, &pb.NextRequest{Id: &pb.NextRequest_Uid{Uid: 7}, Count: 1})
			_, batch := s.BatchNext(row.ctx, &pb.BatchNextRequest{Batches: one})
			_, current := s.Current(row.ctx, &pb.CurrentRequest{Batches: one})
			_, raise := s.Raise(row.ctx, &pb.RaiseRequest{Id: &pb.RaiseRequest_Uid{Uid: 7}, AtLeast: 1})
			for method, err := range map[string]error{"Next": next, "BatchNext": batch, "Current": current, "Raise": raise} {
				if want := row.refused && !secret.IsZero(); errors.Is(err, seq.ErrProtocol) != want || err != nil && !want {
					t.Errorf("%s of %s, secret %v: got %v", method, row.name, !secret.IsZero(), err)
				}
			}
		}
	}
}

func TestAnswersAndErrorsDoNotTellTheUIDOfAStringKey(t *testing.T) {
	s := serving(t, seq.Space{Name: seq.DefaultSpace, Sections: 1, Step: 100, MaxJump: 10}, nil)
	s.own(0, 100)
	s.Keys = func() seq.KeyHashers { return seq.KeyHashers{seq.DefaultSpace: {Secret: seq.KeySecret{1}}} }
	_, err := s.Raise(t.Context(), &pb.RaiseRequest{Id: &pb.RaiseRequest_Key{Key: "room:7"}, AtLeast: 5000})
	if want := "raise the string key to 5000: "; err == nil || len(err.Error()) < len(want) || err.Error()[:len(want)] != want {
		t.Errorf("got %v, want %q ...", err, want)
	}
}
