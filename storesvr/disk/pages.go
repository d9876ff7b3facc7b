package disk

import (
	"encoding/binary"
	"fmt"
	"os"
)

// The head of a page of bbolt has its number (8 bytes), flags and count (2 bytes each), and the
// number of overflow pages (4 bytes). Then follow count elements of elementSize.
const (
	pageHead    = 16
	elementSize = 16

	branchPage = 0x01
	leafPage   = 0x02
	freePage   = 0x10

	bucketElement = 0x01
	noFreelist    = ^uint64(0)
	manyFree      = 0xffff // the count is the first word behind the head
)

// pages are the pages of a database file. used says which of them are in use.
type pages struct {
	file *os.File
	size int64
	used []bool
}

// checkPages walks all pages from the root of the newest transaction: each must be the page that it is
// taken for, in use once, and not free. Where an older page stands in place of one whose write was
// lost, the pages can form a ring, which bbolt would follow for ever; and an older list of free pages
// would have it write over those in use. ErrCorrupt, or the system's error.
func checkPages(path string, root rootPage) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if root.most > uint64(info.Size()/root.pageSize) {
		return fmt.Errorf("%w: %d bytes, expected %d pages of %d", ErrCorrupt, info.Size(), root.most, root.pageSize)
	}
	p := pages{file: file, size: root.pageSize, used: make([]bool, root.most)}
	if err := p.walk(root.root); err != nil {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if root.free == noFreelist {
		return nil
	}
	if err := p.free(root.free); err != nil {
		return fmt.Errorf("%w: list of free pages: %w", ErrCorrupt, err)
	}
	return nil
}

// head reads the head of a page that is in no other use, and takes it into use.
func (p *pages) head(id uint64) (flags uint16, count int, err error) {
	var head [pageHead]byte
	if id < metaPages || id >= uint64(len(p.used)) {
		return 0, 0, fmt.Errorf("page %d of %d", id, len(p.used))
	}
	if _, err := p.file.ReadAt(head[:], int64(id)*p.size); err != nil {
		return 0, 0, err
	}
	last := id + uint64(binary.NativeEndian.Uint32(head[12:]))
	if got := binary.NativeEndian.Uint64(head[:]); got != id || last >= uint64(len(p.used)) {
		return 0, 0, fmt.Errorf("%w: page %d says that it is page %d, and its last is %d of %d", ErrLostWrite, id, got, last, len(p.used))
	}
	for i := id; i <= last; i++ {
		if p.used[i] {
			return 0, 0, fmt.Errorf("%w: page %d is in use twice", ErrLostWrite, i)
		}
		p.used[i] = true
	}
	return binary.NativeEndian.Uint16(head[8:]), int(binary.NativeEndian.Uint16(head[10:])), nil
}

// walk takes a page into use, and those below it.
func (p *pages) walk(id uint64) error {
	flags, count, err := p.head(id)
	if err != nil {
		return err
	}
	if flags != branchPage && flags != leafPage {
		return fmt.Errorf("%w: page %d has flags %x, expected records", ErrLostWrite, id, flags)
	}
	first := int64(id)*p.size + pageHead
	elements := make([]byte, elementSize*count)
	if _, err := p.file.ReadAt(elements, first); err != nil {
		return err
	}
	for i := range count {
		e := elements[elementSize*i:]
		below := binary.NativeEndian.Uint64(e[8:])
		if flags == leafPage {
			if below, err = p.bucket(e, first+int64(elementSize*i)); err != nil {
				return err
			}
		}
		if flags == branchPage || below != 0 {
			if err := p.walk(below); err != nil {
				return err
			}
		}
	}
	return nil
}

// bucket is the root page of the bucket that an element of a leaf holds; 0 if it holds none, or one
// that has no page of its own.
func (p *pages) bucket(e []byte, at int64) (root uint64, err error) {
	if binary.NativeEndian.Uint32(e)&bucketElement == 0 {
		return 0, nil
	}
	at += int64(binary.NativeEndian.Uint32(e[4:])) + int64(binary.NativeEndian.Uint32(e[8:]))
	var value [8]byte
	_, err = p.file.ReadAt(value[:], at)
	return binary.NativeEndian.Uint64(value[:]), err
}

// free checks that no page in use stands in the list of free pages.
func (p *pages) free(id uint64) error {
	flags, count, err := p.head(id)
	if err != nil {
		return err
	}
	if flags != freePage {
		return fmt.Errorf("%w: page %d has flags %x", ErrLostWrite, id, flags)
	}
	at := int64(id)*p.size + pageHead
	if count == manyFree {
		var n [8]byte
		if _, err := p.file.ReadAt(n[:], at); err != nil {
			return err
		}
		at += 8
		count = int(min(binary.NativeEndian.Uint64(n[:]), uint64(len(p.used))))
	}
	ids := make([]byte, 8*count)
	if _, err := p.file.ReadAt(ids, at); err != nil {
		return err
	}
	for i := range count {
		switch id := binary.NativeEndian.Uint64(ids[8*i:]); {
		case id >= uint64(len(p.used)):
			return fmt.Errorf("page %d of %d", id, len(p.used))
		case p.used[id]:
			return fmt.Errorf("%w: page %d is in use", ErrLostWrite, id)
		}
	}
	return nil
}
