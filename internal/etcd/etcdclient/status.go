package etcdclient

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// askTime bounds what one endpoint is asked.
const askTime = 2 * time.Second

// Member is one member of etcd as it tells of itself or, where it does not answer, as the others
// know it.
type Member struct {
	Addr string // the endpoint; of a member that has none, its first address for clients
	Name string // empty if unknown
	// Err is why the member did not answer: ErrUnreachable, ErrUnasked, ErrLogin or ErrPermission. ID,
	// Learner and Alarms may be known in spite of it.
	Err      error
	ID       uint64 // zero if unknown
	Leader   uint64 // zero if the member knows none
	Term     uint64 // of raft
	Version  string
	Revision int64
	Learner  bool
	Size     int64    // of its database, bytes
	InUse    int64    // of these; the rest is freed by a defragmentation
	Quota    int64    // of Size, bytes; zero if unknown. Before 3.6 no etcd reports it, before 3.6.6 only a configured one
	Alarms   []string // that it has raised, such as NOSPACE: they stop the whole cluster
	Errors   []string // what else it says is wrong

	cluster uint64
}

// Leads says whether the member takes itself for the leader.
func (m Member) Leads() bool { return m.ID != 0 && m.ID == m.Leader }

// Status asks each endpoint for itself. It gives a member for each endpoint, in order, and then
// those that no endpoint is of: ErrUnasked. It needs no leader, except where etcd tells only users
// and there is no token yet.
func (c *Client) Status(ctx context.Context) []Member {
	members, told := make([]Member, len(c.ends)), make([]told, len(c.ends))
	var wg sync.WaitGroup
	for i, e := range c.ends {
		wg.Go(func() { members[i], told[i] = c.statusOf(ctx, e) })
	}
	wg.Wait()
	for _, t := range told {
		for _, m := range t.members {
			members = identify(members, m)
		}
	}
	for i, t := range told {
		for _, a := range t.alarms {
			raise(members, a, i)
		}
	}
	return members
}

// told is what a member says of all of them.
type told struct {
	members []*pb.Member
	alarms  []alarm
}

type alarm struct {
	member uint64
	kind   string // such as NOSPACE
}

func (c *Client) statusOf(ctx context.Context, e endpoint) (m Member, t told) {
	err := c.ask(ctx, e, func(ctx context.Context, e endpoint) error {
		s, err := pb.NewMaintenanceClient(e.conn).Status(ctx, &pb.StatusRequest{})
		if err != nil {
			return err
		}
		h := s.GetHeader()
		m = Member{ID: h.GetMemberId(), Leader: s.GetLeader(), Term: s.GetRaftTerm(), Version: s.GetVersion(), Revision: h.GetRevision(),
			Learner: s.GetIsLearner(), Size: s.GetDbSize(), InUse: s.GetDbSizeInUse(), Quota: s.GetDbSizeQuota(), cluster: h.GetClusterId()}
		t.alarms, m.Errors = alarmsIn(s.GetErrors())
		return nil
	})
	m.Addr = e.addr
	switch {
	case status.Code(err) == codes.DeadlineExceeded:
		m.Err = fmt.Errorf("%w: no answer: %s", ErrUnreachable, status.Convert(err).Message())
	case errors.Is(named(err), ErrPermission):
		m.Err = fmt.Errorf("%w: 3.5.28 to 3.5.31 and 3.6.0 to 3.6.11 tell root alone how they are; use a later one", ErrPermission)
	case err != nil:
		m.Err = named(err)
	default:
		// One that does not tell the user the names does without: they are for people.
		_ = c.ask(ctx, e, func(ctx context.Context, e endpoint) error {
			list, err := pb.NewClusterClient(e.conn).MemberList(ctx, &pb.MemberListRequest{}) // as this member knows it
			t.members = list.GetMembers()
			return err
		})
	}
	return m, t
}

// ask asks one endpoint without a token, and under the user's only if it wants one: a login is a write, and
// there may be no leader to take it.
func (c *Client) ask(ctx context.Context, e endpoint, call func(context.Context, endpoint) error) error {
	plain, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	err := call(plain, e)
	if named := named(err); c.cfg.User == "" || !errors.Is(named, ErrLogin) && !errors.Is(named, ErrPermission) && !errors.Is(named, errToken) {
		return err
	}
	return c.once(ctx, e, askTime, call)
}

// alarmsIn takes the alarms out of the errors that a member tells, which have them as text:
// "memberID:1234 alarm:NOSPACE".
func alarmsIn(texts []string) (alarms []alarm, rest []string) {
	for _, text := range texts {
		var a alarm
		for _, field := range strings.Fields(text) {
			if id, is := strings.CutPrefix(field, "memberID:"); is {
				a.member, _ = strconv.ParseUint(id, 10, 64)
			} else if kind, is := strings.CutPrefix(field, "alarm:"); is {
				a.kind = kind
			}
		}
		if a.kind == "" {
			rest = append(rest, text)
		} else {
			alarms = append(alarms, a)
		}
	}
	return alarms, rest
}

// identify names a member of the list, or adds it if no endpoint is of it.
func identify(members []Member, listed *pb.Member) []Member {
	found := false
	for i := range members {
		m := &members[i]
		if m.ID == listed.GetID() || m.ID == 0 && m.Err != nil && slices.ContainsFunc(listed.GetClientURLs(), func(u string) bool { return hostOf(u) == m.Addr }) {
			m.ID, m.Name, m.Learner, found = listed.GetID(), listed.GetName(), listed.GetIsLearner(), true
		}
	}
	if found {
		return members
	}
	m := Member{ID: listed.GetID(), Name: listed.GetName(), Learner: listed.GetIsLearner(), Err: ErrUnasked}
	if urls := listed.GetClientURLs(); len(urls) > 0 {
		m.Addr = hostOf(urls[0])
	}
	return append(members, m)
}

// hostOf is host:port of a URL, which is given as it is if it is none.
func hostOf(raw string) string {
	if u, err := url.Parse(raw); err == nil && u.Host != "" {
		return u.Host
	}
	return raw
}

// raise notes an alarm with the member whose it is, or with the one that told it if that one is not known.
func raise(members []Member, a alarm, by int) {
	known := false
	for i := range members {
		if m := &members[i]; m.ID == a.member {
			known = true
			if !slices.Contains(m.Alarms, a.kind) {
				m.Alarms = append(m.Alarms, a.kind)
			}
		}
	}
	if !known && !slices.Contains(members[by].Alarms, a.kind) {
		members[by].Alarms = append(members[by].Alarms, a.kind)
	}
}
