package storewire

// MaxMessage is the largest message between a store and its clients in bytes: a document
// with the largest payload, or all registers of the largest mapping, read by prefix.
const MaxMessage = 128 << 20

// StoreHeader is the gRPC metadata key under which a client names the uuid of the store
// that it means. A store that is another refuses the call with seq.ErrStaleEra.
const StoreHeader = "seqsvr-store-uuid"
