package backup

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// Manifest says what a backup is of.
type Manifest struct {
	Cluster    string            `json:"cluster_id"`
	Era        seq.Era           `json:"era"`
	Members    quorum.MemberList `json:"members"`
	Mapping    seq.Mapping       `json:"mapping"`
	Sources    []string          `json:"sources"` // names of the stores that were read
	Taken      time.Time         `json:"taken"`   // begun
	Registers  int               `json:"registers"`
	LeaseBound time.Duration     `json:"lease_bound_ns"`
	Floors     quorum.Floors     `json:"floors"`  // of that era, the highest of all sources; zero if it was not restored
	Version    string            `json:"version"` // of the software
}

// A file is the magic line, the manifest as one line of JSON, and for each register, in
// the order of the names: the length of the name, 2 bytes; the length of the payload, 4;
// the name; promised round and session, accepted round and session, max, the max that came
// with the payload, 8 each; the payload; CRC-32C of all that, 4. Numbers are big-endian.
// SHA-256 of everything before it is at the end.
const (
	magic   = "seqsvr backup 1\n"
	headLen = 2 + 4
	wordLen = 6 * 8
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Write writes a backup of the states, in any order. It sets Registers of the manifest.
func Write(w io.Writer, m Manifest, states []quorum.RegisterState) error {
	states = slices.Clone(states)
	slices.SortFunc(states, func(a, b quorum.RegisterState) int { return strings.Compare(string(a.Register), string(b.Register)) })
	m.Registers = len(states)
	head, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("write backup: %w", err)
	}
	sum := sha256.New()
	out := io.MultiWriter(w, sum)
	if _, err := fmt.Fprintf(out, "%s%s\n", magic, head); err != nil {
		return fmt.Errorf("write backup: %w", err)
	}
	for _, st := range states {
		if _, err := out.Write(encode(st)); err != nil {
			return fmt.Errorf("write backup: %w", err)
		}
	}
	if _, err := w.Write(sum.Sum(nil)); err != nil {
		return fmt.Errorf("write backup: %w", err)
	}
	return nil
}

func encode(st quorum.RegisterState) []byte {
	b := make([]byte, 0, headLen+len(st.Register)+wordLen+len(st.Payload)+4)
	b = binary.BigEndian.AppendUint16(b, uint16(len(st.Register)))
	b = binary.BigEndian.AppendUint32(b, uint32(len(st.Payload)))
	b = append(b, st.Register...)
	for _, v := range []uint64{st.Promised.Round, uint64(st.Promised.Session), st.Accepted.Round, uint64(st.Accepted.Session), st.Max, st.PayloadMax} {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	b = append(b, st.Payload...)
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// Read reads a backup. ErrDamaged, with what is wrong.
func Read(r io.Reader) (Manifest, []quorum.RegisterState, error) {
	damaged := func(what string, args ...any) (Manifest, []quorum.RegisterState, error) {
		return Manifest{}, nil, fmt.Errorf("read backup: %w: %s", ErrDamaged, fmt.Sprintf(what, args...))
	}
	text, err := io.ReadAll(r)
	if err != nil {
		return Manifest{}, nil, fmt.Errorf("read backup: %w", err)
	}
	body, found := bytes.CutPrefix(text, []byte(magic))
	if !found || len(body) < sha256.Size {
		return damaged("it does not begin as one, or is cut short")
	}
	end := len(text) - sha256.Size
	if sum := sha256.Sum256(text[:end]); !bytes.Equal(sum[:], text[end:]) {
		return damaged("checksum of the file does not match")
	}
	head, records, found := bytes.Cut(text[len(magic):end], []byte("\n"))
	var m Manifest
	if err := json.Unmarshal(head, &m); !found || err != nil {
		return damaged("manifest: %v", err)
	}
	states := make([]quorum.RegisterState, 0, min(max(m.Registers, 0), len(records)/headLen))
	for len(records) > 0 {
		st, n, err := decode(records)
		if err != nil {
			return damaged("record %d: %v", len(states), err)
		}
		states, records = append(states, st), records[n:]
	}
	if len(states) != m.Registers {
		return damaged("%d records, expected %d", len(states), m.Registers)
	}
	return m, states, nil
}

var errRecord = errors.New("checksum does not match")

// decode reads the record that b begins with, and its length.
func decode(b []byte) (st quorum.RegisterState, n int, err error) {
	if len(b) < headLen {
		return st, 0, errRecord
	}
	name := int(binary.BigEndian.Uint16(b))
	payload := int(binary.BigEndian.Uint32(b[2:]))
	n = headLen + name + wordLen + payload + 4
	if len(b) < n || crc32.Checksum(b[:n-4], castagnoli) != binary.BigEndian.Uint32(b[n-4:]) {
		return st, 0, errRecord
	}
	words := b[headLen+name:]
	word := func(i int) uint64 { return binary.BigEndian.Uint64(words[8*i:]) }
	st = quorum.RegisterState{
		Register: seq.Register(b[headLen : headLen+name]),
		Promised: seq.Epoch{Round: word(0), Session: seq.Session(word(1))},
		Accepted: seq.Epoch{Round: word(2), Session: seq.Session(word(3))},
		Max:      word(4), PayloadMax: word(5),
	}
	if payload > 0 {
		st.Payload = bytes.Clone(words[wordLen : wordLen+payload])
	}
	return st, n, nil
}

// Save writes a backup to a new file, fsynced: it is there whole or not at all. A file
// that is there is left as it is: fs.ErrExist.
func Save(path string, m Manifest, states []quorum.RegisterState) (err error) {
	temp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".tmp-*")
	if err != nil {
		return fmt.Errorf("save backup: %w", err)
	}
	defer os.Remove(temp.Name())
	err = errors.Join(Write(temp, m, states), temp.Sync(), temp.Close())
	if err == nil {
		err = os.Link(temp.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("save backup: %w", err)
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("save backup: %w", err)
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// Load reads the backup in a file. Errors are those of Read and of the system.
func Load(path string) (Manifest, []quorum.RegisterState, error) {
	file, err := os.Open(path)
	if err != nil {
		return Manifest{}, nil, fmt.Errorf("read backup: %w", err)
	}
	defer file.Close()
	return Read(file)
}
