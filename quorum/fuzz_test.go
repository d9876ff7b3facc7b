package quorum

import (
	"bytes"
	"errors"
	"testing"
)

// FuzzDocumentPayload: a document is read as it was written, or refused by name.
func FuzzDocumentPayload(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("short"))
	f.Add(Document{Version: 1 << 40, Body: []byte("{}")}.payload())
	f.Fuzz(func(t *testing.T, payload []byte) {
		doc, err := parseDocument(payload)
		switch {
		case err != nil && !errors.Is(err, ErrBadDocument):
			t.Fatalf("error of no name: %v", err)
		case err == nil && len(payload) > 0 && !bytes.Equal(doc.payload(), payload):
			t.Fatalf("%x is written back as %x", payload, doc.payload())
		}
	})
}
