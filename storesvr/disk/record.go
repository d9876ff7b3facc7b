package disk

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr/acceptor"
)

// A register's value: the layout byte, promised round and session, accepted round and
// session, max, the max that came with the payload, each 8 bytes big-endian, then the
// payload and the checksum.
const (
	registerLayout = 1
	registerHead   = 1 + 6*8
	checksumSize   = 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var (
	errChecksum = errors.New("checksum does not match")
	errLayout   = errors.New("unknown layout")
)

// seal adds the checksum over key and value.
func seal(key, value []byte) []byte {
	return binary.BigEndian.AppendUint32(value, checksum(key, value))
}

// open checks and removes what seal added. The result points into record.
func open(key, record []byte) ([]byte, error) {
	n := len(record) - checksumSize
	if n < 0 || binary.BigEndian.Uint32(record[n:]) != checksum(key, record[:n]) {
		return nil, errChecksum
	}
	return record[:n], nil
}

func checksum(key, value []byte) uint32 {
	return crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, value)
}

func encodeRegister(key []byte, st acceptor.State) []byte {
	b := make([]byte, 0, registerHead+len(st.Payload)+checksumSize)
	b = append(b, registerLayout)
	for _, v := range []uint64{
		st.Promised.Round, uint64(st.Promised.Session),
		st.Accepted.Round, uint64(st.Accepted.Session),
		st.Max, st.PayloadMax,
	} {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	return seal(key, append(b, st.Payload...))
}

// decodeRegister copies what it keeps: record lies in the database's memory map.
func decodeRegister(key, record []byte) (acceptor.State, error) {
	value, err := open(key, record)
	if err != nil {
		return acceptor.State{}, err
	}
	switch {
	case len(value) > 0 && value[0] > registerLayout:
		return acceptor.State{}, newer("layout %d of register %q", value[0], key)
	case len(value) < registerHead || value[0] != registerLayout:
		return acceptor.State{}, errLayout
	}
	word := func(i int) uint64 { return binary.BigEndian.Uint64(value[1+8*i:]) }
	st := acceptor.State{
		Promised:   seq.Epoch{Round: word(0), Session: seq.Session(word(1))},
		Accepted:   seq.Epoch{Round: word(2), Session: seq.Session(word(3))},
		Max:        word(4),
		PayloadMax: word(5),
	}
	if payload := value[registerHead:]; len(payload) > 0 {
		st.Payload = bytes.Clone(payload)
	}
	return st, nil
}

func encodeNumber(key []byte, v uint64) []byte {
	return seal(key, binary.BigEndian.AppendUint64(nil, v))
}

func decodeNumber(key, record []byte) (uint64, error) {
	value, err := open(key, record)
	if err != nil {
		return 0, err
	}
	if len(value) != 8 {
		return 0, errLayout
	}
	return binary.BigEndian.Uint64(value), nil
}

func encodeJSON(key []byte, v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", key, err)
	}
	return seal(key, text), nil
}

func decodeJSON(key, record []byte, v any) error {
	value, err := open(key, record)
	if err != nil {
		return err
	}
	in := json.NewDecoder(bytes.NewReader(value))
	in.DisallowUnknownFields() // this build would drop it with the next change
	if err := in.Decode(v); err != nil {
		return newer("form of record %q: %v", key, err)
	}
	return nil
}
