package backup

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/seqsvr/seqsvr/exact"
	"github.com/seqsvr/seqsvr/internal/base/version"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
	"github.com/seqsvr/seqsvr/storesvr"
	"github.com/seqsvr/seqsvr/storesvr/acceptor"
	"github.com/seqsvr/seqsvr/storesvr/disk"
)

const (
	// DefaultBump is the amount by which a restore raises sections and tags. It is more than
	// fifteen raises by a space's largest jump (seq.DefaultMaxJump), and more than one counter
	// hands out in an hour at a million a second.
	DefaultBump = 1 << 36
	// DefaultWorkerMargin is the distance of a store's floor of worker ids beyond its clock. No
	// store accepts a mark further ahead, so no node holds a window that reaches beyond the floor.
	DefaultWorkerMargin = storesvr.WorkerAhead
	// documentBump raises the versions of documents, which change some times a second at
	// the very most.
	documentBump = 1 << 32

	versionLen = 8 // of a document's version at the front of its payload
)

// Restore is an order for a new store of a new era.
type Restore struct {
	DataDir string
	Name    string   // of this store, one of Names
	Names   []string // of all stores of the new era
	Cluster string   // that the backup must be of
	Era     seq.Era  // above the backup's era, and above every other era that the cluster has had
	// Bump, above 0, is the numbers by which every section and tag is raised for each era
	// from the backup's on: the eras between were restored, perhaps of this same backup,
	// and have handed out numbers above it.
	Bump uint64
	// WorkerMargin is the distance of the floor of worker ids beyond the store's clock at its
	// first start. No node holds a window of an earlier era that reaches further.
	WorkerMargin time.Duration
	// WasSet says that the cluster became the root of Sets after the backup, which is of one that is
	// alone. As a root Set that was restored it serves nothing before its Sets are added again, and it
	// is settled.
	WasSet bool
}

// Do makes the store's database of the backup. Every store of the new era is made of the
// same backup, each with its own name; they vote once they are bound to one another, and
// let nobody take anything before the longest lease of the era before has ended. Errors:
// seq.ErrForeignCluster, ErrEra, ErrBump, ErrUnsound, ErrNewer, disk.ErrExists,
// storesvr.ErrConfig, ErrWasSet. After an error nothing was made.
func (o Restore) Do(m Manifest, states []quorum.RegisterState) (Content, error) {
	c, err := o.Content(m, states)
	if err != nil {
		return Content{}, err
	}
	if err := disk.Create(o.DataDir, c.Identity, c.Filling); err != nil {
		return Content{}, fmt.Errorf("restore store %q: %w", o.Name, err)
	}
	return c, nil
}

// Content is what the database of a restored store begins with. Its LeaseBound is the longest
// lease of the era before.
type Content struct {
	Identity disk.Identity // under a new uuid
	disk.Filling
}

// Content returns the content of the database that Do would create, for callers that keep it
// elsewhere. Its errors are Do's, without disk.ErrExists.
func (o Restore) Content(m Manifest, states []quorum.RegisterState) (Content, error) {
	fail := func(err error) (Content, error) { return Content{}, fmt.Errorf("restore store %q: %w", o.Name, err) }
	with, err := o.Filling(m, states)
	if err != nil {
		return fail(err)
	}
	cfg := storesvr.InitConfig{DataDir: o.DataDir, ClusterID: o.Cluster, Name: o.Name, MemberNames: slices.Clone(o.Names)}
	id, err := storesvr.NewIdentity(cfg)
	if err != nil {
		return fail(err)
	}
	id.Era, id.Mapping = o.Era, m.Mapping
	return Content{Identity: id, Filling: with}, nil
}

