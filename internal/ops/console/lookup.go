package console

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/base/otherids"
	"github.com/seqsvr/seqsvr/internal/ops/survey"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

const (
	// maxLookups are under way at a time, each of which asks one node.
	maxLookups     = 8
	lookupPatience = 3 * time.Second
)

func text[T ~uint32 | ~uint64](n T) string { return strconv.FormatUint(uint64(n), 10) }

// lookup answers by what ask finds, of which as many as maxLookups are under way at a time.
func (c *Console) lookup(ask func(ctx context.Context, q url.Values) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case c.lookups <- struct{}{}:
			defer func() { <-c.lookups }()
		default:
			fail(w, errBusy)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), lookupPatience)
		defer cancel()
		out, err := ask(ctx, r.URL.Query())
		if err != nil {
			fail(w, err)
			return
		}
		answer(w, http.StatusOK, out)
	}
}

// found is where a UID or string key is counted, and how far. Numbers that JavaScript would
// round are texts.
type found struct {
	survey.Place
	UID       string `json:"uid,omitempty"` // empty for a key, whose UID is not shown
	Current   uint64 `json:"current"`
	Exact     bool   `json:"exact"`           // if false, Current may be above the last number handed out
	LastTaken int64  `json:"last_taken_unix"` // seconds; zero if unknown
	Error     string `json:"error,omitempty"` // why its number is not known

	Readers      *readers `json:"readers,omitempty"`       // null if nothing is known of them
	ReadersError string   `json:"readers_error,omitempty"` // why
}

// readers is what is kept for the readers of a UID or key.
type readers struct {
	HasTickets bool   `json:"has_tickets"` // of its space; else Mark is the last number
	Mark       uint64 `json:"mark"`
	Fence      uint64 `json:"fence"`
	KnownInMS  uint32 `json:"known_in_ms"` // if not zero, the mark is not known before
	Tickets    uint32 `json:"tickets_open"`
	EndsInMS   uint32 `json:"ends_in_ms"` // the time after which the open ticket with the lowest number ends
	Watches    uint32 `json:"watches"`
}

// uid answers ?uid=42 or ?key=room:7, in a ?space=.
func (c *Console) uid(ctx context.Context, q url.Values) (any, error) {
	return c.find(ctx, q.Get("space"), q.Get("uid"), q.Get("key"))
}

func (c *Console) find(ctx context.Context, space, number, key string) (*found, error) {
	of, err := counterOf(number, key)
	if err != nil {
		return nil, err
	}
	if err := c.cfg.Client.Ready(ctx); err != nil {
		return nil, err
	}
	mapping, _ := c.cfg.Client.Caller().Table().Mapping()
	in, err := mapping.Space(space)
	if err != nil {
		return nil, err
	}
	set := c.cfg.Client.Sets().Of(in.SectionOf(of.Place()))
	if set.Routes == nil {
		return nil, fmt.Errorf("%w: no route table of Set %s", seq.ErrNoRoute, set.Name)
	}
	cluster := &survey.Cluster{Mapping: mapping, Table: set.Routes, Set: set.Name}
	out := &found{Place: cluster.Place(in, of)}
	var values []client.Value
	if of.UID == nil {
		values, err = c.cfg.Client.CurrentKeys(ctx, in.Name, []string{key})
	} else {
		out.UID = text(*of.UID)
		values, err = c.cfg.Client.Current(ctx, in.Name, []seq.UID{seq.UID(*of.UID)})
	}
	if err == nil {
		err = values[0].Err
	}
	if err != nil {
		out.Error = err.Error()
		return out, nil
	}
	out.Current, out.Exact = uint64(values[0].Seq), !values[0].UpperBound
	if !values[0].LastTaken.IsZero() {
		out.LastTaken = values[0].LastTaken.Unix()
	}
	if out.Readers, err = c.readersOf(ctx, in, out.Place); err != nil {
		out.ReadersError = err.Error()
	}
	return out, nil
}

