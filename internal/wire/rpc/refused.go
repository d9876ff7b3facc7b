package rpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/peer"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// Reason says why a call was refused or a connection closed. The list is closed: a reason is
// a label of a metric, and docs/operations.md has a row for each.
type Reason string

// The reasons.
const (
	// RefusedUnauthenticated is a call without a certificate or token that holds.
	RefusedUnauthenticated Reason = "unauthenticated"
	// RefusedForbidden is a call that the caller's role or grants do not allow.
	RefusedForbidden Reason = "forbidden"
	// RefusedQuota is a call above the rate that the policy gives the caller.
	RefusedQuota Reason = "quota"
	// RefusedOverloaded is a call for which there was no place, or the caller's share was used up.
	RefusedOverloaded Reason = "overloaded"
	// RefusedUnread is a call of a peer that leaves its replies unread, or its connection.
	RefusedUnread Reason = "unread"
	// RefusedUnfinished is a connection with too many bytes of messages that are not whole.
	RefusedUnfinished Reason = "unfinished"
	// RefusedCompressed is a call whose messages are compressed.
	RefusedCompressed Reason = "compressed"
	// RefusedStranger is a connection that has not shown who it is, and sends nothing that counts.
	RefusedStranger Reason = "stranger"
	// RefusedCancelled is a connection of a peer that cancels calls before they are served, without end.
	RefusedCancelled Reason = "cancelled"
	// RefusedConnections is a connection for which there was no place.
	RefusedConnections Reason = "connections"
	// RefusedCertificate is a handshake whose certificate does not hold.
	RefusedCertificate Reason = "certificate"
	// RefusedForeign is a call for another cluster, or from a build too far away.
	RefusedForeign Reason = "foreign"
	// RefusedPage is a request by another name, or one that a web page has a browser send.
	RefusedPage Reason = "page"
	// RefusedRaise is a raise that goes too far.
	RefusedRaise Reason = "raise"
	// RefusedWorkers is a request for worker ids beyond the share of the caller.
	RefusedWorkers Reason = "workers"
)

// Errors of connections and messages. They are seq.ErrOverloaded and seq.ErrBadArgument.
var (
	// ErrUnread refuses the calls of a peer that does not read.
	ErrUnread = fmt.Errorf("%w: replies that were not read", seq.ErrOverloaded)
	// ErrCompressed refuses a compressed message.
	ErrCompressed = fmt.Errorf("%w: a compressed message, expected none to be compressed", seq.ErrBadArgument)
)

// reasons has every reason, the errors that stand for it, and whether it is quiet: an everyday
// matter, or one with log lines of its own. The first error that a cause wraps decides.
var reasons = []struct {
	reason Reason
	quiet  bool
	errs   []error
}{
	{RefusedUnauthenticated, true, []error{seq.ErrUnauthenticated}},
	{RefusedForbidden, true, []error{seq.ErrForbidden, seq.ErrNotSession}},
	{RefusedCertificate, true, nil},
	{RefusedForeign, false, []error{seq.ErrForeignCluster, seq.ErrProtocol}},
	{RefusedQuota, true, []error{seq.ErrQuota}},
	{RefusedUnread, false, []error{ErrUnread}},
	{RefusedUnfinished, false, nil},
	{RefusedCompressed, false, []error{ErrCompressed}},
	{RefusedStranger, true, nil},
	{RefusedCancelled, false, nil},
	{RefusedConnections, false, nil},
	{RefusedPage, false, nil},
	{RefusedRaise, true, []error{seq.ErrJump}},
	{RefusedWorkers, true, []error{seq.ErrWorkersExhausted}},
	{RefusedOverloaded, true, []error{seq.ErrOverloaded}}, // last: others wrap it
}

// Reasons returns every reason.
func Reasons() []Reason {
	all := make([]Reason, len(reasons))
	for i, row := range reasons {
		all[i] = row.reason
	}
	return all
}

func (r Reason) quiet() bool {
	for _, row := range reasons {
		if row.reason == r {
			return row.quiet
		}
	}
	return false
}

const (
	// maxAddresses bounds the addresses that are counted separately.
	maxAddresses = 16
	// RecentMinutes is the number of minutes before the current one that Recent covers.
	RecentMinutes = 5
	// OtherAddresses stands for all addresses that are not kept apart.
	OtherAddresses = "other"
)

// Refused counts what one process refuses and closes, by reason and address. It keeps the
// maxAddresses hosts with the most refusals apart. The nil Refused counts nothing. Safe for
// concurrent use.
type Refused struct {
	log *slog.Logger
	now func() time.Time

	mu     sync.Mutex // guards all below
	by     map[string]*refusals
	others refusals
	lines  map[Reason]*rateLimitedLog
}

// refusals are the counts of one address.
type refusals struct {
	weight uint64 // falls by one when an address beside the kept ones comes; 0 gives the place up
	counts map[Reason]*tally
}

// tally is one count, with its latest minutes.
type tally struct {
	total   uint64
	minutes [RecentMinutes + 1]uint64 // by the minute, as a ring
	latest  int64                     // minute of the latest count
}

// NewRefused returns a counter. It logs at most a line a second and reason to log, if that is
// not nil.
func NewRefused(log *slog.Logger) *Refused {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Refused{log: log, now: time.Now, by: map[string]*refusals{}, others: refusals{counts: map[Reason]*tally{}}, lines: map[Reason]*rateLimitedLog{}}
}

