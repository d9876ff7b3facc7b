package ids

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seqsvr/seqsvr/cmd/seqctl/ctl"
	"github.com/seqsvr/seqsvr/internal/ui"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/snowflake"
)

// decoded is what decode and compose print.
type decoded struct {
	ID             int64   `json:"id"`
	IDStr          string  `json:"id_str"`         // decimal
	Text           string  `json:"text,omitempty"` // of compose, in another form
	Layout         string  `json:"layout"`         // preset, or text if it is none
	Time           string  `json:"time"`           // when its tick begins
	Ticks          uint64  `json:"ticks"`          // units since the layout's epoch
	Fields         idParts `json:"fields"`
	DatacenterName string  `json:"datacenter_name,omitempty"` // known to clusters

	hasDatacenter bool
}

type idParts struct {
	Datacenter uint64 `json:"datacenter"` // 0 in layouts without that field
	Worker     uint64 `json:"worker"`
	Sequence   uint64 `json:"sequence"`
}

// decodeHere takes an ID apart without a cluster. Errors are those of refused.
func decodeHere(l snowflake.Layout, id snowflake.ID) (decoded, error) {
	parts, err := l.Decode(id)
	if err != nil {
		return decoded{}, refused(err)
	}
	at, err := l.TimeOf(parts.Tick)
	if err != nil {
		return decoded{}, refused(err)
	}
	return decoded{
		ID: int64(id), IDStr: id.String(), Layout: l.Name(), Time: stamp(at.UnixMilli()), Ticks: uint64(parts.Tick),
		Fields:        idParts{uint64(parts.Datacenter), uint64(parts.Worker), parts.Sequence},
		hasDatacenter: l.HasDatacenter(),
	}, nil
}

func newDecoded(p *pb.SnowflakeDecoded) decoded {
	return decoded{
		ID: p.GetId(), IDStr: snowflake.ID(p.GetId()).String(), Layout: p.GetLayout(), Time: stamp(p.GetUnixMs()), Ticks: p.GetTick(),
		Fields:         idParts{p.GetDatacenterId(), p.GetWorkerId(), p.GetSequence()},
		DatacenterName: p.GetDatacenter(), hasDatacenter: p.GetHasDatacenter(),
	}
}

// inForm adds the text of the ID in a form other than decimal.
func (d decoded) inForm(e snowflake.Encoding) (_ decoded, err error) {
	if e != snowflake.Decimal {
		d.Text, err = e.Format(snowflake.ID(d.ID))
	}
	return d, err
}

func (d decoded) print(w io.Writer, format ui.Format) error {
	return ui.Print(w, format, d, func() *ui.Table {
		id, datacenter := d.IDStr, "-"
		if d.Text != "" {
			id = d.Text
		}
		if d.hasDatacenter {
			datacenter = digits(d.Fields.Datacenter)
		}
		if d.DatacenterName != "" {
			datacenter += " (" + d.DatacenterName + ")"
		}
		return ui.NewTable("id", "time", "datacenter", "worker", "sequence", "ticks", "layout").
			Row(id, d.Time, datacenter, digits(d.Fields.Worker), digits(d.Fields.Sequence), digits(d.Ticks), d.Layout)
	})
}

func decodeCommand() *cobra.Command {
	o, m := &ctl.Options{}, &meaning{}
	var form string
	cmd := &cobra.Command{
		Use:   "decode ID",
		Short: "take an ID apart: its time, datacenter, worker and sequence",
		Long: `decode takes an ID apart. It needs no cluster; with --namespace or --addr it asks
one, which has the namespace's layout and also the datacenter's name.`,
		Example: "  seqctl snowflake decode 108152875544481803 --layout regional -o json\n" +
			"  seqctl snowflake decode 3nNeLuv1t79 --text base58\n" +
			"  seqctl snowflake decode 362637573840961538 --layout 'time:39,sequence:8,machine:16;unit=10ms;epoch=2014-09-01T00:00:00Z'",
		Args: ctl.RangeArgs(1, 1),
	}
	o.AddTo(cmd, askTimeout)
	m.addTo(cmd)
	cmd.Flags().StringVar(&form, "text", snowflake.Decimal.String(), "the ID's "+textHelp)
	cmd.SetFlagErrorFunc(negativeIsNoFlag)
	cmd.RunE = o.Verb(func(ctx context.Context, format ui.Format, args []string, stdout io.Writer) error {
		e, err := parseEncoding(form)
		if err != nil {
			return err
		}
		id, err := parseID(args[0], e)
		if err != nil {
			return err
		}
		l, asked, err := m.read(cmd)
		if err != nil {
			return err
		}
		if !asked {
			d, err := decodeHere(l, id)
			if err != nil {
				return err
			}
			return d.print(stdout, format)
		}
		req := &pb.SnowflakeDecodeRequest{Id: &pb.SnowflakeDecodeRequest_Number{Number: int64(id)}, Layout: m.layout, Namespace: m.namespace}
		reply, err := askSnowflake(ctx, o, pb.SnowflakeClient.Decode, req)
		if err != nil {
			return err
		}
		return newDecoded(reply).print(stdout, format)
	})
	return cmd
}

// negativeIsNoFlag names a negative ID as what it is: -1 is read as a flag, and people
// who have one got it from a number that ran over.
func negativeIsNoFlag(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		if number := unknown.GetSpecifiedShortnames(); number != "" && strings.Trim(number, "0123456789") == "" {
			return fmt.Errorf("%s: %w", cmd.Name(), negativeID("-"+number))
		}
	}
	return cmd.Parent().FlagErrorFunc()(cmd, err)
}
