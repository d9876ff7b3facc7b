package disk

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
)

// bbolt keeps the root of the newest transaction in one of two pages, in turn, each with
// a checksum, and goes by the older one where the newer one is damaged. What is right
// after a write that was torn is wrong after one that was confirmed: the store would be
// one commit back, and could let a section be taken below what it acknowledged. A page
// that is written as one sector does not tear, so that both must always be whole.
const (
	metaPages    = 2
	metaHead     = 16 // the page's own header
	metaSize     = 64 // with the checksum, which is last
	metaMagic    = 0xED0CDAED
	metaPageSize = 8  // offset of the size of pages, 4 bytes
	metaTx       = 48 // offset of the transaction's number, 8 bytes
	metaChecksum = 56
	minPage      = 1 << 9
	maxPage      = 1 << 20
)

// checkMetaPages is nil if both pages are whole and of transactions that follow each
// other, else ErrCorrupt or the system's error.
func checkMetaPages(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	var tx [metaPages]uint64
	pageSize := int64(0)
	for i := range tx {
		var meta [metaSize]byte
		_, err := file.ReadAt(meta[:], int64(i)*pageSize+metaHead)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		sum := fnv.New64a()
		_, _ = sum.Write(meta[:metaChecksum]) // documented never to fail
		if err != nil || binary.NativeEndian.Uint32(meta[:]) != metaMagic || binary.NativeEndian.Uint64(meta[metaChecksum:]) != sum.Sum64() {
			return fmt.Errorf("%w: root page %d of %d", ErrCorrupt, i, metaPages)
		}
		tx[i] = binary.NativeEndian.Uint64(meta[metaTx:])
		pageSize = int64(binary.NativeEndian.Uint32(meta[metaPageSize:]))
		if pageSize < minPage || pageSize > maxPage {
			return fmt.Errorf("%w: pages of %d bytes", ErrCorrupt, pageSize)
		}
	}
	if tx[0]+1 != tx[1] && tx[1]+1 != tx[0] {
		return fmt.Errorf("%w: root pages of transactions %d and %d, expected two that follow each other", ErrCorrupt, tx[0], tx[1])
	}
	return nil
}