// Note counts one refusal. address is host:port or a host; the port is left out.
func (r *Refused) Note(reason Reason, address string) {
	if r == nil {
		return
	}
	address = Host(address)
	minute := r.now().Unix() / 60
	r.mu.Lock()
	of := r.place(address)
	of.weight++
	of.add(reason, minute)
	line, ok := r.lines[reason]
	if !ok {
		line = new(rateLimitedLog)
		r.lines[reason] = line
	}
	r.mu.Unlock()
	if !reason.quiet() {
		line.warn(r.log, "refused", "reason", string(reason), "address", address)
	}
}

// place returns the counts of an address. If all places are taken, each of them loses some
// weight, and one that has none left is free for the next address. An address with more than a
// 17th of all refusals keeps its place (Misra and Gries).
func (r *Refused) place(address string) *refusals {
	of, ok := r.by[address]
	switch {
	case ok:
		return of
	case address == "":
		return &r.others
	}
	if len(r.by) < maxAddresses {
		of = &refusals{counts: map[Reason]*tally{}}
		r.by[address] = of
		return of
	}
	for name, kept := range r.by {
		if kept.weight--; kept.weight == 0 {
			r.others.take(kept)
			delete(r.by, name)
		}
	}
	return &r.others
}

func (c *refusals) add(reason Reason, minute int64) {
	of, ok := c.counts[reason]
	if !ok {
		of = &tally{latest: minute}
		c.counts[reason] = of
	}
	of.advance(minute)
	of.total++
	of.minutes[of.latest%int64(len(of.minutes))]++
}

// take adds the latest minutes of an address that is no longer counted separately. Its totals are dropped:
// a scrape has seen them as the address's totals, and the totals of other addresses must not rise by them
// again.
func (c *refusals) take(gone *refusals) {
	for reason, from := range gone.counts {
		to, ok := c.counts[reason]
		if !ok {
			to = &tally{latest: from.latest}
			c.counts[reason] = to
		}
		latest := max(to.latest, from.latest)
		to.advance(latest)
		from.advance(latest)
		for i, n := range from.minutes {
			to.minutes[i] += n
		}
	}
}

// advance empties the minutes between the latest and the one given. A clock that was set back
// counts on in the latest.
func (t *tally) advance(minute int64) {
	for n := range min(minute-t.latest, int64(len(t.minutes))) {
		t.minutes[(t.latest+1+n)%int64(len(t.minutes))] = 0
	}
	t.latest = max(t.latest, minute)
}

func (t *tally) recent(minute int64) (n uint64) {
	t.advance(minute)
	for _, m := range t.minutes {
		n += m
	}
	return n
}

// NoteError counts the refusal that err stands for, if it is one.
func (r *Refused) NoteError(err error, address string) {
	if r == nil || err == nil {
		return
	}
	if errors.Is(err, seq.ErrTickUsedUp) || errors.Is(err, seq.ErrUIDMemory) || errors.Is(err, seq.ErrExactMemory) { // they wrap seq.ErrOverloaded
		return
	}
	for _, row := range reasons {
		for _, known := range row.errs {
			if errors.Is(err, known) {
				r.Note(row.reason, address)
				return
			}
		}
	}
}

// NoteCall is NoteError for a gRPC call.
func (r *Refused) NoteCall(ctx context.Context, err error) {
	if r == nil || err == nil {
		return
	}
	address := ""
	if p, ok := peer.FromContext(ctx); ok {
		address = p.Addr.String()
	}
	r.NoteError(err, address)
}

// Host is an address without its port.
func Host(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return address
}

// Refusal counts the calls of an address that were refused for a reason.
type Refusal struct {
	Reason  Reason
	Address string
	Count   uint64
}

// Totals returns the counts since the start of those addresses that are kept apart now, and of
// the others. Nil for a nil Refused.
func (r *Refused) Totals() []Refusal {
	return r.list(func(t *tally, _ int64) uint64 { return t.total })
}

// Recent returns the counts of the latest RecentMinutes to RecentMinutes + 1 minutes, the largest
// first.
func (r *Refused) Recent() []Refusal { return r.list((*tally).recent) }

func (r *Refused) list(count func(*tally, int64) uint64) (all []Refusal) {
	if r == nil {
		return nil
	}
	minute := r.now().Unix() / 60
	r.mu.Lock()
	defer r.mu.Unlock()
	add := func(address string, of *refusals) {
		for reason, t := range of.counts {
			if n := count(t, minute); n > 0 {
				all = append(all, Refusal{reason, address, n})
			}
		}
	}
	for address, of := range r.by {
		add(address, of)
	}
	add(OtherAddresses, &r.others)
	slices.SortFunc(all, func(a, b Refusal) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Address, b.Address))
	})
	return all
}

// RecentToProto is Recent for the wire, at most 64 of them.
func (r *Refused) RecentToProto() (out []*pb.Refusal) {
	recent := r.Recent()
	for _, one := range recent[:min(len(recent), 64)] {
		out = append(out, &pb.Refusal{Reason: string(one.Reason), Address: one.Address, Count: one.Count})
	}
	return out
}
