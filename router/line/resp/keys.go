package resp

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/seq"
)

// The three kinds of numbers, as keys begin.
const (
	seqPrefix = "seq:"
	tagPrefix = "tag:"
	idPrefix  = "snowflake:"
)

// Errors of commands, worded as clients know those that they know. They stand behind ERR.
var (
	errNotInteger = errors.New("value is not an integer or out of range")
	errKey        = errors.New("unknown key, expected seq:UID, seq:SPACE/UID, seq:KEY, tag:NAME or snowflake:NAMESPACE")
	errText       = fmt.Errorf("%w: key is not UTF-8", seq.ErrBadArgument)
	errUID        = errors.New(`value of a seq: key is not a uid, expected 0 to 18446744073709551615, or a string key such as room:7 or "42"`)
	errReadOnly   = errors.New("only seq: keys can be read")
	errSingle     = errors.New("snowflake: keys take INCR only, since their IDs are not consecutive")
	errIncrement  = errors.New("increment must be 1 to " + strconv.Itoa(seq.MaxCount))
)

// sequenceKey reads what stands behind seq:, a UID or a string key, with its space or without. A key in double
// quotes is a string key whatever it looks like, as client.Key.String has it.
func sequenceKey(text string) (client.Key, error) {
	space, key := seq.DefaultSpace, text
	if before, after, found := strings.Cut(text, "/"); found && !quoted(text) {
		space, key = cmp.Or(before, seq.DefaultSpace), after // one key, however it is written
	}
	switch n, err := strconv.ParseUint(key, 10, 64); {
	case err == nil:
		return client.Key{Space: space, UID: seq.UID(n)}, nil
	case quoted(key):
		key = key[1 : len(key)-1]
	case key == "", strings.Trim(key, "+-0123456789") == "": // a slip rather than a name
		return client.Key{}, errUID
	}
	k := seq.StringKey(space, key)
	return k, k.Check()
}

func quoted(text string) bool { return len(text) > 1 && text[0] == '"' && text[len(text)-1] == '"' }
