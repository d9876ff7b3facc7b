package disk

import (
	"bytes"
	"errors"
	"testing"

	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr/acceptor"
)

// FuzzRecords: what a record decodes to is written back as the very same bytes, so that
// nothing in it was passed over; everything else is refused by name. Each input is tried
// as it is, and with the checksum made to fit.
func FuzzRecords(f *testing.F) {
	key := []byte("droutes")
	st := acceptor.State{Promised: seq.Epoch{Round: 9, Session: 8}, Accepted: seq.Epoch{Round: 7, Session: 6}, Max: 5, PayloadMax: 4, Payload: []byte("body")}
	f.Add(key, encodeRegister(key, st))
	f.Add(key, encodeRegister(key, acceptor.State{}))
	f.Add(keyCommits, encodeNumber(keyCommits, 1<<60))
	f.Add([]byte{}, []byte{})
	f.Fuzz(func(t *testing.T, key, raw []byte) {
		for _, record := range [][]byte{raw, seal(key, bytes.Clone(raw))} {
			if got, err := decodeRegister(key, record); err == nil {
				if again := encodeRegister(key, got); !bytes.Equal(again, record) {
					t.Fatalf("register %x is written back as %x", record, again)
				}
			} else if !errors.Is(err, errChecksum) && !errors.Is(err, errLayout) && !errors.Is(err, ErrNewer) {
				t.Fatalf("error of no name: %v", err)
			}
			if got, err := decodeNumber(key, record); err == nil {
				if again := encodeNumber(key, got); !bytes.Equal(again, record) {
					t.Fatalf("number %x is written back as %x", record, again)
				}
			} else if !errors.Is(err, errChecksum) && !errors.Is(err, errLayout) && !errors.Is(err, ErrNewer) {
				t.Fatalf("error of no name: %v", err)
			}
			var members Members
			if err := decodeJSON(key, record, &members); err == nil {
				if _, err := encodeJSON(key, members); err != nil {
					t.Fatalf("a member list that was read cannot be written: %v", err)
				}
			}
		}
	})
}