// readersOf asks the owner what it keeps for the readers of a UID or key. If it is a build of before, there is
// nothing.
func (c *Console) readersOf(ctx context.Context, in *seq.Space, of survey.Place) (*readers, error) {
	if of.Addr == "" {
		return nil, fmt.Errorf("%w: section %d", seq.ErrNoRoute, of.Section)
	}
	conns := survey.NewConns(c.cfg.Dial...)
	defer conns.Close()
	conn, err := conns.To(of.Addr)
	if err != nil {
		return nil, err
	}
	batch := &pb.Batch{Space: in.Name}
	if of.UID == nil {
		batch.Keys = []string{of.Key}
	} else {
		batch.Uids = []uint64{*of.UID}
	}
	reply, err := pb.NewSequenceClient(conn).Mark(ctx, &pb.MarkRequest{Batches: []*pb.Batch{batch}, Kept: true})
	if err != nil {
		return nil, err
	}
	if len(reply.GetResults()) != 1 {
		return nil, nil
	}
	r := reply.GetResults()[0]
	if len(r.GetErrors()) > 0 {
		return nil, rpc.FromKeyError(r.GetErrors()[0])
	}
	if len(r.GetKept()) != 1 || len(r.GetMarks()) != 1 || len(r.GetFences()) != 1 || len(r.GetUnknownMs()) != 1 {
		return nil, nil
	}
	k := r.GetKept()[0]
	return &readers{in.Tickets > 0, r.GetMarks()[0], r.GetFences()[0], r.GetUnknownMs()[0], k.GetTickets(), k.GetEndsInMs(), k.GetWatches()}, nil
}

// counterOf reads a UID, or a key if there is one.
func counterOf(number, key string) (of survey.CounterID, err error) {
	if key != "" {
		return survey.CounterID{Key: key}, seq.CheckKey("key", key)
	}
	n, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return of, fmt.Errorf("%w: uid %.40q: expected a whole number from 0 to 2^64-1, or a key", seq.ErrBadArgument, number)
	}
	return survey.CounterOf(seq.UID(n)), nil
}

// parts is an ID taken apart.
type parts struct {
	ID            string `json:"id"`
	Layout        string `json:"layout"`
	UnixMS        int64  `json:"unix_ms"`
	Tick          string `json:"tick"`
	Datacenter    string `json:"datacenter_id"`
	DatacenterOf  string `json:"datacenter"`
	HasDatacenter bool   `json:"has_datacenter"`
	Worker        string `json:"worker_id"`
	Sequence      string `json:"sequence"`
	Origin        string `json:"origin"`     // its maker, where TextAlone says so
	TextAlone     bool   `json:"text_alone"` // a UUID, ULID or ObjectId: no worker, no ticks
}

// id answers ?id=123 of a ?namespace= or a ?layout=, written in an ?encoding=.
func (c *Console) id(ctx context.Context, q url.Values) (any, error) {
	req := &pb.SnowflakeDecodeRequest{Id: &pb.SnowflakeDecodeRequest_Text{Text: q.Get("id")}, Encoding: q.Get("encoding"),
		Layout: q.Get("layout"), Namespace: q.Get("namespace")}
	got, err := pb.NewSnowflakeClient(c.cfg.Client.Caller().Any()).Decode(ctx, req)
	if err != nil {
		return nil, err
	}
	return parts{
		ID: got.GetText(), Layout: got.GetLayout(), UnixMS: got.GetUnixMs(), Tick: text(got.GetTick()),
		Datacenter: text(got.GetDatacenterId()), DatacenterOf: got.GetDatacenter(), HasDatacenter: got.GetHasDatacenter(),
		Worker: text(got.GetWorkerId()), Sequence: text(got.GetSequence()), Origin: got.GetOrigin(), TextAlone: otherids.Is("", got.GetText()),
	}, nil
}
