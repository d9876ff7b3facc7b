package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/cmd/seqctl/ctl"
	"github.com/seqsvr/seqsvr/internal/base/ui"
	"github.com/seqsvr/seqsvr/internal/lab/load"
	"github.com/seqsvr/seqsvr/internal/process/daemon"
	"github.com/seqsvr/seqsvr/seq"
)

const (
	// callTimeout is the default of --timeout: longer than a failover.
	callTimeout = 10 * time.Second
	// mostSample: with 64 callers or more, the time of one call in so many is taken; with
	// fewer it is of more of them, so that a short run has enough.
	mostSample = 16
	mostProcs  = 1024
	// findTimeout bounds the search for the cluster, shorter than a failover.
	findTimeout = 10 * time.Second
	// firstUID is the default of --first-uid: in the last quarter of all UIDs, where
	// people do not begin to count.
	firstUID = 0xbe0c_0000_0000_0000
	// defaultTag is the segment tag that is made and used.
	defaultTag = "seqctl-bench"
)

// kind is a value of --target, with the allowed sizes of --batch.
type kind struct {
	name      string
	what      string
	batch     int // where --batch is not given
	most      int
	make      func(context.Context, *rig) (load.Call, error)
	indirect  bool // everything goes to --addr
	noCluster bool // the cluster is not asked by gRPC at all
}

func kinds() []kind {
	return []kind{
		{name: "next", what: "one number a call, by the SDK: calls travel together, straight to the owners", batch: 1, most: 1, make: nextCalls},
		{name: "nextn", what: "--batch contiguous numbers of one UID a call, by the SDK", batch: 100, most: seq.MaxCount, make: nextNCalls},
		{name: "ticket", what: "one number a call with its ticket, which is done then, by the SDK; --space names a space with tickets", batch: 1, most: 1, make: ticketCalls},
		{name: "batch", what: "one number for each of --batch UIDs a call, by the SDK", batch: 100, most: seq.MaxBatch, make: batchCalls},
		{name: "unary", what: "one number a call, each a gRPC call of its own to the owner, as from other languages", batch: 1, most: 1, make: unaryCalls},
		{name: "router", what: "as next, but all by way of the router at --addr", batch: 1, most: 1, make: nextCalls, indirect: true},
		{name: "http", what: "one number a call: POST /v1/next at the router's --http, a connection a caller", batch: 1, most: 1, make: httpCalls, noCluster: true},
		{name: "snowflake", what: "--batch snowflake IDs a call, by the SDK", batch: 1000, most: client.MaxIDs, make: snowflakeCalls},
		{name: "segment", what: "--batch numbers of the segment --tag a call, by the SDK", batch: 1, most: seq.MaxCount, make: segmentCalls},
	}
}

// findKind reads --target; errTarget for an unknown one.
func findKind(name string) (kind, error) {
	all := kinds()
	if i := slices.IndexFunc(all, func(k kind) bool { return k.name == name }); i >= 0 {
		return all[i], nil
	}
	return kind{}, fmt.Errorf("%w %q: expected %s", errTarget, name, strings.Join(kindNames(), ", "))
}

func kindNames() (names []string) {
	for _, k := range kinds() {
		names = append(names, k.name)
	}
	return names
}

// options are the flags of bench; check perf sets some of them itself.
type options struct {
	ctl.Options
	callers   int
	uids      int64
	first     uint64
	scatter   bool
	dist      string
	target    string
	batch     int
	duration  time.Duration
	warmup    time.Duration
	rate      float64
	procs     int
	space     string
	http      string
	namespace string
	tag       string
	zone      string
}

