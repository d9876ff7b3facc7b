package storewire

import "github.com/seqsvr/seqsvr/exact"

// The largest messages between a store and its clients, in bytes.
const (
	// MaxRequest fits the copy of an exact section, and a document with the largest payload. For each
	// connection, a store keeps twice as much of unfinished requests.
	MaxRequest = 20 << 20
	// MaxReply fits several copies, or all registers of the largest mapping, read by prefix.
	MaxReply = 128 << 20
)

// A copy fits, with what a message has beside it.
var _ [MaxRequest - exact.MaxCopy - 1<<20]struct{}

// StoreHeader is the gRPC metadata key under which a client names the uuid of the store
// that it means. A store that is another refuses the call with seq.ErrStaleEra.
const StoreHeader = "seqsvr-store-uuid"
