package backup

import (
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

	"github.com/seqsvr/seqsvr/internal/base/version"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// origin returns the id of the cluster that was saved, which a restore keeps. It is zero if a build of
// the version before made the backup and the members had changed by then.
func (m Manifest) origin() seq.ClusterID {
	life := m.Members.Incarnation
	if !life.Known() && m.Members.Version == 1 {
		life = m.Members.Derived(seq.ClusterID{}, m.Cluster, m.Era)
	}
	return life.Cluster
}

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
	Floors     quorum.Floors     `json:"floors"`                      // of that era, the highest of all sources; zero if it was not restored
	Required   int               `json:"required_protocol,omitempty"` // of sessions, the highest of all sources
	Version    string            `json:"version"`                     // of the software
	SignedBy   string            `json:"signed_by,omitempty"`         // Key.ID; empty if unsigned
}

// A file is the magic line, the manifest as one line of JSON, and for each register, in
// the order of the names: the length of the name, 2 bytes; the length of the payload, 4;
// the name; promised round and session, accepted round and session, max, the max that came
// with the payload, 8 each; the payload; CRC-32C of all that, 4. Numbers are big-endian.
// SHA-256 of everything before it is at the end. A signed file has another magic line, and
// HMAC-SHA256 of everything before it, the SHA-256 included, as its last 32 bytes. So has a file
// that builds of before version.Gate must not restore: they would drop what they do not know.
const (
	magic       = "seqsvr backup 1\n"
	magicSigned = "seqsvr backup 2\n"
	magicGated  = "seqsvr backup 3\n"
	magicBoth   = "seqsvr backup 4\n"
	headLen     = 2 + 4
	wordLen     = 6 * 8
	maxManifest = 16 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// magic returns the magic line of the file.
func (m Manifest) magic(signed bool) string {
	lines := [2]string{magic, magicSigned}
	if m.Required >= version.Gate || m.Floors.Section > 0 {
		lines = [2]string{magicGated, magicBoth}
	}
	if signed {
		return lines[1]
	}
	return lines[0]
}

// Write writes a backup of the states, in any order, unsigned. It sets Registers of the manifest.
func Write(w io.Writer, m Manifest, states []quorum.RegisterState) error {
	return Key(nil).Write(w, m, states)
}

// Write is Write, and signs the file unless the key is nil.
func (k Key) Write(w io.Writer, m Manifest, states []quorum.RegisterState) error {
	states = slices.Clone(states)
	slices.SortFunc(states, func(a, b quorum.RegisterState) int { return strings.Compare(string(a.Register), string(b.Register)) })
	m.Registers, m.SignedBy = len(states), k.ID()
	head, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("write backup: %w", err)
	}
	sum, mac, first := sha256.New(), k.mac(), m.magic(k != nil)
	out := io.MultiWriter(w, sum, mac)
	if _, err := fmt.Fprintf(out, "%s%s\n", first, head); err != nil {
		return fmt.Errorf("write backup: %w", err)
	}
	for _, st := range states {
		if _, err := out.Write(encode(st)); err != nil {
			return fmt.Errorf("write backup: %w", err)
		}
	}
	_, err = out.Write(sum.Sum(nil))
	if err == nil && k != nil {
		_, err = w.Write(mac.Sum(nil))
	}
	if err != nil {
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

// Read reads a backup, signed or not. ErrDamaged, with what is wrong.
func Read(r io.Reader) (Manifest, []quorum.RegisterState, error) {
	m, states, _, err := Key(nil).Read(r)
	return m, states, err
}

// Read reads a backup as it comes, and tells whether it was signed with the key.
// ErrDamaged, with what is wrong. Beside the states it keeps one record at a time.
func (k Key) Read(r io.Reader) (Manifest, []quorum.RegisterState, Signature, error) {
	in := newInput(r, k)
	m, states, sig, err := in.backup()
	if err != nil {
		return Manifest{}, nil, "", fmt.Errorf("read backup: %w", err)
	}
	return m, states, sig, nil
}

// Save writes a backup to a new file, fsynced: it is there whole or not at all. A file
// that is there is left as it is: fs.ErrExist.
func Save(path string, m Manifest, states []quorum.RegisterState) error {
	return Key(nil).Save(path, m, states)
}

// Save is Save, and signs the file unless the key is nil.
func (k Key) Save(path string, m Manifest, states []quorum.RegisterState) (err error) {
	temp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".tmp-*")
	if err != nil {
		return fmt.Errorf("save backup: %w", err)
	}
	defer os.Remove(temp.Name())
	err = errors.Join(k.Write(temp, m, states), temp.Sync(), temp.Close())
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

// Load reads the backup in a file. It returns the errors of Read and of the system.
func Load(path string) (Manifest, []quorum.RegisterState, error) {
	m, states, _, err := Key(nil).Load(path)
	return m, states, err
}

// Load reads the backup in a file. It returns the errors of Read and of the system.
func (k Key) Load(path string) (Manifest, []quorum.RegisterState, Signature, error) {
	file, err := os.Open(path)
	if err != nil {
		return Manifest{}, nil, "", fmt.Errorf("read backup: %w", err)
	}
	defer file.Close()
	return k.Read(file)
}