func (o *options) addTo(cmd *cobra.Command) {
	o.AddTo(cmd, callTimeout)
	f := cmd.Flags()
	f.Lookup("timeout").Usage = "how long to try for one call, retries included"
	f.IntVar(&o.callers, "callers", 64, fmt.Sprintf("how many calls are under way at once, 1 to %d", load.MaxCallers))
	f.Int64Var(&o.uids, "uids", 1_000_000, "of how many UIDs numbers are taken, 1 to 2^32")
	f.Uint64Var(&o.first, "first-uid", firstUID, "the lowest of these `UIDs`: take care that they are nobody's")
	f.StringVar(&o.dist, "dist", string(load.Uniform), "how often each UID is called: uniform, zipf (exponent 1.1) or hot (9 of 10 calls to 1 UID of 1,000)")
	f.DurationVar(&o.duration, "duration", 10*time.Second, "how long to measure")
	f.DurationVar(&o.warmup, "warmup", time.Second, "how long to load before measuring")
	f.IntVar(&o.procs, "procs", 0, "how many processors bench itself uses; 0: all, or half of them where the cluster is on this machine")
	o.AddSpaceTo(cmd, &o.space)
	_ = cmd.RegisterFlagCompletionFunc("dist", ctl.OneOf(string(load.Uniform), string(load.Zipf), string(load.Hot))) // it is there
}

// addKindTo declares what check perf does not let one choose.
func (o *options) addKindTo(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.target, "target", "next", "what is called, see above")
	f.IntVar(&o.batch, "batch", 0, "`numbers` of one call (nextn, snowflake, segment) or UIDs of one call (batch); 0: 100, 1000 for snowflake, 1 for the others")
	f.Float64Var(&o.rate, "rate", 0, "numbers a second to ask for, on a timetable that no delay shifts; 0: as many as there can be")
	f.BoolVar(&o.scatter, "scatter", false, "take random 64-bit UIDs, always the same, in place of consecutive ones")
	f.StringVar(&o.http, "http", "127.0.0.1:7480", "HTTP `address` of a router, for --target http")
	f.StringVar(&o.namespace, "namespace", "", "`namespace` for --target snowflake; empty is default")
	f.StringVar(&o.tag, "tag", defaultTag, "segment `tag` for --target segment; made if there is none")
	f.StringVar(&o.zone, "zone", "", "with --target router and several --addr, the `zone` whose routers are asked first; empty: all in turn")
	_ = cmd.RegisterFlagCompletionFunc("target", ctl.OneOf(kindNames()...)) // it is there
}

// plan holds the checked flags.
type plan struct {
	kind   kind
	format ui.Format
	users  *load.Users
	load   load.Config
}

// check reads the flags. All its errors are daemon.ErrUsage.
func (o *options) check() (p plan, err error) {
	if p.format, err = o.Check(); err != nil {
		return plan{}, err
	}
	if p.kind, err = findKind(o.target); err != nil {
		return plan{}, daemon.Usage(fmt.Errorf("--target: %w", err))
	}
	if o.batch == 0 {
		o.batch = p.kind.batch
	}
	if o.batch < 1 || o.batch > p.kind.most {
		return plan{}, daemon.Usage(fmt.Errorf("--batch %d: %w: target %s takes 1 to %d", o.batch, errBatch, p.kind.name, p.kind.most))
	}
	if err := seq.CheckZone(o.zone); err != nil {
		return plan{}, daemon.Usage(err)
	}
	if o.procs < 0 || o.procs > mostProcs {
		return plan{}, daemon.Usage(fmt.Errorf("--procs %d: %w: expected 0 to %d", o.procs, errProcs, mostProcs))
	}
	dist, err := load.ParseDist(o.dist)
	if err != nil {
		return plan{}, daemon.Usage(fmt.Errorf("--dist: %w", err))
	}
	p.load = load.Config{Callers: o.callers, Warmup: o.warmup, Duration: o.duration, Rate: o.rate, PerCall: o.batch,
		Sample: min(o.callers/4, mostSample), Code: codeOf}
	if err := p.load.Validate(); err != nil {
		return plan{}, daemon.Usage(err)
	}
	if host, err := splitAddr(o.http); p.kind.noCluster && err != nil {
		return plan{}, daemon.Usage(fmt.Errorf("--http %q: %w", host, err))
	}
	p.users, err = load.NewUsers(load.UserConfig{UIDs: o.uids, First: o.first, Scatter: o.scatter, Dist: dist, Callers: o.callers, Longest: seq.MaxBatch, Seed: 1})
	if err != nil {
		return plan{}, daemon.Usage(err)
	}
	return p, nil
}

var errNoHost = errors.New("expected host:port")
