package etcdverbs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/seqsvr/seqsvr/cmd/seqctl/ctl"
	"github.com/seqsvr/seqsvr/internal/base/ui"
	"github.com/seqsvr/seqsvr/internal/etcd/etcdclient"
	"github.com/seqsvr/seqsvr/internal/etcd/etcdstore"
	"github.com/seqsvr/seqsvr/internal/ops/survey"
	"github.com/seqsvr/seqsvr/seq"
)

// errUnhealthy: a member is missing, or something stands against the use of etcd.
var errUnhealthy = errors.New("etcd is not healthy")

// shown is the output of status.
type shown struct {
	Engine string `json:"engine"`
	ctl.Verdict
	Cluster  string                  `json:"cluster_id,omitempty"`
	UUID     string                  `json:"uuid,omitempty"`
	Era      seq.Era                 `json:"era"`
	Required int                     `json:"required_protocol"` // of sessions; zero means any
	Prefix   string                  `json:"prefix"`
	Spaces   []space                 `json:"spaces"`
	Sessions []etcdstore.LiveSession `json:"sessions"`
	Members  []member                `json:"members"`
}

type space struct {
	Name     string `json:"name"`
	Sections uint32 `json:"sections"`
	Mode     string `json:"mode"`
}

// member is one member of etcd.
type member struct {
	Name     string   `json:"name,omitempty"`
	Addr     string   `json:"addr"`
	Version  string   `json:"version,omitempty"`
	State    string   `json:"state"` // leads, follows, learner, no leader, or no answer
	Term     uint64   `json:"raft_term,omitempty"`
	Revision int64    `json:"revision,omitempty"`
	Size     int64    `json:"size_bytes,omitempty"`
	InUse    int64    `json:"in_use_bytes,omitempty"`
	Quota    int64    `json:"quota_bytes,omitempty"` // zero if the member does not report it
	Alarms   []string `json:"alarms,omitempty"`
	Error    string   `json:"error,omitempty"`
}

func memberOf(m etcdclient.Member) member {
	r := member{Name: m.Name, Addr: m.Addr, State: "follows", Version: m.Version, Term: m.Term, Revision: m.Revision,
		Size: m.Size, InUse: m.InUse, Quota: m.Quota, Alarms: m.Alarms}
	switch {
	case m.Err != nil:
		r.State, r.Error = "no answer", m.Err.Error()
	case m.Leads():
		r.State = "leads"
	case m.Leader == 0:
		r.State = "no leader"
	case m.Learner:
		r.State = "learner"
	}
	return r
}

// Status prints the members of the etcd and the cluster below the prefix. The error is the first
// thing that is wrong with them.
func Status(ctx context.Context, flags *etcdclient.Flags, format ui.Format, stdout io.Writer) error {
	return With(flags, func(c *etcdclient.Client) error {
		s := shown{Engine: "etcd", Prefix: flags.Prefix, Verdict: ctl.Verdict{Problems: []string{}, Notes: []string{}}, Spaces: []space{}, Sessions: []etcdstore.LiveSession{}}
		members, wrong := c.Check(ctx, flags.Requirement())
		reachable := !errors.Is(wrong, etcdclient.ErrUnreachable)
		if reachable {
			found, err := etcdstore.Look(ctx, c, flags.Prefix)
			if err == nil {
				s.found(found)
				err = found.Trouble
			}
			wrong = errors.Join(err, wrong)
		}
		s.judge(members, wrong)
		if err := s.print(stdout, format); err != nil {
			return err
		}
		if wrong == nil && !s.Healthy {
			wrong = fmt.Errorf("%w: %s", errUnhealthy, s.Problems[0])
		}
		return wrong
	})
}

// found takes in the cluster.
func (s *shown) found(c etcdstore.Contents) {
	s.Cluster, s.UUID, s.Era, s.Required = c.Cluster, c.UUID, c.Era, c.Required
	for _, sp := range c.Mapping.Spaces {
		s.Spaces = append(s.Spaces, space{sp.Name, sp.Sections, string(sp.Mode)})
	}
	s.Sessions = append(s.Sessions, c.Sessions...)
	slices.SortFunc(s.Sessions, func(a, b etcdstore.LiveSession) int { return strings.Compare(a.Name, b.Name) })
	if left := time.Until(time.UnixMilli(int64(c.Floors.Worker))); left > 0 {
		s.Notes = append(s.Notes, survey.KeptNote(c.Floors.Worker, left)+" --etcd ADDRS")
	}
}

