package etcdclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// MinVersion is the oldest etcd that Check accepts: 3.5 from MinVersion on, and 3.6 from MinVersion36 on.
// Older versions may revoke a lease or lose a write wrongly.
const (
	MinVersion   = "3.5.23"
	MinVersion36 = "3.6.5"
)

// compactedBy is the revision by which an etcd that compacts by itself has done so: some ten
// minutes of the renewals of 30 sessions.
const compactedBy = 100_000

// Requirement is what Check asks for.
type Requirement struct {
	MinVersion  string // if empty, MinVersion of this package
	CompactedBy int64  // revision by which history must have been compacted; zero means 100,000
}

// Check returns a named error if this etcd must not be used. It cannot tell whether etcd syncs its log to
// the disk (--unsafe-no-fsync). It returns the members in any case.
func (c *Client) Check(ctx context.Context, want Requirement) ([]Member, error) {
	members := c.Status(ctx)
	if err := sound(members, want); err != nil {
		return members, err
	}
	var revision int64
	for _, m := range members {
		revision = max(revision, m.Revision)
	}
	if err := c.compacts(ctx, revision, cmp.Or(want.CompactedBy, compactedBy)); err != nil {
		return members, err
	}
	return members, c.notKubernetes(ctx)
}

// sound looks at what the members told.
func sound(members []Member, want Requirement) error {
	var silent []error
	var some *Member
	for i := range members {
		m := &members[i]
		for _, alarm := range m.Alarms {
			if alarm == "NOSPACE" || alarm == "CORRUPT" {
				return fmt.Errorf("%w: %s: %s; NOSPACE: compact, defragment, then etcdctl alarm disarm; CORRUPT: replace the member", ErrAlarm, m.Addr, alarm)
			}
		}
		switch {
		case errors.Is(m.Err, ErrUnasked):
			continue
		case m.Err != nil:
			silent = append(silent, fmt.Errorf("%s: %w", m.Addr, m.Err))
			continue
		case m.Leader == 0:
			silent = append(silent, fmt.Errorf("%s: it knows no leader", m.Addr))
			continue
		case tooOld(m.Version, want):
			return fmt.Errorf("%w: %s has version %s, expected at least %s, or %s of 3.6", ErrVersion, m.Addr, m.Version, least(want), MinVersion36)
		case some != nil && some.cluster != m.cluster:
			return fmt.Errorf("%w: %s and %s", ErrMixed, some.Addr, m.Addr)
		}
		some = m
	}
	if some == nil {
		return fmt.Errorf("%w: %w", ErrUnreachable, errors.Join(silent...))
	}
	return nil
}

func least(want Requirement) string {
	if want.MinVersion != "" {
		return want.MinVersion
	}
	return MinVersion
}

func tooOld(version string, want Requirement) bool {
	v := parse(version)
	if want.MinVersion == "" && v[0] == 3 && v[1] == 6 {
		return before(v, parse(MinVersion36))
	}
	return before(v, parse(least(want)))
}

// parse gives major, minor and patch; 0 for what is no number.
func parse(version string) (v [3]int) {
	version, _, _ = strings.Cut(version, "-")
	for i, part := range strings.SplitN(version, ".", 3) {
		v[i], _ = strconv.Atoi(part)
	}
	return v
}

func before(v, w [3]int) bool {
	for i := range v {
		if v[i] != w[i] {
			return v[i] < w[i]
		}
	}
	return false
}

// compacts asks for the oldest revision: an etcd of some age that still has it never compacts.
func (c *Client) compacts(ctx context.Context, revision, by int64) error {
	if revision < by {
		return nil
	}
	err := c.try(ctx, func(ctx context.Context, e endpoint) error {
		_, err := e.kv.Range(ctx, &pb.RangeRequest{Key: []byte("/"), Revision: 1, KeysOnly: true})
		return err
	})
	switch {
	case errors.Is(err, errCompacted):
		return nil
	case errors.Is(err, ErrPermission): // of a user that may read its prefix only: not known
		return nil
	case err != nil:
		return err
	}
	return fmt.Errorf("%w: revision 1 is there at revision %d; start etcd with --auto-compaction-retention=1h", ErrCompaction, revision)
}

// notKubernetes refuses an etcd with the keys of a control plane.
func (c *Client) notKubernetes(ctx context.Context) error {
	var found int64
	err := c.try(ctx, func(ctx context.Context, e endpoint) error {
		r, err := e.kv.Range(ctx, &pb.RangeRequest{Key: []byte("/registry/"), RangeEnd: []byte("/registry0"), CountOnly: true})
		found = r.GetCount()
		return err
	})
	if err != nil && !errors.Is(err, ErrPermission) {
		return err
	}
	if found > 0 {
		return fmt.Errorf("%w: it has %d keys below /registry/; run an etcd of seqsvr's own", ErrKubernetes, found)
	}
	return nil
}
