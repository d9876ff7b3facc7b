package client

import (
	"context"
	"fmt"

	"github.com/seqsvr/seqsvr/internal/sdk/call"
	"github.com/seqsvr/seqsvr/internal/sdk/stream"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// Numbers are business numbers of one tag and period, ascending.
type Numbers struct {
	Texts       []string // INV-20261123-000042
	Period      string   // 20261123, 202611, 2026 or "ever"
	First, Last seq.Seq  // the counts in them
}

// NextNumbers takes count business numbers of a tag that has a template, 1 to seq.MaxNumbers.
// It goes to the AllocSvr that owns the tag, by whose clock they have their date, and
// retries like TakeSegment: numbers are skipped, never repeated. Returned immediately are
// seq.ErrUnknownTag, seq.ErrBadCount, seq.ErrRetired, seq.ErrBadArgument (no name, or a tag
// without a template) and seq.ErrNumbersUsedUp (no digits left in this period).
func (c *Client) NextNumbers(ctx context.Context, tag string, count uint32) (Numbers, error) {
	got, err := nextNumbers(ctx, c, tag, count)
	if err != nil {
		return Numbers{}, call.Told(fmt.Sprintf("take numbers of %.*q", seq.MaxTagName, tag), err)
	}
	return got, nil
}

func nextNumbers(ctx context.Context, c *Client, tag string, count uint32) (got Numbers, err error) {
	if err := seq.CheckTag(tag); err != nil {
		return got, err
	}
	if err := seq.CheckNumbers("count", uint64(count)); err != nil {
		return got, err
	}
	err = c.calls.AskTag(ctx, tag, func(ctx context.Context, s *call.Server) error {
		reply, err := s.Segs.NextNumbers(ctx, &pb.NumbersNextRequest{Tag: tag, Count: count})
		if err != nil {
			return err
		}
		s.Heard(reply.GetRouteVersion(), nil)
		r := stream.CheckRange(reply.GetFirst(), reply.GetLast(), count, false)
		if r.Err == nil && len(reply.GetNumbers()) != int(count) {
			r.Err = fmt.Errorf("%w: %d texts for a count of %d", stream.ErrMalformed, len(reply.GetNumbers()), count)
		}
		got = Numbers{reply.GetNumbers(), reply.GetPeriod(), r.First, r.Last}
		return r.Err
	})
	return got, err
}
