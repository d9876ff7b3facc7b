package backup

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"slices"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// input is a backup as it is read.
type input struct {
	key      Key
	in       *bufio.Reader
	sum, mac hash.Hash // of all that was read
}

func newInput(r io.Reader, key Key) *input {
	return &input{key: key, in: bufio.NewReaderSize(r, 64<<10), sum: sha256.New(), mac: key.mac()}
}

func damaged(what string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(what, args...))
}

// cut is ErrDamaged where the input ended, and else what went wrong with it.
func cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return damaged("it is cut short")
	}
	return err
}

// next reads n bytes into what b has room for. Memory grows with what is there, and not
// with what a length says.
func (in *input) next(b []byte, n int) ([]byte, error) {
	out := bytes.NewBuffer(b)
	at := out.Len()
	if _, err := io.CopyN(out, in.in, int64(n)); err != nil {
		return nil, cut(err)
	}
	read := out.Bytes()[at:]
	in.sum.Write(read)
	in.mac.Write(read)
	return out.Bytes(), nil
}

// line reads to the end of a line, which it leaves out.
func (in *input) line() ([]byte, error) {
	var line []byte
	for {
		part, err := in.in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxManifest:
			return nil, damaged("a manifest of more than %d bytes", maxManifest)
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil:
			return nil, cut(err)
		}
		in.sum.Write(line)
		in.mac.Write(line)
		return line[:len(line)-1], nil
	}
}

func (in *input) backup() (m Manifest, states []quorum.RegisterState, sig Signature, err error) {
	fail := func(err error) (Manifest, []quorum.RegisterState, Signature, error) { return Manifest{}, nil, "", err }
	first, err := in.next(nil, len(magic))
	if err != nil {
		return fail(err)
	}
	if form := len(magic) - 2; string(first[:form]) == magic[:form] && first[form] > magicBoth[form] && first[form] <= '9' {
		return fail(fmt.Errorf("%w: format %c, expected 1 to %c", ErrNewer, first[form], magicBoth[form]))
	}
	if !slices.Contains([]string{magic, magicSigned, magicGated, magicBoth}, string(first)) {
		return fail(damaged("it does not begin as one"))
	}
	signed := string(first) == magicSigned || string(first) == magicBoth
	head, err := in.line()
	if err != nil {
		return fail(err)
	}
	if err := json.Unmarshal(head, &m); err != nil || m.Registers < 0 || signed != (m.SignedBy != "") {
		return fail(damaged("manifest: %v", err))
	}
	var record []byte // the room of one, used again
	for range m.Registers {
		var st quorum.RegisterState
		if st, record, err = in.record(record[:0]); err != nil {
			return fail(fmt.Errorf("record %d of %d: %w", len(states)+1, m.Registers, err))
		}
		states = append(states, st)
	}
	if sig, err = in.end(m, signed); err != nil {
		return fail(err)
	}
	known := json.NewDecoder(bytes.NewReader(head)) // whole, by its checksum: what it has beyond is no damage
	known.DisallowUnknownFields()
	if err := known.Decode(new(Manifest)); err != nil {
		return fail(fmt.Errorf("%w: manifest: %w", ErrNewer, err))
	}
	return m, states, sig, nil
}

// end reads what stands behind the records.
func (in *input) end(m Manifest, signed bool) (Signature, error) {
	want := in.sum.Sum(nil)
	got, err := in.next(nil, len(want))
	if err != nil {
		return "", err
	}
	if !bytes.Equal(want, got) {
		return "", damaged("checksum of the file does not match")
	}
	sig := Unsigned
	if signed {
		want := in.mac.Sum(nil)
		if got, err = in.next(nil, len(want)); err != nil {
			return "", err
		}
		switch {
		case in.key == nil:
			sig = NoKey
		case hmac.Equal(want, got):
			sig = Held
		case m.SignedBy != in.key.ID():
			sig = OtherKey
		default:
			sig = Broken
		}
	}
	if _, err := in.in.ReadByte(); err == nil {
		return "", damaged("something stands behind its end")
	} else if !errors.Is(err, io.EOF) {
		return "", err
	}
	return sig, nil
}

var errRecord = fmt.Errorf("%w: checksum does not match", ErrDamaged)

// record reads one into room, which it gives back for the next.
func (in *input) record(room []byte) (st quorum.RegisterState, b []byte, err error) {
	if b, err = in.next(room, headLen); err != nil {
		return st, nil, err
	}
	name := int(binary.BigEndian.Uint16(b))
	payload := int(binary.BigEndian.Uint32(b[2:]))
	n := headLen + name + wordLen + payload + 4
	if b, err = in.next(b, n-headLen); err != nil {
		return st, nil, err
	}
	if crc32.Checksum(b[:n-4], castagnoli) != binary.BigEndian.Uint32(b[n-4:]) {
		return st, nil, errRecord
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
	return st, b, nil
}
