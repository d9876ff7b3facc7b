package ctl

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/internal/ui"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// askTimeout is the default of the verbs that only ask.
const askTimeout = 10 * time.Second

// statusResult is what status prints.
type statusResult struct {
	Health       health        `json:"health"` // healthy, degraded or failed
	Problems     []string      `json:"problems"`
	First        string        `json:"first"` // what to do first; empty if healthy
	ClusterID    string        `json:"cluster_id"`
	Era          uint64        `json:"era"`
	RouteVersion uint64        `json:"route_version"`
	Sections     uint32        `json:"sections"`
	Unowned      uint32        `json:"sections_unowned"`
	Arbiter      string        `json:"arbiter"`
	Frozen       string        `json:"frozen"`
	LeaseMS      float64       `json:"lease_ms"`
	Allocs       []statusAlloc `json:"allocs"`
	Stores       []statusStore `json:"stores"`
}

type statusAlloc struct {
	Name      string `json:"name"`
	Addr      string `json:"addr"`
	Session   string `json:"session"`
	State     string `json:"state"` // ready, or why not
	Drained   bool   `json:"drained"`
	Sections  uint32 `json:"sections_owned"`
	Counters  uint64 `json:"counters"` // UIDs in memory
	Numbers   uint64 `json:"numbers"`  // handed out since its start
	Steps     uint64 `json:"steps"`
	Takeovers uint64 `json:"takeovers"`
	Handoffs  uint64 `json:"handoffs"`
	Nacks     uint64 `json:"nacks"`
	Version   string `json:"version"`
}

type statusStore struct {
	Name    string `json:"name"` // empty: the membership does not know it
	UUID    string `json:"uuid"`
	Addr    string `json:"addr"`
	State   string `json:"state"` // voting, unreachable, or why it does not vote
	Boots   uint64 `json:"boot_count"`
	GraceMS int64  `json:"grace_left_ms"`
	Commits uint64 `json:"commits"`
}

func statusCommand() *cobra.Command {
	o := &Options{}
	cmd := &cobra.Command{
		Use:   "status",
		Short: "say at a glance whether the cluster is healthy; exit 1 if a part of it does not serve",
		Args:  ExactArgs(),
	}
	o.AddTo(cmd, askTimeout)
	cmd.RunE = o.Verb(func(ctx context.Context, format ui.Format, _ []string, stdout io.Writer) error {
		s, err := takeSurvey(ctx, o)
		if err != nil {
			return err
		}
		result := newStatus(s)
		if err := printStatus(stdout, format, result); err != nil {
			return err
		}
		if result.Health == failed {
			return fmt.Errorf("%w: %s", errUnhealthy, result.Problems[0])
		}
		return nil
	})
	return cmd
}

func newStatus(s *survey) statusResult {
	r := statusResult{ClusterID: s.cluster.id, RouteVersion: s.cluster.table.Version, Sections: uint32(s.cluster.mapping.Sections()),
		Frozen: s.cluster.table.Frozen, Allocs: []statusAlloc{}, Stores: []statusStore{}}
	r.Health, r.Problems = s.judge()
	if r.Health != healthy {
		r.First = s.first()
	}
	if best := s.view(); best != nil {
		r.Era, r.RouteVersion, r.Unowned = best.GetEra(), best.GetRouteVersion(), best.GetSectionsUnowned()
		r.Arbiter, r.Frozen, r.LeaseMS = best.GetArbiter(), best.GetFrozen(), float64(best.GetLeaseUs())/1000
		names := s.storeNames()
		for _, st := range sortedBy(best.GetStores(), (*pb.StoreStatus).GetAddr) {
			state := st.GetState()
			if !st.GetReachable() {
				state = "unreachable"
			}
			r.Stores = append(r.Stores, statusStore{names[st.GetAddr()], st.GetUuid(), st.GetAddr(), state, st.GetBootCount(), st.GetGraceLeftMs(), st.GetCommits()})
		}
	}
	for _, node := range s.cluster.table.Nodes {
		a := statusAlloc{Name: node.Name, Addr: node.Addr, Session: sessionText(uint64(node.Session)), Drained: node.Drained, State: "does not answer"}
		if reply := s.replies[node.Name]; reply != nil {
			a.State = "ready"
			if !reply.GetReady() {
				a.State = "not ready: " + reply.GetReason()
			}
			a.Session, a.Sections, a.Counters, a.Numbers = sessionText(reply.GetSession()), reply.GetSectionsOwned(), reply.GetCounters(), reply.GetNumbers()
			a.Steps, a.Takeovers, a.Handoffs = reply.GetSteps(), reply.GetTakeovers(), reply.GetHandoffs()
			a.Nacks, a.Version = reply.GetNacks(), reply.GetVersion()
		}
		r.Allocs = append(r.Allocs, a)
	}
	r.Allocs = sortedBy(r.Allocs, func(a statusAlloc) string { return a.Name })
	return r
}

// color says the same as the word, for eyes.
func (h health) color() ui.Color {
	switch h {
	case healthy:
		return ui.Green
	case degraded:
		return ui.Yellow
	}
	return ui.Red
}

func printStatus(w io.Writer, format ui.Format, r statusResult) error {
	if format != ui.FormatTable {
		return ui.Print(w, format, r, nil)
	}
	word := strings.ToUpper(string(r.Health))
	if ui.Colored(w) {
		word = string(r.Health.color()) + word + "\x1b[0m"
	}
	fmt.Fprintf(w, "%s   cluster %s, %d sections, %d without an owner, routes version %d, lease %s, arbiter %s\n",
		word, r.ClusterID, r.Sections, r.Unowned, r.RouteVersion, ui.Duration(time.Duration(r.LeaseMS*float64(time.Millisecond))), orDash(r.Arbiter))
	for _, problem := range r.Problems {
		fmt.Fprintf(w, "  - %s\n", problem)
	}
	if r.First != "" {
		fmt.Fprintf(w, "  first: %s\n", r.First)
	}
	fmt.Fprintln(w)
	allocs := ui.NewTable("alloc", "addr", "state", "sections", "uids", "numbers", "steps", "takeovers", "handoffs")
	for _, a := range r.Allocs {
		state := ui.Cell{Text: a.State, Color: ui.Green}
		if a.State != "ready" {
			state.Color = ui.Red
		}
		if a.Drained {
			state.Text += ", drained"
		}
		allocs.Row(a.Name, a.Addr, state, a.Sections, a.Counters, a.Numbers, a.Steps, a.Takeovers, a.Handoffs)
	}
	if err := allocs.Write(w); err != nil {
		return err
	}
	fmt.Fprintln(w)
	stores := ui.NewTable("store", "addr", "state", "boots", "commits", "grace left", "uuid")
	for _, st := range r.Stores {
		state := ui.Cell{Text: st.State, Color: ui.Green}
		if st.State != "voting" {
			state.Color = ui.Red
		}
		stores.Row(orDash(st.Name), st.Addr, state, st.Boots, st.Commits, milliseconds(st.GraceMS), st.UUID)
	}
	return stores.Write(w)
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// milliseconds is a time left of a reply, for a table; empty for none.
func milliseconds(ms int64) any {
	if ms <= 0 {
		return ""
	}
	return time.Duration(ms) * time.Millisecond
}
