package storectl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/cmd/seqctl/ctl"
	"github.com/seqsvr/seqsvr/cmd/seqctl/etcdverbs"
	"github.com/seqsvr/seqsvr/internal/base/ui"
	"github.com/seqsvr/seqsvr/internal/ops/survey"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	"github.com/seqsvr/seqsvr/internal/wire/storeclient"
	"github.com/seqsvr/seqsvr/internal/wire/storewire"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// errUnhealthy: a store is missing, or does not vote as it should.
var errUnhealthy = errors.New("stores are not healthy")

// oneAnswer bounds the wait for one store.
const oneAnswer = 2 * time.Second

// row is one store in status.
type row struct {
	Name        string `json:"name"`
	UUID        string `json:"uuid"`
	Addr        string `json:"addr"`
	Role        string `json:"role"`  // voter, learner, or none
	State       string `json:"state"` // voting, unreachable, or why it does not vote
	Boots       uint64 `json:"boot_count"`
	Era         uint64 `json:"era"`
	Members     uint64 `json:"members_version"`
	Commits     uint64 `json:"commits"`
	Registers   uint64 `json:"registers"`
	FreeBytes   uint64 `json:"free_bytes"`
	NearlyFull  bool   `json:"nearly_full"`
	Zone        string `json:"zone"` // may be empty
	GraceLeftMS uint64 `json:"grace_left_ms"`
	Protocol    uint32 `json:"protocol"`          // of the store; zero for an older build
	Required    uint32 `json:"required_protocol"` // of sessions; zero means any
	Lagging     bool   `json:"lagging"`           // has an older member list, or fewer registers, than others

	WorkerFloorMS uint64 `json:"worker_floor_ms"` // time until which the store withholds snowflake worker ids; zero without a restore
	KeptMS        uint64 `json:"workers_kept_ms"` // time left until then by the store's clock
	Pending       bool   `json:"pending"`         // bound, and its list is not known to be complete
	Odd           string `json:"odd"`             // why it does not belong to the others, though it answers; empty if it does
	voting        bool
}

// result is the output of status.
type result struct {
	ctl.Verdict
	Cluster string `json:"cluster_id"`
	Version uint64 `json:"members_version"`
	N       int    `json:"n"`
	R       int    `json:"r"`
	W       int    `json:"w"`
	Stores  []row  `json:"stores"`
}

func statusCommand() *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "status",
		Short: "one line a store, or with --etcd a member of etcd; exit 1, and what to do first, if they are not healthy",
		Args:  ctl.ExactArgs(),
	}
	o.addTo(cmd, askTimeout)
	showEtcd(cmd)
	cmd.RunE = o.Verb(func(ctx context.Context, format ui.Format, _ []string, stdout io.Writer) error {
		on, err := o.onEtcd(cmd)
		if err != nil {
			return err
		}
		if on {
			return etcdverbs.Status(ctx, &o.etcd, format, stdout)
		}
		addrs, err := o.addrs(ctx)
		if err != nil {
			return err
		}
		r, err := ask(ctx, addrs, o.Dial()...)
		if err != nil {
			return err
		}
		if err := r.print(stdout, format); err != nil {
			return err
		}
		if !r.Healthy {
			return fmt.Errorf("%w: %s", errUnhealthy, r.Problems[0])
		}
		return nil
	})
	return cmd
}

// ask asks the stores at the addresses, and those that their newest list names.
func ask(ctx context.Context, addrs []string, dial ...grpc.DialOption) (result, error) {
	replies, errs := describe(ctx, addrs, dial...)
	newest := agreed(replies)
	if newest == nil {
		return result{}, fmt.Errorf("%w: none answers at %s: %w", errUnhealthy, strings.Join(addrs, ", "), errors.Join(errs...))
	}
	list := quorum.MemberList{Version: newest.GetRef().GetMembersVersion(), R: int(newest.GetR()), W: int(newest.GetW()), Members: storewire.MembersFromProto(newest.GetMembers())}
	var more []string
	for _, m := range list.Members {
		if m.Addr != "" && !slices.ContainsFunc(replies, func(r *pb.DescribeReply) bool { return r.GetStoreUuid() == m.UUID }) && !slices.Contains(addrs, m.Addr) {
			more = append(more, m.Addr)
		}
	}
	others, _ := describe(ctx, more, dial...)
	addrs, replies = slices.Concat(addrs, more), slices.Concat(replies, others)
	r := result{Cluster: newest.GetRef().GetClusterId(), Version: list.Version, N: int(newest.GetN()), R: list.R, W: list.W}
	for i, reply := range replies {
		if reply != nil && !slices.ContainsFunc(r.Stores, func(have row) bool { return have.UUID == reply.GetStoreUuid() }) {
			r.Stores = append(r.Stores, rowOf(addrs[i], reply, list, newest))
		}
	}
	for i, err := range errs {
		if storeclient.Refused(err) {
			r.Stores = append(r.Stores, row{Name: addrs[i], Addr: addrs[i], Role: "none", State: "refuses", Odd: err.Error()})
		}
	}
	for _, m := range list.Members {
		if !slices.ContainsFunc(r.Stores, func(have row) bool { return have.UUID == m.UUID }) {
			r.Stores = append(r.Stores, row{Name: m.Name, UUID: m.UUID, Addr: m.Addr, Role: roleOf(m), State: "unreachable", Zone: m.Zone})
		}
	}
	slices.SortFunc(r.Stores, func(a, b row) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.UUID, b.UUID)) })
	r.judge()
	return r, nil
}

