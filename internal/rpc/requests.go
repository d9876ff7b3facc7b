package rpc

import (
	"fmt"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// KeyOf is the UID of the one key in a NextRequest or RaiseRequest. id is the oneof of the
// request, uid and key are its members. seq.ErrBadArgument.
func KeyOf(id any, uid uint64, key string) (seq.UID, error) {
	switch id.(type) {
	case *pb.NextRequest_Uid, *pb.RaiseRequest_Uid:
		return seq.UID(uid), nil
	case *pb.NextRequest_Key, *pb.RaiseRequest_Key:
		return seq.HashKey(key), seq.CheckKey("key", key)
	}
	return 0, fmt.Errorf("%w: neither uid nor key is set", seq.ErrBadArgument)
}

// Keys is the number of keys over all batches.
func Keys(batches []*pb.Batch) (n int) {
	for _, b := range batches {
		n += len(b.GetUids()) + len(b.GetKeys())
	}
	return n
}
