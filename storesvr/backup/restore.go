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
	"github.com/seqsvr/seqsvr/internal/version"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
	"github.com/seqsvr/seqsvr/storesvr"
	"github.com/seqsvr/seqsvr/storesvr/acceptor"
	"github.com/seqsvr/seqsvr/storesvr/disk"
)

const (
	// DefaultBump is by how much sections and tags are raised: more than fifteen raises by a
	// space's largest jump (seq.DefaultMaxJump) since the backup, and more than one counter
	// hands out in an hour at a million a second.
	DefaultBump = 1 << 36
	// DefaultWorkerMargin is how far beyond its clock a store's floor of worker ids is: it
	// takes no mark further ahead, so nobody holds a window that reaches beyond.
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
	Era     seq.Era  // above that of the backup, and above every other that the cluster has had
	// Bump, above 0, is the numbers by which every section and tag is raised for each era
	// from the backup's on: the eras between were restored, perhaps of this same backup,
	// and have handed out numbers above it.
	Bump uint64
	// WorkerMargin beyond the clock of each store, at its first start, is the floor of all
	// worker ids: nobody holds a window of the eras before that reaches further.
	WorkerMargin time.Duration
}

// Do makes the store's database of the backup. Every store of the new era is made of the
// same backup, each with its own name; they vote once they are bound to one another, and
// let nobody take anything before the longest lease of the era before has ended. Errors:
// seq.ErrForeignCluster, ErrEra, ErrBump, ErrUnsound, disk.ErrExists,
// storesvr.ErrConfig. After an error nothing was made.
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

// Content is what Do makes a database of, for those who keep it elsewhere. Errors are
// those of Do without disk.ErrExists.
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

