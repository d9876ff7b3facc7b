package membership

import "errors"

var (
	// ErrConfig is returned by Start when the configuration cannot be used: no cluster id, no name, an
	// address that does not parse. Retrying the same configuration does not help.
	ErrConfig = errors.New("membership configuration refused")

	// ErrUnknownProfile is returned by ParseProfile for a name that is not fast, lan or wan.
	ErrUnknownProfile = errors.New("unknown gossip profile")

	// ErrUnknownRole is returned by Start for a role that is not store, alloc or router.
	ErrUnknownRole = errors.New("unknown member role")

	// ErrMetaTooLarge is returned by Meta.Encode and Start when the encoded metadata, with room for the
	// largest table version, would exceed MaxMetaSize bytes.
	ErrMetaTooLarge = errors.New("member metadata too large")

	// ErrMetaFormat is returned by DecodeMeta for bytes that are no metadata of a known format.
	ErrMetaFormat = errors.New("member metadata not understood")

	// ErrKeys is returned by LoadKeys, NewKeys and NewKey for keys that cannot be used. The operator must mend
	// the file: its path and line are in the text.
	ErrKeys = errors.New("gossip keys refused")

	// ErrKeysDiffer is logged when a member answered that cannot read this node's gossip, or the other way
	// round: one of them has no keys, or not the one that the other encrypts with. It goes away once the
	// files are alike and were read again.
	ErrKeysDiffer = errors.New("gossip keys differ")

	// ErrClosed is returned by calls on a View after Leave or Close.
	ErrClosed = errors.New("membership view closed")
)
