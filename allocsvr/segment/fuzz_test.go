package segment

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzTags: every tag of a catalogue that was taken is sound, and read again as it is.
func FuzzTags(f *testing.F) {
	f.Add([]byte(`{"tags":[{"tag":"orders","min_step":1000,"max_step":1000000,"start":1}]}`))
	f.Add([]byte(`{}`))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, body []byte) {
		tags, err := parseTags(body)
		if err != nil {
			return
		}
		for _, entry := range tags.list() {
			if err := entry.Validate(); err != nil {
				t.Fatalf("%+v was taken: %v", entry, err)
			}
			next, err := tags.with(entry)
			if err != nil {
				t.Fatal(err)
			}
			text, err := next.encode()
			if err != nil {
				t.Fatal(err)
			}
			if again, err := parseTags(text); err != nil || !cmp.Equal(tags, again) {
				t.Fatalf("%s is read again as %s (%v)", body, text, err)
			}
			return
		}
	})
}