// Filling is what the new era begins with, whatever keeps it: Do's without the store. Errors are
// those of Do that are not of disks and stores.
func (o Restore) Filling(m Manifest, states []quorum.RegisterState) (disk.Filling, error) {
	switch {
	case o.Cluster != m.Cluster:
		return disk.Filling{}, fmt.Errorf("%w: the backup is of %q, not %q", seq.ErrForeignCluster, m.Cluster, o.Cluster)
	case o.Era <= m.Era:
		return disk.Filling{}, fmt.Errorf("%w: %d after %d", ErrEra, o.Era, m.Era)
	case m.Required > version.Protocol:
		return disk.Filling{}, fmt.Errorf("%w: the backup requires protocol %d, this build speaks %d: restore it with a newer build", seq.ErrProtocol, m.Required, version.Protocol)
	}
	if wrong := Check(m.Mapping, states); len(wrong) > 0 {
		return disk.Filling{}, fmt.Errorf("%w: %s (and %d more)", ErrUnsound, wrong[0], len(wrong)-1)
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
	return disk.Filling{Registers: raised, Copies: copies, LeaseBound: max(m.LeaseBound, storesvr.DefaultMaxLease), Floors: floors, Required: m.Required}, nil
}

// floors are what tags and worker ids begin with that the backup does not know, or whose
// windows reach beyond what it knows. Tags begin where one begins that the backup has at
// nothing. That of worker ids each store makes by its own clock, at its first start; what
// the backup tells about the time is for one whose clock is behind.
func (o Restore) floors(m Manifest, states []quorum.RegisterState) (disk.Floors, error) {
	tag, err := o.up(quorum.RegisterState{Register: seq.TagRegister("of the era"), Max: m.Floors.Tag}, uint64(o.Era-m.Era))
	if err == nil && tag >= uint64(seq.MaxSeq) {
		err = fmt.Errorf("%w: tags of the new era would begin at %d, their limit", ErrBump, tag)
	}
	if err != nil {
		return disk.Floors{}, err
	}
	since := m.Taken
	for _, st := range states {
		if st.Register.Kind() != seq.KindWorker {
			continue
		}
		// W stores have taken the mark, at a time when it was no further ahead.
		if at := time.UnixMilli(int64(min(st.Max, math.MaxInt64))).Add(-storesvr.WorkerAhead); at.After(since) {
			since = at
		}
	}
	return disk.Floors{Floors: quorum.Floors{Tag: tag, Worker: m.Floors.Worker}, Stamp: &disk.Stamp{Margin: o.WorkerMargin, Since: since}}, nil
}

// raise is every register as the new era begins with it: above all that may have been
// handed out, and under an epoch that belongs to nobody, so that whoever was promised
// anything before has to ask again, and nothing that was sealed before is taken up.
func (o Restore) raise(m Manifest, states []quorum.RegisterState) (map[seq.Register]acceptor.State, error) {
	if o.Bump == 0 || o.WorkerMargin < 0 {
		return nil, fmt.Errorf("%w: by %d numbers and %v", ErrBump, o.Bump, o.WorkerMargin)
	}
	nobody, eras := nobodyOf(m, o.Era), uint64(o.Era-m.Era)
	out := make(map[seq.Register]acceptor.State, len(states))
	for _, st := range states {
		if st.Register == seq.MembersRegister { // the new era begins with a list of its own
			out[st.Register] = acceptor.State{}
			continue
		}
		epoch := seq.Epoch{Round: st.Promised.Round + 1, Session: nobody}
		next := acceptor.State{Promised: epoch, Accepted: epoch}
		var err error
		switch id, _ := st.Register.Section(); st.Register.Kind() {
		case seq.KindSection, seq.KindTag:
			if st.Register.Kind() == seq.KindSection && m.Mapping.IsExact(id) { // its numbers are in its copy
				next.Accepted = seq.Epoch{}
				break
			}
			next.Max, err = o.up(st, eras)
		case seq.KindDocument:
			if next, err = raiseDocument(st, epoch, eras); err == nil {
				next.Payload, err = restoredSets(st.Register, next.Payload, eras)
			}
		default: // the arbiter's lease has no value; worker ids have a floor
			next.Max = st.Max
		}
		if err != nil {
			return nil, err
		}
		out[st.Register] = next
	}
	return out, nil
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
		whole, err := acceptor.CopyOf(st)
		if err == nil {
			out[id], err = whole.Lifted(raised[st.Register].Promised, func(last uint64) (uint64, error) {
				return o.up(quorum.RegisterState{Register: st.Register, Max: last}, eras)
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
func (o Restore) up(st quorum.RegisterState, eras uint64) (uint64, error) {
	const limit = uint64(seq.MaxSeq)
	over, by := bits.Mul64(o.Bump, eras)
	switch {
	case over == 0 && st.Max <= limit && by <= limit-st.Max:
		return st.Max + by, nil
	case over == 0 && st.Max > limit-seq.NearEnd:
		return max(st.Max, limit), nil
	}
	return 0, fmt.Errorf("%w: %s is at %d, its limit is %d, and it is to go up by %d for each of %d eras",
		ErrBump, st.Register, st.Max, limit, o.Bump, eras)
}

var errPayload = errors.New("payload without a version")

// raiseDocument raises the version, so that whoever saw a later one than the backup's
// takes the restored document for newer.
func raiseDocument(st quorum.RegisterState, epoch seq.Epoch, eras uint64) (acceptor.State, error) {
	if len(st.Payload) == 0 { // never written
		return acceptor.State{}, nil
	}
	if len(st.Payload) < versionLen {
		return acceptor.State{}, fmt.Errorf("%w: %s: %w", ErrUnsound, st.Register, errPayload)
	}
	over, by := bits.Mul64(documentBump, eras)
	was := max(st.Max, binary.BigEndian.Uint64(st.Payload))
	if over > 0 || was > math.MaxInt64 || by > math.MaxInt64-was {
		return acceptor.State{}, fmt.Errorf("%w: %s is at version %d, and its limit is %d", ErrBump, st.Register, was, math.MaxInt64)
	}
	version := was + by
	payload := slices.Clone(st.Payload)
	binary.BigEndian.PutUint64(payload, version)
	return acceptor.State{Promised: epoch, Accepted: epoch, Max: version, Payload: payload, PayloadMax: version}, nil
}

// restoredSets is the payload of a document of the Sets as a new era begins with it: sections may
// have moved since the backup, so which the Set has is to be settled.
func restoredSets(r seq.Register, payload []byte, eras uint64) ([]byte, error) {
	if len(payload) == 0 {
		return payload, nil
	}
	var body []byte
	var err error
	switch r {
	case seq.RecordRegister:
		var record sets.Record
		if record, err = sets.ParseRecord(payload[versionLen:]); err == nil {
			body, err = record.Restored().Encode()
		}
	case seq.SetsRegister:
		var m sets.Map
		if m, err = sets.ParseMap(payload[versionLen:]); err == nil {
			body, err = m.AsRestored(eras).Encode()
		}
	default:
		return payload, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrUnsound, r, err)
	}
	return append(payload[:versionLen:versionLen], body...), nil
}

// nobodyOf is a session that no process has, the same for all stores that are made of one
// backup for one era.
func nobodyOf(m Manifest, era seq.Era) seq.Session {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %d %s", m.Cluster, m.Era, era, m.Taken))
	return seq.Session(binary.BigEndian.Uint64(sum[:]) | 1)
}
