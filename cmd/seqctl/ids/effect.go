package ids

import (
	"fmt"
	"io"
	"time"
)

// effect has the times until which a change is not in effect everywhere. They are zero if it is in effect.
type effect struct {
	InEffectInMS   int64 `json:"in_effect_in_ms,omitempty"`       // for other Sets and nodes of older builds
	WindowsUntilMS int64 `json:"windows_until_unix_ms,omitempty"` // for windows that clients hold
}

// note tells people of it.
func (e effect) note(w io.Writer) {
	if e.InEffectInMS > 0 {
		fmt.Fprintf(w, "other Sets and nodes of a build of before go by it within %v\n", time.Duration(e.InEffectInMS)*time.Millisecond)
	}
	if e.WindowsUntilMS > 0 {
		fmt.Fprintf(w, "windows that clients hold last until %s\n", time.UnixMilli(e.WindowsUntilMS).UTC().Format(time.RFC3339))
	}
}
