package storewire

import "github.com/seqsvr/seqsvr/exact"

// MaxMessage is the largest message between a store and its clients in bytes: the copy of an
// exact section, a document with the largest payload, or all registers of the largest mapping,
// read by prefix.
const MaxMessage = 128 << 20

// A copy fits, with what a message has beside it.
var _ [MaxMessage - exact.MaxCopy - 1<<20]struct{}

// StoreHeader is the gRPC metadata key under which a client names the uuid of the store
// that it means. A store that is another refuses the call with seq.ErrStaleEra.
const StoreHeader = "seqsvr-store-uuid"
