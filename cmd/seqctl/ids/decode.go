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
	"github.com/seqsvr/seqsvr/internal/base/otherids"
	"github.com/seqsvr/seqsvr/internal/base/ui"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

// decoded is the output of decode and compose.
type decoded struct {
	ID             int64   `json:"id"`             // 0 of an ID that is a text alone
	IDStr          string  `json:"id_str"`         // decimal, or that text
	Text           string  `json:"text,omitempty"` // of compose, in another form
	Layout         string  `json:"layout"`         // preset, or text if it is none
	Time           string  `json:"time"`           // when its tick begins
	Ticks          uint64  `json:"ticks"`          // units since the layout's epoch
	Fields         idParts `json:"fields"`
	DatacenterName string  `json:"datacenter_name,omitempty"` // known to clusters
	Origin         string  `json:"origin,omitempty"`          // its maker, of an ID that is a text alone, where it says so

	hasDatacenter bool
}

type idParts struct {
	Datacenter uint64 `json:"datacenter"` // 0 in layouts without that field
	Worker     uint64 `json:"worker"`
	Sequence   uint64 `json:"sequence"`
}

// decodeHere decodes an ID without a cluster. It returns the errors of refused.
func decodeHere(l snowflake.Layout, id snowflake.ID) (decoded, error) {
	parts, err := l.Decode(id)
	if err != nil {
		return decoded{}, refused(err)
	}
	at, err := l.TimeOf(parts.Tick)
	if err != nil {
		return decoded{}, refused(err)
	}
	text, err := snowflake.Decimal.FormatOf(l, id)
	if err != nil {
		return decoded{}, refused(err)
	}
	return decoded{
		ID: int64(id), IDStr: text, Layout: l.Name(), Time: stamp(at.UnixMilli()), Ticks: uint64(parts.Tick),
		Fields:        idParts{uint64(parts.Datacenter), uint64(parts.Worker), parts.Sequence},
		hasDatacenter: l.HasDatacenter(),
	}, nil
}

func newDecoded(p *pb.SnowflakeDecoded) decoded {
	idStr := ctl.Digits(uint64(p.GetId())) // unsigned, like IDs of 64 bits; no other ID is negative
	if otherids.Is("", p.GetText()) {
		idStr = p.GetText()
	}
	return decoded{
		ID: p.GetId(), IDStr: idStr, Layout: p.GetLayout(), Time: stamp(p.GetUnixMs()), Ticks: p.GetTick(),
		Fields:         idParts{p.GetDatacenterId(), p.GetWorkerId(), p.GetSequence()},
		DatacenterName: p.GetDatacenter(), Origin: p.GetOrigin(), hasDatacenter: p.GetHasDatacenter(),
	}
}

// otherHere takes an ID apart that is no snowflake's, without a cluster. seq.ErrBadID.
func otherHere(kind, text string) (decoded, error) {
	p, err := otherids.Read(kind, text)
	if err != nil {
		return decoded{}, fmt.Errorf("%w: %w", seq.ErrBadID, err)
	}
	return decoded{IDStr: p.Text, Layout: p.Kind, Time: stamp(p.Time.UnixMilli()), Fields: idParts{Sequence: p.Sequence}, Origin: p.Origin}, nil
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
			datacenter = ctl.Digits(d.Fields.Datacenter)
		}
		if d.DatacenterName != "" {
			datacenter += " (" + d.DatacenterName + ")"
		}
		if otherids.Is("", d.IDStr) {
			return ui.NewTable("id", "time", "origin", "sequence", "kind").Row(id, d.Time, d.Origin, ctl.Digits(d.Fields.Sequence), d.Layout)
		}
		return ui.NewTable("id", "time", "datacenter", "worker", "sequence", "ticks", "layout").
			Row(id, d.Time, datacenter, ctl.Digits(d.Fields.Worker), ctl.Digits(d.Fields.Sequence), ctl.Digits(d.Ticks), d.Layout)
	})
}

func decodeCommand() *cobra.Command {
	o, m := &ctl.Options{}, &meaning{}
	var form string
	cmd := &cobra.Command{
		Use:   "decode ID",
		Short: "take an ID apart: its time, datacenter, worker and sequence",
		Long: `decode takes an ID apart. It needs no cluster; with --namespace or --addr it asks
one, which has the namespace's layout and also the datacenter's name. UUIDs, ULIDs and
ObjectIds are known by their length.`,
		Example: "  seqctl snowflake decode 108152875544481803 --layout regional -o json\n" +
			"  seqctl snowflake decode 3nNeLuv1t79 --text base58\n" +
			"  seqctl snowflake decode 175928847299117063 --layout discord\n" +
			"  seqctl snowflake decode 017f22e2-79b0-7cc3-98c4-dc0c0c07398f\n" +
			"  seqctl snowflake decode 362637573840961538 --layout 'time:39,sequence:8,machine:16;unit=10ms;epoch=2014-09-01T00:00:00Z'",
		Args: ctl.RangeArgs(1, 1),
	}
	o.AddTo(cmd, askTimeout)
	m.addTo(cmd, o, "or uuid, ulid or objectid; ")
	cmd.Flags().StringVar(&form, "text", snowflake.Decimal.String(), "the ID's "+textHelp)
	_ = cmd.RegisterFlagCompletionFunc("text", ctl.OneOf("decimal", "base58", "base62", "zbase32", "hex")) // it is there
	cmd.SetFlagErrorFunc(negativeIsNoFlag)
	cmd.RunE = o.Verb(func(ctx context.Context, format ui.Format, args []string, stdout io.Writer) error {
		e, err := parseEncoding(form)
		if err != nil {
			return err
		}
		if m.namespace == "" && e == snowflake.Decimal && otherids.Is(m.layout, args[0]) {
			d, err := otherHere(m.layout, args[0])
			if err != nil {
				return err
			}
			return d.print(stdout, format)
		}
		l, asked, err := m.read(cmd)
		if err != nil {
			return err
		}
		id, err := parseID(args[0], e, l)
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

// negativeIsNoFlag explains that a negative ID was read as a flag, like -1. People have negative IDs from
// numbers that overflowed.
func negativeIsNoFlag(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		if number := unknown.GetSpecifiedShortnames(); number != "" && strings.Trim(number, "0123456789") == "" {
			return fmt.Errorf("%s: %w", cmd.Name(), negativeID("-"+number))
		}
	}
	return cmd.Parent().FlagErrorFunc()(cmd, err)
}
