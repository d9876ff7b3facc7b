package namespaces

import (
	"bytes"
	"errors"
	"testing"
)

// FuzzDirectory: the document of namespaces is read as it was written, or refused by
// name.
func FuzzDirectory(f *testing.F) {
	body, err := directory{Format: format, Namespaces: defaults(), Datacenters: []Datacenter{{ID: 3, Name: "east"}}}.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(body)
	f.Add([]byte{})
	f.Add([]byte(`{"format":2}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		d, err := parseDirectory(body)
		if err != nil {
			if !errors.Is(err, ErrBadDirectory) {
				t.Fatalf("error of no name: %v", err)
			}
			return
		}
		first, err := d.encode()
		if err != nil {
			return // a layout that cannot be written was never accepted by PutNamespace
		}
		again, err := parseDirectory(first)
		if err != nil {
			t.Fatalf("%s is not read again: %v", first, err)
		}
		if second, err := again.encode(); err != nil || !bytes.Equal(first, second) {
			t.Fatalf("%s travels on as %s (%v)", first, second, err)
		}
	})
}
