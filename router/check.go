package router

import (
	"fmt"

	"github.com/seqsvr/seqsvr/client"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// maxKey is the largest string key in bytes.
const maxKey = 1024

func checkKey(field, key string) error {
	if len(key) == 0 || len(key) > maxKey {
		return fmt.Errorf("%w: %s of %d bytes, expected 1 to %d", seq.ErrBadArgument, field, len(key), maxKey)
	}
	return nil
}

func checkCount(field string, n uint64) error {
	if n == 0 || n > seq.MaxCount {
		return fmt.Errorf("%w: %s is %d, expected 1 to %d", seq.ErrBadCount, field, n, seq.MaxCount)
	}
	return nil
}

// checkIDs: how many snowflake IDs at once.
func checkIDs(field string, n uint64) error {
	if n == 0 || n > client.MaxIDs {
		return fmt.Errorf("%w: %s is %d, expected 1 to %d", seq.ErrBadCount, field, n, client.MaxIDs)
	}
	return nil
}

func checkFloor(field string, floor uint64) error {
	if floor > uint64(seq.MaxSeq) {
		return fmt.Errorf("%w: %s is %d, expected 0 to %d", seq.ErrOverflow, field, floor, seq.MaxSeq)
	}
	return nil
}

// uidsOf checks the keys of a batch and gives the uid of each index.
func uidsOf(field string, uids []uint64, keys []string) ([]seq.UID, error) {
	out := make([]seq.UID, 0, len(uids)+len(keys))
	for _, uid := range uids {
		out = append(out, seq.UID(uid))
	}
	for i, key := range keys {
		if err := checkKey(fmt.Sprintf("%skeys[%d]", field, i), key); err != nil {
			return nil, err
		}
		out = append(out, seq.HashKey(key))
	}
	return out, nil
}

// checkCounts: none, or a sound one for each of n keys.
func checkCounts(field string, counts []uint32, n int) error {
	if len(counts) != 0 && len(counts) != n {
		return fmt.Errorf("%w: %scounts has %d entries for %d keys, expected none or one a key", seq.ErrBadBatch, field, len(counts), n)
	}
	for i, c := range counts {
		if err := checkCount(fmt.Sprintf("%scounts[%d]", field, i), uint64(c)); err != nil {
			return err
		}
	}
	return nil
}

// checkSize bounds the keys over all batches.
func checkSize(field string, n int) error {
	if n == 0 || n > seq.MaxBatch {
		return fmt.Errorf("%w: %s has %d keys, expected 1 to %d", seq.ErrBadBatch, field, n, seq.MaxBatch)
	}
	return nil
}

// checked is a batch whose fields are sound.
type checked struct {
	space  string
	uids   []seq.UID
	counts []uint32
}

// checkBatches reads the batches of a request; counted says whether counts matter.
func checkBatches(batches []*pb.Batch, counted bool) ([]checked, error) {
	total := 0
	for _, b := range batches {
		total += len(b.GetUids()) + len(b.GetKeys())
	}
	if err := checkSize("batches", total); err != nil {
		return nil, err
	}
	out := make([]checked, len(batches))
	for i, b := range batches {
		field := fmt.Sprintf("batches[%d].", i)
		uids, err := uidsOf(field, b.GetUids(), b.GetKeys())
		if err != nil {
			return nil, err
		}
		out[i] = checked{space: b.GetSpace(), uids: uids}
		if !counted {
			continue
		}
		if err := checkCounts(field, b.GetCounts(), len(uids)); err != nil {
			return nil, err
		}
		out[i].counts = b.GetCounts()
	}
	return out, nil
}

// keysOf is the number of keys over all batches.
func keysOf(batches []checked) (n int) {
	for _, b := range batches {
		n += len(b.uids)
	}
	return n
}
