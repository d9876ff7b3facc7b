package ids

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/seqsvr/seqsvr/internal/process/daemon"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

// millis is RFC 3339 with milliseconds, of times in UTC.
const millis = "2006-01-02T15:04:05.000Z07:00"

// stamp is a moment of a reply.
func stamp(unixMS int64) string { return time.UnixMilli(unixMS).UTC().Format(millis) }

// textHelp is the help of --text.
const textHelp = "`form`: decimal, base58, base62, zbase32 or hex"

// parseEncoding reads --text; a wrong one is daemon.ErrUsage.
func parseEncoding(name string) (snowflake.Encoding, error) {
	e, err := snowflake.ParseEncoding(name)
	if err != nil {
		return e, daemon.Usage(fmt.Errorf("--text %q: %w: expected decimal, base58, base62, zbase32 or hex", name, err))
	}
	return e, nil
}

// parseID reads an ID of a layout; a wrong one is daemon.ErrUsage and seq.ErrBadID.
func parseID(text string, e snowflake.Encoding, l snowflake.Layout) (snowflake.ID, error) {
	if number, ok := strings.CutPrefix(text, "-"); ok {
		if _, err := e.Parse(number); err == nil {
			return 0, negativeID(text)
		}
	}
	id, err := e.ParseOf(l, text)
	if err != nil {
		return 0, daemon.Usage(refused(err))
	}
	return id, nil
}

func negativeID(text string) error {
	return daemon.Usage(refused(fmt.Errorf("%s: %w", text, snowflake.ErrSign)))
}

// parseTime reads a time of RFC 3339 or milliseconds since 1970; a wrong one is
// daemon.ErrUsage.
func parseTime(text string) (time.Time, error) {
	if ms, err := strconv.ParseInt(text, 10, 64); err == nil {
		return time.UnixMilli(ms), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, daemon.Usage(fmt.Errorf("%w: --time %q, expected RFC 3339 (2022-03-22T07:55:44.532Z) or milliseconds since 1970", seq.ErrBadArgument, text))
	}
	return at, nil
}

// parseLayout parses a preset's name or a layout's text. It returns daemon.ErrUsage and seq.ErrBadLayout
// for a wrong text, and names the flag in the error.
//
// Verbs that make IDs refuse a layout for which snowflake.Layout.ReadOnly is true.
func parseLayout(flag, text string) (snowflake.Layout, error) {
	l, err := snowflake.ReadPreset(text)
	if err == nil {
		return l, nil
	}
	if strings.ContainsAny(text, ":;,=") {
		l, err = snowflake.ParseReadable(text)
	} else {
		err = fmt.Errorf("%w (presets are %s)", err, strings.Join(snowflake.PresetNames(), ", "))
	}
	if err != nil {
		return l, badLayout(flag, err)
	}
	return l, nil
}
