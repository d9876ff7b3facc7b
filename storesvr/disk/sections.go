//go:build !wasip1

package disk

import (
	"encoding/binary"
	"fmt"

	bolt "go.etcd.io/bbolt"

	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr/acceptor"
)

// Sections are kept blockSections to a record: a takeover changes thousands of them in
// one transaction, and what a transaction costs goes by the record. Two records fill a
// page of 4 KiB, the least that a change of one section writes anyway.
//
// A record's key is the first section, 4 bytes big-endian. Its value: the layout byte,
// then for each section promised round and session, accepted round and session and max,
// each 8 bytes big-endian, then the checksum. The last block is as long as need be.
const (
	blockSections  = 50
	sectionsLayout = 1
	sectionSize    = 5 * 8
)

var sectionBucket = []byte("sections")

// sections holds the value of every record as the disk has it, or, within Commit, is about to have
// it. A failed commit ends the process, and the content is lost with it.
type sections struct {
	blocks [][]byte
	dirty  []int // blocks changed since they were put, each once if the changes are in order
}

// newSections are n sections at zero.
func newSections(n int) *sections {
	s := &sections{}
	for first := 0; first < n; first += blockSections {
		b := make([]byte, 1+sectionSize*min(blockSections, n-first)+checksumSize)
		b[0] = sectionsLayout
		s.dirty = append(s.dirty, len(s.blocks))
		s.blocks = append(s.blocks, b)
	}
	return s
}

// grow makes room for n sections in all, at zero. A new one is on disk once it was set.
func (s *sections) grow(n int) {
	all := newSections(n).blocks
	if last := len(s.blocks) - 1; last >= 0 {
		copy(all, s.blocks[:last])
		copy(all[last], s.blocks[last][:len(s.blocks[last])-checksumSize]) // it may get longer
	}
	s.blocks = all
}

func blockKey(block int) []byte {
	return binary.BigEndian.AppendUint32(nil, uint32(block*blockSections))
}

// at is where the section stands in its block; nil if there is no such section.
func (s *sections) at(id seq.SectionID) []byte {
	block, from := int(id)/blockSections, 1+sectionSize*(int(id)%blockSections)
	if block >= len(s.blocks) || from+sectionSize > len(s.blocks[block])-checksumSize {
		return nil
	}
	return s.blocks[block][from : from+sectionSize]
}

// set changes a section. It is on disk after put and the end of the transaction.
func (s *sections) set(id seq.SectionID, st acceptor.State) error {
	b := s.at(id)
	switch {
	case b == nil:
		return fmt.Errorf("%w: section %d", seq.ErrUnknownSection, id)
	case len(st.Payload) > 0 || st.PayloadMax > 0:
		return fmt.Errorf("%w: a payload for section %d", seq.ErrBadRegister, id)
	}
	binary.BigEndian.PutUint64(b[0:], st.Promised.Round)
	binary.BigEndian.PutUint64(b[8:], uint64(st.Promised.Session))
	binary.BigEndian.PutUint64(b[16:], st.Accepted.Round)
	binary.BigEndian.PutUint64(b[24:], uint64(st.Accepted.Session))
	binary.BigEndian.PutUint64(b[32:], st.Max)
	if block := int(id) / blockSections; len(s.dirty) == 0 || s.dirty[len(s.dirty)-1] != block {
		s.dirty = append(s.dirty, block)
	}
	return nil
}

// put writes what set changed. The bucket keeps the blocks until the transaction ends.
func (s *sections) put(b bucket) error {
	for _, block := range s.dirty {
		key, value := blockKey(block), s.blocks[block]
		n := len(value) - checksumSize
		binary.BigEndian.PutUint32(value[n:], checksum(key, value[:n]))
		if err := b.Put(key, value); err != nil {
			return fmt.Errorf("put the block of section %d: %w", block*blockSections, err)
		}
	}
	s.dirty = s.dirty[:0]
	return nil
}

// load reads n sections and checks that each is there. ErrCorrupt.
func (s *sections) load(b *bolt.Bucket, n int, into map[seq.Register]acceptor.State) error {
	want := newSections(n).blocks
	s.blocks = make([][]byte, 0, len(want))
	for i := range want {
		first := i * blockSections
		last := min(first+blockSections, n) - 1
		damaged := func(why error) error {
			return fmt.Errorf("%w: the record of section %d to section %d: %w", ErrCorrupt, first, last, why)
		}
		key := blockKey(i)
		record := b.Get(key)
		if record == nil {
			return fmt.Errorf("%w: section %d to section %d is missing", ErrCorrupt, first, last)
		}
		value, err := open(key, record)
		if err != nil {
			return damaged(err)
		}
		if len(value) > 0 && value[0] > sectionsLayout {
			return newer("layout %d of sections", value[0])
		}
		if len(record) != len(want[i]) || value[0] != sectionsLayout {
			return damaged(errLayout)
		}
		copy(want[i], record)
		s.blocks = append(s.blocks, want[i])
		for id := first; id <= last; id++ {
			into[seq.SectionRegister(seq.SectionID(id))] = decodeSection(s.at(seq.SectionID(id)))
		}
	}
	records := 0
	if err := b.ForEach(func(_, _ []byte) error { records++; return nil }); err != nil {
		return err
	}
	if records != len(want) {
		return fmt.Errorf("%w: %d records of sections, expected %d", ErrCorrupt, records, len(want))
	}
	return nil
}

func decodeSection(b []byte) acceptor.State {
	word := func(i int) uint64 { return binary.BigEndian.Uint64(b[8*i:]) }
	return acceptor.State{
		Promised: seq.Epoch{Round: word(0), Session: seq.Session(word(1))},
		Accepted: seq.Epoch{Round: word(2), Session: seq.Session(word(3))},
		Max:      word(4),
	}
}
