package disk

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
)

// bbolt keeps the root of the newest transaction in two pages in turn, each with a checksum. If the
// newer page is damaged, bbolt uses the older page. That is right after a torn write. After a
// confirmed write it is wrong: the store would be one commit back, and could let a session take a
// section below what the store acknowledged. A page written as one sector does not tear, so both
// pages must always be whole.
const (
	metaPages    = 2
	metaHead     = 16 // the page's own header
	metaSize     = 64 // with the checksum, which is last
	metaMagic    = 0xED0CDAED
	metaPageSize = 8  // offset of the size of pages, 4 bytes
	metaRoot     = 16 // offset of the page of the buckets, 8 bytes
	metaFree     = 32 // offset of the page of the list of free pages, 8 bytes
	metaMost     = 40 // offset of the number behind the last page, 8 bytes
	metaTx       = 48 // offset of the transaction's number, 8 bytes
	metaChecksum = 56
	minPage      = 1 << 9
	maxPage      = 1 << 20
)

// rootPage is what the newer of both pages says of the others.
type rootPage struct {
	pageSize         int64
	root, free, most uint64 // numbers of pages
	tx               uint64
}

// checkMetaPages returns the newer page if both pages are whole and of transactions that follow each
// other, else ErrCorrupt or the system's error.
func checkMetaPages(path string) (newest rootPage, err error) {
	file, err := os.Open(path)
	if err != nil {
		return newest, err
	}
	defer file.Close()
	var tx [metaPages]uint64
	pageSize := int64(0)
	for i := range tx {
		var meta [metaSize]byte
		_, err := file.ReadAt(meta[:], int64(i)*pageSize+metaHead)
		if err != nil && !errors.Is(err, io.EOF) {
			return newest, err
		}
		sum := fnv.New64a()
		_, _ = sum.Write(meta[:metaChecksum]) // documented never to fail
		if err != nil || binary.NativeEndian.Uint32(meta[:]) != metaMagic || binary.NativeEndian.Uint64(meta[metaChecksum:]) != sum.Sum64() {
			return newest, fmt.Errorf("%w: root page %d of %d", ErrCorrupt, i, metaPages)
		}
		tx[i] = binary.NativeEndian.Uint64(meta[metaTx:])
		pageSize = int64(binary.NativeEndian.Uint32(meta[metaPageSize:]))
		if pageSize < minPage || pageSize > maxPage {
			return newest, fmt.Errorf("%w: pages of %d bytes", ErrCorrupt, pageSize)
		}
		if tx[i] >= newest.tx {
			word := func(at int) uint64 { return binary.NativeEndian.Uint64(meta[at:]) }
			newest = rootPage{pageSize: pageSize, root: word(metaRoot), free: word(metaFree), most: word(metaMost), tx: tx[i]}
		}
	}
	if tx[0]+1 != tx[1] && tx[1]+1 != tx[0] {
		return newest, fmt.Errorf("%w: root pages of transactions %d and %d, expected two that follow each other", ErrCorrupt, tx[0], tx[1])
	}
	return newest, nil
}
