package client

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"

	"github.com/seqsvr/seqsvr/client/fallback"
	"github.com/seqsvr/seqsvr/internal/sdk/call"
	"github.com/seqsvr/seqsvr/internal/sdk/stream"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

// MaxIDs is the largest count of one Generate.
const MaxIDs = seq.MaxIDs

// maxNamespace is the longest name of a namespace, and of an agent, in bytes.
const maxNamespace = 64

// IDs are snowflake IDs of one worker, kept as runs: thousands take a few bytes.
type IDs struct {
	Namespace  string // its name, also where it was asked for by number
	Layout     string // preset, or text if it is none or Fallback is set
	Datacenter snowflake.Datacenter
	Worker     snowflake.Worker
	Fallback   bool // made here: by a Local, or while the service was away; see Config.Fallback
	Runs       []snowflake.Run
}

// First is the first ID; 0 if there is none.
func (d IDs) First() snowflake.ID {
	if len(d.Runs) == 0 {
		return 0
	}
	return d.Runs[0].First
}

// Len returns the number of IDs.
func (d IDs) Len() int {
	n := 0
	for _, r := range d.Runs {
		n += int((r.Last-r.First)/r.Stride) + 1
	}
	return n
}

// All are the IDs one by one, ascending where the layout's highest field is the time.
func (d IDs) All() iter.Seq[snowflake.ID] {
	return func(yield func(snowflake.ID) bool) {
		for _, r := range d.Runs {
			for id := r.First; ; id += r.Stride {
				if !yield(id) {
					return
				}
				if id == r.Last { // not >: past the last, the highest field could overflow
					break
				}
			}
		}
	}
}

// NextID is Generate of one.
func (c *Client) NextID(ctx context.Context, namespace string) (snowflake.ID, error) {
	got, err := c.Generate(ctx, namespace, 1)
	return got.First(), err
}

// Generate hands out count snowflake IDs, 1 to MaxIDs, of a namespace, named by its
// name or its number in digits; "" is the default one. Any AllocSvr answers, under a
// worker id of its own: calls go to another one each time and step over those that do
// not answer. So IDs of calls that follow each other are unique and ordered by time as
// far as the clocks of the AllocSvr agree.
//
// It retries until ctx ends, or Config.Timeout if ctx has no deadline, and then
// returns the context's error wrapped with the last reason. seq.ErrUnknownNamespace,
// seq.ErrBadCount, seq.ErrTimeExhausted, seq.ErrTickUsedUp (the namespace's policy),
// seq.ErrOverloaded (too many callers wait in this process) and ErrClosed are returned immediately;
// seq.ErrDatacenterTaken and seq.ErrNodeUnfit once every AllocSvr refuses so, and
// seq.ErrNoQuorum once none that can be reached has a quorum. Calling again is
// always safe: IDs are skipped, never repeated. Single IDs of concurrent callers
// share a call. With Config.Fallback, IDs that were made here say so.
func (c *Client) Generate(ctx context.Context, namespace string, count uint32) (IDs, error) {
	return c.GenerateAs(ctx, c.cfg.Agent, namespace, count)
}

// GenerateAs is Generate in the name of another agent than Config.Agent.
// seq.ErrBadArgument for what is no agent's name.
func (c *Client) GenerateAs(ctx context.Context, agent, namespace string, count uint32) (IDs, error) {
	err := checkIDs(agent, namespace, count)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return IDs{}, call.Told("generate", err)
	}
	var got IDs
	ask := func(ctx context.Context) (err error) {
		if count == 1 && agent == c.cfg.Agent {
			got, err = c.ids.next(ctx, namespace)
		} else {
			got, err = generate(ctx, c, &pb.SnowflakeGenerateRequest{Namespace: namespace, Count: count, Agent: agent}, false)
		}
		return err
	}
	if f := c.fallbacks.of(namespace); f != nil {
		ctx, cancel := c.calls.Within(ctx)
		defer cancel()
		var made *fallback.IDs
		if made, err = f.Generate(ctx, int(count), ask); made != nil {
			got = madeHere(made)
		}
	} else {
		err = ask(ctx)
	}
	if err != nil {
		return IDs{}, call.Told(fmt.Sprintf("generate: namespace %q", namespace), err)
	}
	return got, nil
}