// judge takes in the members, and says what to do.
func (s *shown) judge(members []etcdclient.Member, wrong error) {
	if wrong != nil && !errors.Is(wrong, etcdclient.ErrUnreachable) { // of that the members tell more
		s.Problems = append(s.Problems, strings.ReplaceAll(wrong.Error(), "\n", "; "))
	}
	for _, m := range members {
		s.Members = append(s.Members, memberOf(m))
		name := strings.TrimSpace(m.Name + " at " + m.Addr)
		switch {
		case errors.Is(m.Err, etcdclient.ErrUnasked):
			s.Notes = append(s.Notes, fmt.Sprintf("etcd member %s is not among --etcd: it was not asked, and nothing falls back to it", name))
		case errors.Is(m.Err, etcdclient.ErrUnreachable):
			s.Problems = append(s.Problems, fmt.Sprintf("etcd member %s is not reachable: start it; if its disk is lost, etcdctl member remove and add", name))
		case m.Err != nil:
			s.Problems = append(s.Problems, fmt.Sprintf("etcd member %s does not tell how it is: %v", name, m.Err))
		case m.Leader == 0:
			s.Problems = append(s.Problems, fmt.Sprintf("etcd member %s knows no leader: bring the other members back", name))
		case m.Learner:
			s.Notes = append(s.Notes, fmt.Sprintf("etcd member %s is a learner: etcdctl member promote", name))
		}
		for _, text := range m.Errors {
			s.Problems = append(s.Problems, fmt.Sprintf("etcd member %s says: %s", name, text))
		}
		if m.Quota > 0 && m.Size > m.Quota/10*8 {
			s.Problems = append(s.Problems, fmt.Sprintf("etcd member %s has %s of its quota of %s: etcdctl compact and defrag, or a larger --quota-backend-bytes; at the quota nothing is served",
				name, survey.Size(uint64(m.Size)), survey.Size(uint64(m.Quota))))
		}
	}
	s.Healthy = len(s.Problems) == 0
}

func (s *shown) print(w io.Writer, format ui.Format) error {
	if format != ui.FormatTable {
		return ui.Print(w, format, s, nil)
	}
	if s.Cluster == "" {
		s.Verdict.Print(w, "etcd, below %s", s.Prefix)
	} else {
		s.Verdict.Print(w, "cluster %s on etcd below %s, era %d, uuid %s", s.Cluster, s.Prefix, s.Era, s.UUID)
	}
	if err := ctl.EtcdTable(s.rows()).Write(w); err != nil {
		return err
	}
	if s.Cluster == "" {
		return nil
	}
	fmt.Fprintln(w)
	for _, sp := range s.Spaces {
		fmt.Fprintf(w, "space %s: %d sections, %s\n", sp.Name, sp.Sections, sp.Mode)
	}
	if len(s.Sessions) == 0 {
		fmt.Fprintln(w, "no sessions: no AllocSvr has run since the last one left")
		return nil
	}
	t := ui.NewTable("session of", "addr", "lease", "id")
	for _, one := range s.Sessions {
		t.Row(one.Name, one.Addr, one.Lease, one.ID.String())
	}
	return t.Write(w)
}

func (s *shown) rows() (rows []ctl.EtcdRow) {
	for _, m := range s.Members {
		good := m.Error == "" && m.State != "no leader"
		state := ctl.State(m.State, good)
		if good && len(m.Alarms) > 0 {
			state = ctl.State(strings.Join(m.Alarms, ", "), false)
		}
		rows = append(rows, ctl.EtcdRow{Name: m.Name, Addr: m.Addr, Version: m.Version, State: state, Silent: m.Error != "",
			Revision: m.Revision, Size: uint64(m.Size), InUse: uint64(m.InUse), Quota: uint64(m.Quota)})
	}
	return rows
}
