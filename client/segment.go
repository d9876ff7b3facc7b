package client

import (
	"context"
	"fmt"

	"github.com/seqsvr/seqsvr/internal/sdk/call"
	"github.com/seqsvr/seqsvr/internal/sdk/stream"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// TakeSegment takes count numbers of a segment tag, 1 to seq.MaxCount: first to last,
// inclusive and contiguous, above all that earlier calls got. It goes to the AllocSvr
// that owns the tag, retries like Next, and is safe to call again after any error:
// numbers are skipped, never repeated. seq.ErrUnknownTag, seq.ErrBadCount,
// seq.ErrOverflow, and seq.ErrBadArgument for a tag that is no name, are returned immediately.
func (c *Client) TakeSegment(ctx context.Context, tag string, count uint32) (first, last seq.Seq, err error) {
	got, err := takeSegment(ctx, c, tag, count)
	if err != nil {
		return 0, 0, call.Told(fmt.Sprintf("take %.*q", seq.MaxTagName, tag), err)
	}
	return got.First, got.Last, nil
}

func takeSegment(ctx context.Context, c *Client, tag string, count uint32) (Range, error) {
	if err := seq.CheckTag(tag); err != nil {
		return Range{}, err
	}
	if err := seq.CheckCount("count", uint64(count)); err != nil {
		return Range{}, err
	}
	var got Range
	err := c.calls.AskTag(ctx, tag, func(ctx context.Context, s *call.Server) error {
		reply, err := s.Segs.Take(ctx, &pb.SegmentTakeRequest{Tag: tag, Count: count})
		if err != nil {
			return err
		}
		s.Heard(reply.GetRouteVersion(), nil)
		got = stream.CheckRange(reply.GetFirst(), reply.GetLast(), count, false)
		return got.Err
	})
	return got, err
}

// plain are the bytes that names of all kinds may have.
func plain(b byte) bool {
	return 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || '0' <= b && b <= '9' || b == '.' || b == '_' || b == '-'
}
