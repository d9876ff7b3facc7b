package etcdstore

import "github.com/seqsvr/seqsvr/seq"

// Shown is a value of a register, for tests.
type Shown struct {
	Promised, Accepted, Released seq.Epoch
	Max                          uint64
	Life                         int64
	Reserved                     seq.Session
}

// Show decodes one.
func Show(kv KeyValue) (Shown, error) {
	r, err := decodeRegister(kv)
	return Shown{r.promised, r.accepted, r.released, r.max, r.life, r.reserved}, err
}
