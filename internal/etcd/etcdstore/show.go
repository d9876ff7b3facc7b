package etcdstore

import "github.com/seqsvr/seqsvr/seq"

// Shown is a register as it is in etcd.
type Shown struct {
	Promised, Accepted, Released seq.Epoch
	Max                          uint64
	Life                         int64
	Reserved                     seq.Session
}

// Show reads the value of the key of a register: ErrDamaged.
func Show(kv KeyValue) (Shown, error) {
	r, err := decodeRegister(kv)
	return Shown{r.promised, r.accepted, r.released, r.max, r.life, r.reserved}, err
}