// Filling returns the registers and floors with which the new era begins, without a store. Its
// errors are Do's, without the errors of disks and stores.
func (o Restore) Filling(m Manifest, states []quorum.RegisterState) (disk.Filling, error) {
	switch {
	case o.Cluster != m.Cluster:
		return disk.Filling{}, fmt.Errorf("%w: the backup is of %q, not %q", seq.ErrForeignCluster, m.Cluster, o.Cluster)
	case o.Era <= m.Era:
		return disk.Filling{}, fmt.Errorf("%w: %d after %d", ErrEra, o.Era, m.Era)
	case m.Required > version.Protocol:
		return disk.Filling{}, fmt.Errorf("%w: the backup requires protocol %d, this build speaks %d: restore it with a newer build", seq.ErrProtocol, m.Required, version.Protocol)
	}
	for _, st := range states {
		if err := st.Register.Known(); err != nil {
			return disk.Filling{}, fmt.Errorf("%w: restore it with that build: %w", ErrNewer, err)
		}
	}
	if wrong := Check(m.Mapping, states); len(wrong) > 0 {
		return disk.Filling{}, fmt.Errorf("%w: %s (and %d more)", ErrUnsound, wrong[0], len(wrong)-1)
	}
	states, required, err := o.ofSets(m, states)
	if err != nil {
		return disk.Filling{}, err
	}
	raised, err := o.raise(m, states)
	if err != nil {
		return disk.Filling{}, err
	}
	copies, err := o.lift(m, states, raised)
	if err != nil {
		return disk.Filling{}, err
	}
	floors, err := o.floors(m, states)
	if err != nil {
		return disk.Filling{}, err
	}
	return disk.Filling{Registers: raised, Copies: copies, LeaseBound: max(m.LeaseBound, storesvr.DefaultMaxLease), Floors: floors, Required: required, Origin: m.origin()}, nil
}

// floors returns what registers begin with that the backup does not know, or whose windows reach
// beyond what it knows. Sections of spaces that are added later, and tags, begin where one begins
// that the backup has at nothing. Each store makes the floor of worker ids by its own clock, at its
// first start; what the backup tells about the time is for a store whose clock is behind.
func (o Restore) floors(m Manifest, states []quorum.RegisterState) (disk.Floors, error) {
	floors := quorum.Floors{Worker: m.Floors.Worker}
	for _, one := range []struct {
		to   *uint64
		from uint64
		what string
	}{{&floors.Section, m.Floors.Section, "sections"}, {&floors.Tag, m.Floors.Tag, "tags"}} {
		var err error
		*one.to, err = o.up(seq.TagRegister("of the era"), one.from, uint64(o.Era-m.Era))
		if err == nil && *one.to >= uint64(seq.MaxSeq) {
			err = fmt.Errorf("%w: %s of the new era would begin at %d, their limit", ErrBump, one.what, *one.to)
		}
		if err != nil {
			return disk.Floors{}, err
		}
	}
	since := m.Taken
	for _, st := range states {
		if st.Register.Rules().Holds != seq.Mark {
			continue
		}
		// W stores have taken the mark, at a time when it was no further ahead.
		if at := time.UnixMilli(int64(min(st.Max, math.MaxInt64))).Add(-storesvr.WorkerAhead); at.After(since) {
			since = at
		}
	}
	return disk.Floors{Floors: floors, Stamp: &disk.Stamp{Margin: o.WorkerMargin, Since: since}}, nil
}

// raise is every register as the new era begins with it: above all that may have been
// handed out, and under an epoch that belongs to nobody, so that whoever was promised
// anything before has to ask again, and nothing that was sealed before is taken up.
func (o Restore) raise(m Manifest, states []quorum.RegisterState) (map[seq.Register]acceptor.State, error) {
	if o.Bump == 0 || o.WorkerMargin < 0 {
		return nil, fmt.Errorf("%w: by %d numbers and %v", ErrBump, o.Bump, o.WorkerMargin)
	}
	nobody := nobodyOf(m, o.Era)
	out := make(map[seq.Register]acceptor.State, len(states))
	for _, st := range states {
		epoch := seq.Epoch{Round: st.Promised.Round + 1, Session: nobody}
		next, err := o.raised(m, st, epoch)
		if err != nil {
			return nil, err
		}
		out[st.Register] = next
	}
	return out, nil
}

// raised returns a register as the new era begins with it, as the table of kinds says.
func (o Restore) raised(m Manifest, st quorum.RegisterState, epoch seq.Epoch) (next acceptor.State, err error) {
	next = acceptor.State{Promised: epoch, Accepted: epoch}
	switch r, eras := st.Register, uint64(o.Era-m.Era); r.Rules().Restored {
	case seq.Raise:
		if id, section := r.Section(); section && m.Mapping.IsExact(id) { // its numbers are in its copy
			next.Accepted = seq.Epoch{}
			return next, nil
		}
		next.Max, err = o.up(r, max(st.Max, m.Floors.Of(r)), eras)
	case seq.Bump:
		return raiseDocument(st, epoch, eras)
	case seq.Keep:
		next.Max = st.Max
	default:
		return acceptor.State{}, fmt.Errorf("%w: nothing says what a restore does to %s", ErrNewer, r)
	}
	return next, err
}

