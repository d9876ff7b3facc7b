package globalid

import (
	"context"
	"fmt"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/globalid/namespaces"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

func layoutToProto(l snowflake.Layout, now time.Time) *pb.SnowflakeLayout {
	policy := l.Policy()
	rollback := policy.Rollback.String()
	if policy.Rollback == snowflake.RollbackWait {
		rollback += ":" + policy.RollbackWait.String()
	}
	return &pb.SnowflakeLayout{
		Name: l.PresetName(), Text: l.String(),
		EpochUnixMs: l.Epoch().UnixMilli(), UnitMs: l.Unit().Milliseconds(),
		ExhaustedUnixMs: l.Exhausted().UnixMilli(), Exhausted: l.Remaining(now) <= 0,
		HasDatacenter: l.HasDatacenter(), MaxDatacenter: uint64(l.MaxDatacenter()),
		MaxWorker: uint64(l.MaxWorker()), MaxSequence: l.MaxSequence(),
		Overflow: policy.Overflow.String(), Rollback: rollback,
	}
}

// layoutOf is the layout that a request means: by itself, or by its namespace.
func (v server) layoutOf(ctx context.Context, layout string, ref namespaces.Ref) (snowflake.Layout, error) {
	if layout != "" {
		return namespaces.ParseLayout(layout)
	}
	ns, err := v.s.names.Find(ctx, ref)
	if err != nil {
		return snowflake.Layout{}, err
	}
	return ns.Layout, nil
}

// decoded describes an ID. seq.ErrBadID.
func (v server) decoded(l snowflake.Layout, id snowflake.ID, e snowflake.Encoding) (*pb.SnowflakeDecoded, error) {
	parts, err := l.Decode(id)
	if err != nil {
		return nil, namespaces.Reading.Name(err)
	}
	at, err := l.TimeOf(parts.Tick)
	if err != nil {
		return nil, namespaces.Reading.Name(err)
	}
	text, err := e.Format(id)
	if err != nil {
		return nil, namespaces.Reading.Name(err)
	}
	out := &pb.SnowflakeDecoded{
		Id: int64(id), Text: text, Layout: l.Name(), UnixMs: at.UnixMilli(), Tick: uint64(parts.Tick),
		DatacenterId: uint64(parts.Datacenter), WorkerId: uint64(parts.Worker), Sequence: parts.Sequence,
		HasDatacenter: l.HasDatacenter(),
	}
	if l.HasDatacenter() {
		out.Datacenter = v.s.names.View().NameOf(parts.Datacenter)
	}
	return out, nil
}

// encodingOf reads the name of a text form, "" for decimal: seq.ErrBadArgument.
func encodingOf(name string) (snowflake.Encoding, error) {
	if name == "" {
		return snowflake.Decimal, nil
	}
	e, err := snowflake.ParseEncoding(name)
	if err != nil {
		return e, namespaces.Reading.Name(err)
	}
	return e, nil
}

// idOf is the ID of a request: seq.ErrBadID, seq.ErrBadArgument.
func idOf(req *pb.SnowflakeDecodeRequest) (snowflake.ID, error) {
	e, err := encodingOf(req.Encoding)
	if err != nil {
		return 0, err
	}
	switch id := req.Id.(type) {
	case *pb.SnowflakeDecodeRequest_Number:
		return snowflake.ID(id.Number), nil
	case *pb.SnowflakeDecodeRequest_Text:
		parsed, err := e.Parse(id.Text)
		if err != nil {
			return 0, namespaces.Reading.Name(err)
		}
		return parsed, nil
	}
	return 0, fmt.Errorf("%w: neither number nor text", seq.ErrBadID)
}

// partsOf are the parts of a request: seq.ErrBadID, seq.ErrTimeExhausted.
func partsOf(l snowflake.Layout, req *pb.SnowflakeComposeRequest) (snowflake.Parts, error) {
	p := snowflake.Parts{
		Datacenter: snowflake.Datacenter(req.DatacenterId), Worker: snowflake.Worker(req.WorkerId), Sequence: req.Sequence,
	}
	switch t := req.Time.(type) {
	case *pb.SnowflakeComposeRequest_Tick:
		p.Tick = snowflake.Tick(t.Tick)
	case *pb.SnowflakeComposeRequest_UnixMs:
		tick, err := l.TickAt(time.UnixMilli(t.UnixMs))
		if err != nil {
			return p, namespaces.Reading.Name(err)
		}
		p.Tick = tick
	default:
		return p, fmt.Errorf("%w: neither time nor tick", seq.ErrBadArgument)
	}
	return p, nil
}
