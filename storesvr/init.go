package storesvr

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"slices"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr/disk"
)

// maxClusterID bounds a cluster id in bytes: it is also the label of the gossip.
const maxClusterID = 128

// InitConfig is fixed for the life of a store. All stores of a cluster get the same values, except
// DataDir and Name.
type InitConfig struct {
	DataDir     string
	ClusterID   string      // 1 to 128 bytes
	Name        string      // of this store, one of MemberNames
	Spaces      []seq.Space // if empty, one space of the default name
	MemberNames []string    // of all stores

	N, R, W int // zero means for N the number of MemberNames, for W a majority, for R N-W+1

	// Zones are the zones of MemberNames, in their order. If empty, the zones are unknown. Of
	// three or more zones, none may have W stores unless AnyZones is set.
	Zones    []string
	AnyZones bool
}

// Init makes a new store, and nothing else does. If there is a database already, it returns
// disk.ErrExists. The store votes once the first client that connects to all members has bound
// them to each other. Other errors: ErrConfig, quorum.ErrZones, seq.ErrBadMapping,
// disk.ErrDirectory. After an error nothing was made.
func Init(cfg InitConfig) error {
	id, err := NewIdentity(cfg)
	if err == nil {
		err = disk.Create(cfg.DataDir, id, disk.Filling{})
	}
	if err != nil {
		return fmt.Errorf("init store %q: %w", cfg.Name, err)
	}
	return nil
}

// NewIdentity returns the identity of a new store, with a uuid of its own and era 0. A space
// without a key hash gets the secret hash, whose secret the first AllocSvr draws. Errors:
// ErrConfig, seq.ErrBadMapping.
func NewIdentity(cfg InitConfig) (disk.Identity, error) {
	cfg = cfg.withDefaults()
	if err := cfg.Validate(); err != nil {
		return disk.Identity{}, err
	}
	mapping, err := seq.NewMapping(cfg.Spaces...)
	if err != nil {
		return disk.Identity{}, err
	}
	for i := range mapping.Spaces { // a mapping without a hash is of an older build and means sha256-64
		mapping.Spaces[i].KeyHash = cmp.Or(mapping.Spaces[i].KeyHash, seq.SecretKeys)
	}
	return disk.Identity{
		Cluster: cfg.ClusterID, UUID: newUUID(), Name: cfg.Name,
		N: cfg.N, R: cfg.R, W: cfg.W, Names: slices.Clone(cfg.MemberNames), Mapping: mapping, Zone: cfg.zone(),
	}, nil
}

// LearnerConfig configures a new store that a running cluster will fill.
type LearnerConfig struct {
	DataDir   string
	ClusterID string
	Name      string
	Era       seq.Era
	Mapping   seq.Mapping // as every store of the cluster tells it
	Floors    quorum.Floors
	Zone      string // if empty, the zone is unknown
	Required  int    // protocol that the cluster requires of sessions; zero means any
}

// InitLearner makes a store that waits to be filled. It never votes before the cluster has decided
// so by a member list. InitLearner returns the errors of Init.
func InitLearner(cfg LearnerConfig) error {
	err := cfg.validate()
	if err == nil {
		err = disk.Create(cfg.DataDir, disk.Identity{
			Cluster: cfg.ClusterID, UUID: newUUID(), Name: cfg.Name, Era: cfg.Era, Mapping: cfg.Mapping, Learner: true, Zone: cfg.Zone,
		}, disk.Filling{Floors: disk.Floors{Floors: cfg.Floors}, Required: cfg.Required})
	}
	if err != nil {
		return fmt.Errorf("init learner %q: %w", cfg.Name, err)
	}
	return nil
}

func (c LearnerConfig) validate() error {
	switch {
	case c.DataDir == "":
		return fmt.Errorf("%w: no data directory", ErrConfig)
	case c.Name == "":
		return fmt.Errorf("%w: no name", ErrConfig)
	case c.ClusterID == "" || len(c.ClusterID) > maxClusterID:
		return fmt.Errorf("%w: cluster id of %d bytes, expected 1 to %d", ErrConfig, len(c.ClusterID), maxClusterID)
	}
	if err := seq.CheckZone(c.Zone); err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return c.Mapping.Validate()
}

func (c InitConfig) withDefaults() InitConfig {
	if c.N == 0 {
		c.N = len(c.MemberNames)
	}
	if c.W == 0 {
		c.W = c.N/2 + 1
	}
	if c.R == 0 {
		c.R = c.N - c.W + 1
	}
	return c
}

// zone returns the zone of this store.
func (c InitConfig) zone() string {
	if len(c.Zones) == 0 {
		return ""
	}
	return c.Zones[slices.Index(c.MemberNames, c.Name)]
}

// Validate checks all but the spaces, without the defaults for 0. ErrConfig, quorum.ErrZones.
func (c InitConfig) Validate() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrConfig, fmt.Sprintf(format, args...))
	}
	sorted := slices.Sorted(slices.Values(c.MemberNames))
	switch {
	case c.DataDir == "":
		return bad("no data directory")
	case c.ClusterID == "" || len(c.ClusterID) > maxClusterID:
		return bad("cluster id of %d bytes, expected 1 to %d", len(c.ClusterID), maxClusterID)
	case c.N < 1 || c.N != len(c.MemberNames):
		return bad("N is %d, with %d member names", c.N, len(c.MemberNames))
	case c.R < 1 || c.R > c.N || c.W < 1 || c.W > c.N:
		return bad("R is %d and W is %d, expected 1 to N=%d", c.R, c.W, c.N)
	case c.R+c.W <= c.N:
		return bad("R+W is %d, must be above N=%d, or a read could miss a write", c.R+c.W, c.N)
	case 2*c.W <= c.N:
		return bad("W is %d, must be above N/2 with N=%d, or two writes could miss each other", c.W, c.N)
	case slices.Contains(sorted, ""):
		return bad("an empty member name")
	case len(slices.Compact(sorted)) != c.N:
		return bad("a member name twice in %q", c.MemberNames)
	case !slices.Contains(c.MemberNames, c.Name):
		return bad("name %q is none of the members %q", c.Name, c.MemberNames)
	case len(c.Zones) > 0 && len(c.Zones) != c.N:
		return bad("%d zones for %d members, expected one each, in their order", len(c.Zones), c.N)
	case slices.Contains(c.Zones, ""):
		return bad("an empty zone")
	}
	for _, zone := range c.Zones {
		if err := seq.CheckZone(zone); err != nil {
			return bad("%v", err)
		}
	}
	if c.AnyZones {
		return nil
	}
	return quorum.CheckZones(nil, c.Zones, c.W)
}

// newUUID is a random UUID, version 4.
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // documented never to return an error
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
