package ids

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/cmd/seqctl/ctl"
	"github.com/seqsvr/seqsvr/internal/base/ui"
	"github.com/seqsvr/seqsvr/internal/process/daemon"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

// composed are the parts as the command line has them.
type composed struct {
	at                                 *time.Time // if nil, tick is used
	tick, datacenter, worker, sequence uint64
}

func composeCommand() *cobra.Command {
	o, m, p := &ctl.Options{}, &meaning{}, &composed{}
	var form, at string
	cmd := &cobra.Command{
		Use:   "compose --time T|--tick N",
		Short: "put an ID together from its parts, for bounds of queries by time; it reserves nothing",
		Long: `compose puts an ID together. It reserves nothing: the ID may have been handed out, or
will be. It needs no cluster; with --namespace or --addr it asks one.`,
		Example: "  seqctl snowflake compose --layout regional --time 2022-03-22T07:55:44.532Z --datacenter 1 --worker 1 --sequence 11",
		Args:    ctl.RangeArgs(0, 0),
	}
	o.AddTo(cmd, askTimeout)
	m.addTo(cmd, o, "")
	cmd.Flags().StringVar(&at, "time", "", "`time` of RFC 3339 or milliseconds since 1970, rounded down to a tick; required without --tick")
	cmd.Flags().Uint64Var(&p.tick, "tick", 0, "`units` of the layout since its epoch, in place of --time")
	cmd.Flags().Uint64Var(&p.datacenter, "datacenter", 0, "`id` of the datacenter; default 0")
	cmd.Flags().Uint64Var(&p.worker, "worker", 0, "`id` of the worker; default 0")
	cmd.Flags().Uint64Var(&p.sequence, "sequence", 0, "`number` within the tick; default 0")
	cmd.Flags().StringVar(&form, "text", snowflake.Decimal.String(), textHelp)
	_ = cmd.RegisterFlagCompletionFunc("text", ctl.OneOf("decimal", "base58", "base62", "zbase32", "hex")) // it is there
	cmd.RunE = o.Verb(func(ctx context.Context, format ui.Format, _ []string, stdout io.Writer) error {
		if cmd.Flags().Changed("time") == cmd.Flags().Changed("tick") {
			return daemon.Usage(fmt.Errorf("%w: expected one of --time and --tick", seq.ErrBadArgument))
		}
		if cmd.Flags().Changed("time") {
			moment, err := parseTime(at)
			if err != nil {
				return err
			}
			p.at = &moment
		}
		e, err := parseEncoding(form)
		if err != nil {
			return err
		}
		l, asked, err := m.read(cmd)
		if err != nil {
			return err
		}
		var d decoded
		if asked {
			d, err = p.there(ctx, o, m)
		} else {
			d, err = p.here(l)
		}
		if err == nil {
			d, err = d.inForm(e)
		}
		if err != nil {
			return err
		}
		return d.print(stdout, format)
	})
	return cmd
}

// here composes without a cluster.
func (p *composed) here(l snowflake.Layout) (decoded, error) {
	parts := snowflake.Parts{
		Tick: snowflake.Tick(p.tick), Datacenter: snowflake.Datacenter(p.datacenter), Worker: snowflake.Worker(p.worker), Sequence: p.sequence,
	}
	if p.at != nil {
		tick, err := l.TickAt(*p.at)
		if err != nil {
			return decoded{}, refused(err)
		}
		parts.Tick = tick
	}
	id, err := l.Compose(parts)
	if errors.Is(err, snowflake.ErrLayout) {
		return decoded{}, badLayout("--layout", err)
	}
	if err != nil {
		return decoded{}, refused(err)
	}
	return decodeHere(l, id)
}

// there composes at a cluster.
func (p *composed) there(ctx context.Context, o *ctl.Options, m *meaning) (decoded, error) {
	req := &pb.SnowflakeComposeRequest{
		Layout: m.layout, Namespace: m.namespace, DatacenterId: p.datacenter, WorkerId: p.worker, Sequence: p.sequence,
		Time: &pb.SnowflakeComposeRequest_Tick{Tick: p.tick},
	}
	if p.at != nil {
		req.Time = &pb.SnowflakeComposeRequest_UnixMs{UnixMs: p.at.UnixMilli()}
	}
	reply, err := askSnowflake(ctx, o, pb.SnowflakeClient.Compose, req)
	return newDecoded(reply), err
}
