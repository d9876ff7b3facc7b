package api

import (
	"errors"
	"testing"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// One range can name four thousand million sections: they are never gone through.
func TestARequestForMoreSectionsThanThereCanBeIsRefusedAtOnce(t *testing.T) {
	far := &pb.SectionRange{First: 1, Sections: 1<<32 - 1}
	for name, req := range map[string]*pb.ChangeSetMapRequest{
		"begin":  {Change: &pb.ChangeSetMapRequest_Begin_{Begin: &pb.ChangeSetMapRequest_Begin{To: "b", Sections: []*pb.SectionRange{far}}}},
		"abort":  {Change: &pb.ChangeSetMapRequest_Abort_{Abort: &pb.ChangeSetMapRequest_Abort{Move: 1, Sections: []*pb.SectionRange{far}}}},
		"settle": {Change: &pb.ChangeSetMapRequest_Settle_{Settle: &pb.ChangeSetMapRequest_Settle{Number: 1, Runs: []*pb.SetRun{{Sections: far}}}}},
	} {
		if _, _, err := (&Sets{}).edit(req); !errors.Is(err, seq.ErrBadArgument) {
			t.Errorf("%s: %v, want %v", name, err, seq.ErrBadArgument)
		}
	}
}
