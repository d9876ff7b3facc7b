package ctl

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/base/ui"
	"github.com/seqsvr/seqsvr/internal/ops/survey"
	"github.com/seqsvr/seqsvr/internal/process/daemon"
	"github.com/seqsvr/seqsvr/seq"
)

// requestFlags name a take of an exact space, so that it can be repeated.
type requestFlags struct {
	id   *string // nil if no id was given
	sent int64   // Unix milliseconds
}

func (r *requestFlags) addTo(cmd *cobra.Command) {
	cmd.Flags().Func("request-id", fmt.Sprintf("`id` of the request, 1 to %d bytes, in spaces of mode=exact: the same again gets the same numbers; empty: none", seq.MaxRequestID), func(id string) error {
		r.id = &id
		return seq.CheckRequestID("--request-id", id)
	})
	cmd.Flags().Int64Var(&r.sent, "first-sent", 0, "when the request was first sent, `milliseconds` since 1970; 0: now")
}

func (r *requestFlags) take(ctx context.Context, c *client.Client, key client.Key, count uint32) (client.Range, error) {
	switch {
	case r.id == nil && r.sent != 0:
		return client.Range{}, daemon.Usage(fmt.Errorf("%w: --first-sent: expected --request-id beside it", seq.ErrBadArgument))
	case r.id == nil:
		return c.Take(ctx, key, count)
	}
	request := client.Request{ID: *r.id}
	if r.sent != 0 {
		request.Sent = time.UnixMilli(r.sent)
	}
	return c.TakeIdempotent(ctx, key, count, request)
}

// lookupResult is the output of lookup.
type lookupResult struct {
	Space string `json:"space"`
	survey.CounterID
	RequestID string `json:"request_id"`
	Found     bool   `json:"found"` // if false, the id has no numbers, or it is older than ids are kept
	First     uint64 `json:"first"`
	Last      uint64 `json:"last"` // inclusive
}

func lookupCommand() *cobra.Command {
	o, who := &Options{}, &target{}
	cmd := &cobra.Command{
		Use:     "lookup UID|--key K REQUEST-ID",
		Short:   "show the numbers that a request id has got, without taking any",
		Example: "  seqctl lookup 42 msg-1 --space orders\n  seqctl lookup --key room:7 msg-1 --space orders",
		Args:    RangeArgs(1, 2),
	}
	o.AddTo(cmd, askTimeout)
	who.addTo(cmd, o)
	cmd.RunE = o.Verb(func(ctx context.Context, format ui.Format, args []string, stdout io.Writer) error {
		id, rest, err := who.one(cmd, args, 1)
		if err != nil {
			return err
		}
		if err := seq.CheckRequestID("REQUEST-ID", rest[0]); err != nil {
			return daemon.Usage(err)
		}
		return withClient(ctx, o, func(c *client.Client) error {
			got, found, err := c.Lookup(ctx, sequenceOf(who.space, id), rest[0])
			if err != nil {
				return err
			}
			r := lookupResult{cmp.Or(who.space, seq.DefaultSpace), id, rest[0], found, uint64(got.First), uint64(got.Last)}
			return ui.Print(stdout, format, r, func() *ui.Table {
				first, last := "-", "-"
				if found {
					first, last = Digits(r.First), Digits(r.Last)
				}
				return ui.NewTable("space", id.Column(), "request id", "found", "first", "last").Row(r.Space, id.String(), r.RequestID, found, first, last)
			})
		})
	})
	return cmd
}