// lift is the copies of exact sections as the new era begins with them, under the epochs of
// their registers: each UID above all that it may have got since the backup, and those above
// it, too, that the backup does not know. Ids are as they were.
func (o Restore) lift(m Manifest, states []quorum.RegisterState, raised map[seq.Register]acceptor.State) (map[seq.SectionID]*exact.State, error) {
	out, eras := map[seq.SectionID]*exact.State{}, uint64(o.Era-m.Era)
	for _, st := range states {
		id, section := st.Register.Section()
		if !section || !m.Mapping.IsExact(id) {
			continue
		}
		whole, err := acceptor.CopyOf(st, m.Mapping.WindowOf(id))
		if err == nil {
			out[id], err = whole.Lifted(raised[st.Register].Promised, func(last uint64) (uint64, error) {
				return o.up(st.Register, max(last, m.Floors.Of(st.Register)), eras)
			})
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// up is a counter's max, raised by a bump for each era. One near its end that has no room
// for that goes to 2^53-1, where it hands out nothing: no number is repeated, and all others
// are restored. For any other counter without that room the bump is wrong: ErrBump.
func (o Restore) up(r seq.Register, last, eras uint64) (uint64, error) {
	const limit = uint64(seq.MaxSeq)
	over, by := bits.Mul64(o.Bump, eras)
	switch {
	case over == 0 && last <= limit && by <= limit-last:
		return last + by, nil
	case over == 0 && last > limit-seq.NearEnd:
		return max(last, limit), nil
	}
	return 0, fmt.Errorf("%w: %s is at %d, its limit is %d, and it is to go up by %d for each of %d eras",
		ErrBump, r, last, limit, o.Bump, eras)
}

var errPayload = errors.New("payload without a version")

// raiseDocument raises the version, so that whoever saw a later one than the backup's
// takes the restored document for newer, and carries the payload over as its row says.
func raiseDocument(st quorum.RegisterState, epoch seq.Epoch, eras uint64) (acceptor.State, error) {
	row, known := st.Register.FixedRules()
	switch {
	case !known:
		return acceptor.State{}, fmt.Errorf("%w: nothing says what a restore does to %s", ErrNewer, st.Register)
	case len(st.Payload) == 0, row.Carried == seq.StartOver: // never written, or the era has its own
		return acceptor.State{}, nil
	case len(st.Payload) < versionLen:
		return acceptor.State{}, fmt.Errorf("%w: %s: %w", ErrUnsound, st.Register, errPayload)
	}
	over, by := bits.Mul64(documentBump, eras)
	was := max(st.Max, binary.BigEndian.Uint64(st.Payload))
	if over > 0 || was > math.MaxInt64 || by > math.MaxInt64-was {
		return acceptor.State{}, fmt.Errorf("%w: %s is at version %d, and its limit is %d", ErrBump, st.Register, was, math.MaxInt64)
	}
	payload, err := carried(row, st.Payload, eras)
	if err != nil {
		return acceptor.State{}, err
	}
	version := was + by
	binary.BigEndian.PutUint64(payload, version)
	return acceptor.State{Promised: epoch, Accepted: epoch, Max: version, Payload: payload, PayloadMax: version}, nil
}

// carried returns the payload of a document as a new era begins with it.
func carried(row seq.Fixed, payload []byte, eras uint64) ([]byte, error) {
	switch row.Carried {
	case seq.CarryOver:
		return slices.Clone(payload), nil
	case seq.Unsettle:
		body, err := unsettled(row.Register, payload[versionLen:], eras)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrUnsound, row.Register, err)
		}
		return append(slices.Clone(payload[:versionLen]), body...), nil
	}
	return nil, fmt.Errorf("%w: nothing says what a restore does to %s", ErrNewer, row.Register)
}

// unsettled returns the body of a document of the Sets: sections may have moved since the backup, so
// the sections that the Set has are to be settled.
func unsettled(r seq.Register, body []byte, eras uint64) ([]byte, error) {
	switch r {
	case seq.RecordRegister:
		record, err := sets.ParseRecord(body)
		if err != nil {
			return nil, err
		}
		return record.Restored().Encode()
	case seq.SetsRegister:
		m, err := sets.ParseMap(body)
		if err != nil {
			return nil, err
		}
		return m.AsRestored(eras).Encode()
	}
	return nil, fmt.Errorf("%w: nothing says how it is settled", ErrNewer)
}

// nobodyOf is a session that no process has, the same for all stores that are made of one
// backup for one era.
func nobodyOf(m Manifest, era seq.Era) seq.Session {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %d %s", m.Cluster, m.Era, era, m.Taken))
	return seq.Session(binary.BigEndian.Uint64(sum[:]) | 1)
}
