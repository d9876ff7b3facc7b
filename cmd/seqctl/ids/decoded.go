package ids

import (
	"io"

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
