package storewire

import (
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/quorum"
)

// VouchToProto encodes what fellow stores remember of the one that is asked.
func VouchToProto(cluster string, nonce uint64, claims []quorum.Claim) *pb.VouchRequest {
	return &pb.VouchRequest{ClusterId: cluster, Nonce: nonce, Claims: claimsToProto(claims)}
}

func claimsToProto(claims []quorum.Claim) []*pb.StoreClaim {
	return convert(claims, func(c quorum.Claim) *pb.StoreClaim {
		return &pb.StoreClaim{StoreUuid: c.Store, ByUuid: c.By, BootCount: c.Boot, Commits: c.Commits, Seal: sealToProto(c.Seal), Start: c.Start, StartSeal: sealToProto(c.StartSeal)}
	})
}

// ClaimsFromProto decodes claims, at most two a store: a store and a session have no more.
func ClaimsFromProto(claims []*pb.StoreClaim) []quorum.Claim {
	const most = 2 * quorum.MaxStores
	return convert(claims[:min(len(claims), most)], func(c *pb.StoreClaim) quorum.Claim {
		return quorum.Claim{Store: c.GetStoreUuid(), By: c.GetByUuid(), Boot: c.GetBootCount(), Commits: c.GetCommits(), Seal: sealFromProto(c.GetSeal()),
			Start: c.GetStart(), StartSeal: sealFromProto(c.GetStartSeal())}
	})
}

func sealToProto(seal [16]byte) []byte {
	if seal == [16]byte{} {
		return nil
	}
	return seal[:]
}

// sealFromProto decodes a seal. One of another length is none, which no store takes.
func sealFromProto(b []byte) (seal [16]byte) {
	if len(b) == len(seal) {
		copy(seal[:], b)
	}
	return seal
}