// GenerateIn is Generate of IDs of a datacenter, by the name that AllocSvr there have
// (allocsvr --datacenter); they are never made here. seq.ErrUnknownDatacenter and
// seq.ErrNodeUnfit once every AllocSvr refuses so: none was ever of that datacenter, or the
// namespace has none in its IDs; or those that are of it are gone.
func (c *Client) GenerateIn(ctx context.Context, datacenter, namespace string, count uint32) (IDs, error) {
	err := checkIDs(c.cfg.Agent, namespace, count)
	if err != nil {
		return IDs{}, call.Told("generate", err)
	}
	got, err := generate(ctx, c, &pb.SnowflakeGenerateRequest{Namespace: namespace, Count: count, Agent: c.cfg.Agent, Datacenter: datacenter}, false)
	if err != nil {
		return IDs{}, call.Told(fmt.Sprintf("generate: namespace %q, datacenter %q", namespace, datacenter), err)
	}
	return got, nil
}

// generate asks for IDs; with splits an overload is not waited for, but returned as call.ErrSplit.
func generate(ctx context.Context, c *Client, request *pb.SnowflakeGenerateRequest, splits bool) (IDs, error) {
	var got IDs
	request.AsRuns = true
	err := c.calls.AskIDs(ctx, func(ctx context.Context, s *call.Server) error {
		reply, err := s.IDs.Generate(ctx, request)
		if splits && errors.Is(err, seq.ErrOverloaded) {
			return fmt.Errorf("%w: %w", call.ErrSplit, err)
		}
		if err != nil {
			return err
		}
		got, err = idsOf(reply, request.GetCount())
		return err
	})
	return got, err
}

// idsOf reads an answer and refuses one that does not fit the count: a server's fault must not
// become an ID.
func idsOf(reply *pb.SnowflakeGenerateReply, count uint32) (IDs, error) {
	out := IDs{
		Namespace: reply.GetNamespace(), Layout: reply.GetLayout(),
		Datacenter: snowflake.Datacenter(reply.GetDatacenterId()), Worker: snowflake.Worker(reply.GetWorkerId()),
		Runs: make([]snowflake.Run, 0, len(reply.GetRuns())),
	}
	left := uint64(count)
	for _, r := range reply.GetRuns() {
		first, last, stride := r.GetFirst(), r.GetLast(), r.GetStride()
		if last > math.MaxInt64 || first > last || stride == 0 || stride > math.MaxInt64 || (last-first)%stride != 0 || (last-first)/stride >= left {
			return IDs{}, fmt.Errorf("%w: run of IDs %d to %d by %d for a count of %d", stream.ErrMalformed, first, last, stride, count)
		}
		left -= (last-first)/stride + 1
		out.Runs = append(out.Runs, snowflake.Run{First: snowflake.ID(first), Last: snowflake.ID(last), Stride: snowflake.ID(stride)})
	}
	if left != 0 {
		return IDs{}, fmt.Errorf("%w: %d IDs are missing of %d", stream.ErrMalformed, left, count)
	}
	return out, nil
}

func checkIDs(agent, namespace string, count uint32) error {
	if err := seq.CheckIDs("count", uint64(count)); err != nil {
		return err
	}
	known := len(namespace) <= maxNamespace
	for i := range len(namespace) {
		known = known && plain(namespace[i])
	}
	if !known {
		return fmt.Errorf("%w: %.64q", seq.ErrUnknownNamespace, namespace)
	}
	return seq.CheckAgent(agent)
}