// agreed returns the reply of a store whose list enough stores vote under. Of several such lists it takes
// the newest, and of equally new lists the one that more stores have. If no list has enough votes, it
// returns a reply with the newest list, or nil if no store answered.
func agreed(replies []*pb.DescribeReply) (best *pb.DescribeReply) {
	rank := func(r *pb.DescribeReply) (whole, with int) {
		votes := uint32(0)
		for _, o := range replies {
			if o != nil && oddOf(o, r) == "" {
				if with++; o.GetVoting() && storewire.RefFromProto(o.GetRef()) == storewire.RefFromProto(r.GetRef()) {
					votes++
				}
			}
		}
		if votes >= max(1, r.GetW()) {
			whole = 1
		}
		return whole, with
	}
	most, many := -1, 0
	for _, r := range replies {
		if r == nil {
			continue
		}
		whole, with := rank(r)
		if cmp.Or(cmp.Compare(whole, most), cmp.Compare(r.GetRef().GetMembersVersion(), best.GetRef().GetMembersVersion()), cmp.Compare(with, many)) > 0 {
			best, most, many = r, whole, with
		}
	}
	return best
}

// oddOf says why a store does not belong to those that agree with another; empty if it may.
func oddOf(d, agreed *pb.DescribeReply) string {
	a, b := agreed.GetRef(), d.GetRef()
	if a.GetClusterId() != b.GetClusterId() {
		return fmt.Sprintf("it is of cluster %q, the others of %q", b.GetClusterId(), a.GetClusterId())
	}
	if a.GetEra() != b.GetEra() {
		return fmt.Sprintf("it is of era %d, the others of %d", b.GetEra(), a.GetEra())
	}
	if err := rpc.IncarnationFromProto(agreed.GetIncarnation()).Check(rpc.IncarnationFromProto(d.GetIncarnation())); err != nil {
		return err.Error()
	}
	ours, err := rpc.MappingFromProto(agreed.GetMapping())
	if err == nil {
		var theirs seq.Mapping
		if theirs, err = rpc.MappingFromProto(d.GetMapping()); err == nil && !ours.Extends(theirs) && !theirs.Extends(ours) {
			return "its sections differ from what the others have"
		}
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

func describe(ctx context.Context, addrs []string, dial ...grpc.DialOption) ([]*pb.DescribeReply, []error) {
	replies, errs := make([]*pb.DescribeReply, len(addrs)), make([]error, len(addrs))
	ctx, cancel := context.WithTimeout(ctx, oneAnswer)
	defer cancel()
	var wg sync.WaitGroup
	for i, addr := range addrs {
		wg.Go(func() {
			client, err := storeclient.Dial(addr, dial...)
			if err != nil {
				errs[i] = err
				return
			}
			replies[i], errs[i] = client.DescribeAll(ctx)
			_ = client.Close() // nothing is under way
		})
	}
	wg.Wait()
	return replies, errs
}

func roleOf(m quorum.Member) string {
	if m.Learner {
		return "learner"
	}
	return "voter"
}

func rowOf(addr string, d *pb.DescribeReply, list quorum.MemberList, agreed *pb.DescribeReply) row {
	role := "none"
	if m, listed := list.Find(d.GetStoreUuid()); listed {
		role = roleOf(m)
	}
	return row{Name: d.GetName(), UUID: d.GetStoreUuid(), Addr: addr, Role: role, State: d.GetState(), Boots: d.GetBootCount(),
		Era: d.GetRef().GetEra(), Members: d.GetRef().GetMembersVersion(), Commits: d.GetCommits(), Registers: d.GetRegisters(),
		WorkerFloorMS: d.GetWorkerFloorMs(), KeptMS: d.GetWorkersKeptUs() / 1000, FreeBytes: d.GetDiskFreeBytes(), NearlyFull: d.GetNearlyFull(), GraceLeftMS: d.GetGraceRemainingUs() / 1000, Zone: d.GetZone(),
		Protocol: d.GetProtocol(), Required: d.GetRequiredProtocol(),
		Lagging: d.GetRef().GetMembersVersion() < list.Version, Pending: d.GetPending(), Odd: oddOf(d, agreed), voting: d.GetVoting()}
}

// judge finds what is wrong, the worst first, and says what to do.
func (r *result) judge() {
	voting := 0
	var first, then []string
	for i := range r.Stores {
		s := &r.Stores[i]
		if s.voting && !s.Lagging && s.Odd == "" {
			voting++
		}
		switch {
		case s.Odd != "":
			first = append(first, fmt.Sprintf("%s at %s does not belong to the others: %s", s.Name, s.Addr, s.Odd))
		case s.Role == "none" && r.instead(s) != nil:
			first = append(first, fmt.Sprintf("%s at %s has uuid %s, and the member list has uuid %s as %s: bring that disk back, or replace it", s.Name, s.Addr, s.UUID, r.instead(s).UUID, s.Name))
		case s.Role == "none":
			then = append(then, fmt.Sprintf("%s is no member: %s; stop it, or take it in by seqctl store add or replace", s.Name, s.State))
		case s.State == "unreachable":
			first = append(first, fmt.Sprintf("%s is not reachable: start it; if its disk is lost, seqctl store replace --dead %s", s.Name, s.Name))
		case s.Role == "learner":
			then = append(then, fmt.Sprintf("%s is being filled: a change is half done; give its command again, or seqctl store abort", s.Name))
		case !s.voting && s.Pending:
			first = append(first, fmt.Sprintf("%s does not vote: %s; start all stores of its list, and an AllocSvr that reaches them", s.Name, s.State))
		case !s.voting:
			first = append(first, fmt.Sprintf("%s does not vote: %s; seqctl store replace --dead %s", s.Name, s.State, s.Name))
		case s.NearlyFull:
			first = append(first, fmt.Sprintf("%s refuses writes, its disk is nearly full: make room", s.Name))
		case s.Lagging:
			then = append(then, fmt.Sprintf("%s has member list %d, not %d: the next AllocSvr that speaks to it tells it", s.Name, s.Members, r.Version))
		}
	}
	if voting < r.W {
		first = append([]string{fmt.Sprintf("%d of %d stores vote, %d are needed: no quorum; bring stores back before anything else", voting, r.N, r.W)}, first...)
	}
	r.Problems = append(append([]string{}, first...), then...)
	r.Healthy = len(r.Problems) == 0
	r.Notes = []string{}
	if i := longestKept(r.Stores); i >= 0 {
		s := r.Stores[i]
		r.Notes = append(r.Notes, survey.KeptNote(s.WorkerFloorMS, time.Duration(s.KeptMS)*time.Millisecond))
	}
}

// instead returns the member in whose place a store answers that is no member, by its name; nil if
// there is none.
func (r *result) instead(s *row) *row {
	i := slices.IndexFunc(r.Stores, func(o row) bool { return o.Name == s.Name && o.UUID != s.UUID && o.Role != "none" })
	if i < 0 {
		return nil
	}
	return &r.Stores[i]
}

// longestKept returns the store that keeps worker ids back for longest, -1 if none does.
func longestKept(stores []row) int {
	most := -1
	for i, s := range stores {
		if s.KeptMS > 0 && (most < 0 || s.KeptMS > stores[most].KeptMS) {
			most = i
		}
	}
	return most
}

func (r *result) print(w io.Writer, format ui.Format) error {
	if format != ui.FormatTable {
		return ui.Print(w, format, r, nil)
	}
	r.Verdict.Print(w, "cluster %s, member list %d, N=%d R=%d W=%d", r.Cluster, r.Version, r.N, r.R, r.W)
	t := ui.NewTable("store", "addr", "role", "state", "list", "era", "boots", "commits", "registers", "free MiB", "grace left", "zone", "uuid")
	for _, s := range r.Stores {
		state := ctl.State(s.State, s.voting)
		if s.Odd != "" {
			state = ctl.State("left out", false)
		}
		if s.NearlyFull {
			state = ctl.Pending(state.Text + ", nearly full")
		}
		if s.Lagging {
			state.Text += ", lagging"
		}
		t.Row(s.Name, s.Addr, s.Role, state, s.Members, s.Era, s.Boots, s.Commits, s.Registers, s.FreeBytes>>20, ctl.Left(s.GraceLeftMS), s.Zone, s.UUID)
	}
	return t.Write(w)
}
