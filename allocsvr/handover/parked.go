package handover

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/seqsvr/seqsvr/internal/base/counters"
	"github.com/seqsvr/seqsvr/seq"
)

// ErrParkedCorrupt: the file of parked counters is damaged; it is ignored, the
// sections start at their base, which leaves gaps and breaks nothing.
var ErrParkedCorrupt = errors.New("parked counters corrupt")

// The file of parked counters:
//
//	"seqpark2" | len uint16 | cluster id | sections ... | crc32c of all before
//	section: id uint32 | round uint64 | session uint64 | mark uint64 | len uint32 | counters
//
// little-endian. It may be old, copied or another node's: the epochs decide. A file of v0.1.0
// is "seqpark1" and has no marks: they are 0.
const (
	parkedMagic  = "seqpark2"
	parkedMagic1 = "seqpark1"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Park replaces the file. A crash leaves the old file or the new one.
func Park(file, cluster string, sections []Sealed) error {
	b := []byte(parkedMagic)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(cluster)))
	b = append(b, cluster...)
	for _, s := range sections {
		body := s.Table.AppendBinary(nil)
		b = binary.LittleEndian.AppendUint32(b, uint32(s.ID))
		b = binary.LittleEndian.AppendUint64(b, s.Epoch.Round)
		b = binary.LittleEndian.AppendUint64(b, uint64(s.Epoch.Session))
		b = binary.LittleEndian.AppendUint64(b, s.Mark)
		b = binary.LittleEndian.AppendUint32(b, uint32(len(body)))
		b = append(b, body...)
	}
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
	if err := replaceFile(file, b); err != nil {
		return fmt.Errorf("park counters: %w", err)
	}
	return nil
}

// replaceFile writes by temporary file, fsync, rename and fsync of the directory.
func replaceFile(file string, b []byte) (err error) {
	dir := filepath.Dir(file)
	tmp, err := os.CreateTemp(dir, filepath.Base(file)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(tmp.Name()))
		}
	}()
	_, err = tmp.Write(b)
	if err == nil {
		err = tmp.Sync()
	}
	if err = errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	if err = os.Rename(tmp.Name(), file); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Parked reads what Park wrote; a missing file is no sections. Errors:
// ErrParkedCorrupt, seq.ErrForeignCluster, or of the file system.
func Parked(file, cluster string) ([]Sealed, error) {
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read parked counters: %w", err)
	}
	return decodeParked(b, cluster)
}

func decodeParked(b []byte, cluster string) ([]Sealed, error) {
	const head = len(parkedMagic) + 2
	if len(b) < head+4 || string(b[:len(parkedMagic)]) != parkedMagic && string(b[:len(parkedMagic1)]) != parkedMagic1 {
		return nil, fmt.Errorf("%w: not a file of parked counters", ErrParkedCorrupt)
	}
	body, sum := b[:len(b)-4], binary.LittleEndian.Uint32(b[len(b)-4:])
	if crc32.Checksum(body, castagnoli) != sum {
		return nil, fmt.Errorf("%w: checksum", ErrParkedCorrupt)
	}
	n := int(binary.LittleEndian.Uint16(body[len(parkedMagic):]))
	if len(body) < head+n {
		return nil, fmt.Errorf("%w: cut short", ErrParkedCorrupt)
	}
	if name := string(body[head : head+n]); name != cluster {
		return nil, fmt.Errorf("parked counters: %w: %q, expected %q", seq.ErrForeignCluster, name, cluster)
	}
	var out []Sealed
	fixed, marked := 4+8+8+4, string(b[:len(parkedMagic)]) == parkedMagic
	if marked {
		fixed += 8
	}
	for rest := body[head+n:]; len(rest) > 0; {
		if len(rest) < fixed {
			return nil, fmt.Errorf("%w: cut short", ErrParkedCorrupt)
		}
		s := Sealed{
			ID: seq.SectionID(binary.LittleEndian.Uint32(rest)),
			Epoch: seq.Epoch{
				Round:   binary.LittleEndian.Uint64(rest[4:]),
				Session: seq.Session(binary.LittleEndian.Uint64(rest[12:])),
			},
		}
		if marked {
			s.Mark = binary.LittleEndian.Uint64(rest[20:])
		}
		size := uint64(binary.LittleEndian.Uint32(rest[fixed-4:]))
		if rest = rest[fixed:]; size > uint64(len(rest)) {
			return nil, fmt.Errorf("%w: cut short", ErrParkedCorrupt)
		}
		table, err := counters.Decode(rest[:size])
		if err != nil {
			return nil, fmt.Errorf("%w: section %d: %w", ErrParkedCorrupt, s.ID, err)
		}
		s.Table = table
		out, rest = append(out, s), rest[size:]
	}
	return out, nil
}
