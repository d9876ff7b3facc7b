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
	errKey        = errors.New("unknown key, expected seq:UID, seq:SPACE/UID, tag:NAME or snowflake:NAMESPACE")
	errText       = fmt.Errorf("%w: key is not UTF-8", seq.ErrBadArgument)
	errUID        = errors.New("value of a seq: key is not a uid, expected 0 to 18446744073709551615")
	errReadOnly   = errors.New("only seq: keys can be read")
	errSingle     = errors.New("snowflake: keys take INCR only, since their IDs are not consecutive")
	errIncrement  = errors.New("increment must be 1 to " + strconv.Itoa(seq.MaxCount))
)

// sequenceKey reads what stands behind seq:.
func sequenceKey(text string) (client.Key, error) {
	space, uid := seq.DefaultSpace, text
	if at := strings.LastIndexByte(text, '/'); at >= 0 {
		space, uid = cmp.Or(text[:at], seq.DefaultSpace), text[at+1:] // one key, however it is written
	}
	n, err := strconv.ParseUint(uid, 10, 64)
	if err != nil {
		return client.Key{}, errUID
	}
	return client.Key{Space: space, UID: seq.UID(n)}, nil
}
