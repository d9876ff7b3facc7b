package globalid

import (
	"fmt"

	"github.com/seqsvr/seqsvr/internal/base/otherids"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// decodeOther reads an ID of a kind that is no snowflake's; nil if the request means a
// snowflake ID. seq.ErrBadID.
func decodeOther(req *pb.SnowflakeDecodeRequest) (*pb.SnowflakeDecoded, error) {
	text, isText := req.Id.(*pb.SnowflakeDecodeRequest_Text)
	if !isText || req.Encoding != "" || req.Layout == "" && (req.Namespace != "" || req.Alias != 0) || !otherids.Is(req.Layout, text.Text) {
		return nil, nil
	}
	p, err := otherids.Read(req.Layout, text.Text)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", seq.ErrBadID, err)
	}
	return &pb.SnowflakeDecoded{Text: p.Text, Layout: p.Kind, UnixMs: p.Time.UnixMilli(), Origin: p.Origin, Sequence: p.Sequence}, nil
}
