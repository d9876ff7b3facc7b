package console

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seqsvr/seqsvr/internal/ops/survey"
)

// topic is a part of a snapshot that a page may want.
type topic int

const (
	status   topic = iota // what `seqctl status` says, members, rates; always collected
	sections              // the owner of each section, and the desired one
	events
	ids      // namespaces and worker ids
	segments // tags
	drill
	topics // how many there are
)

var topicNames = [topics]string{"status", "sections", "events", "ids", "segments", "drill"}

// fresh is the age up to which a part is not collected again. It is less than pace, except for parts that
// take many reads and change slowly.
var fresh = [topics]time.Duration{
	status: 700 * time.Millisecond, sections: 700 * time.Millisecond, events: 700 * time.Millisecond,
	ids: 4500 * time.Millisecond, segments: 1700 * time.Millisecond,
}

// topicSet is a set of topics.
type topicSet [topics]bool

// parseTopics reads "status,events"; status is in it in any case.
func parseTopics(text string) (set topicSet, err error) {
	set[status] = true
	for name := range strings.SplitSeq(text, ",") {
		at := slices.Index(topicNames[:], name)
		if name == "" {
			continue
		}
		if at < 0 {
			return set, fmt.Errorf("topic %.40q: expected some of %s", name, strings.Join(topicNames[:], ","))
		}
		set[at] = true
	}
	return set, nil
}

// part is one topic as it was found.
type part struct {
	taken time.Time
	json  json.RawMessage
}

// snapshot is what a collector found at one moment. It is not changed.
type snapshot struct {
	number uint64 // rises by 1
	taken  time.Time
	parts  [topics]*part // nil if no page wanted it

	found *survey.Survey // for the next one; may be nil
	total totals
}

func (s *snapshot) has(want topicSet) bool {
	for t, wanted := range want {
		if wanted && s.parts[t] == nil {
			return false
		}
	}
	return true
}

// message is the JSON of the parts that any page wants.
func (s *snapshot) message(want topicSet, now time.Time) []byte {
	out := fmt.Appendf(nil, `{"number":%d,"taken_unix_ms":%d,"age_ms":%d`, s.number, s.taken.UnixMilli(), max(now.Sub(s.taken), 0).Milliseconds())
	for t, wanted := range want {
		if p := s.parts[t]; wanted && p != nil {
			out = fmt.Appendf(out, `,%q:`, topicNames[t])
			out = append(out, p.json...)
		}
	}
	return append(out, '}')
}

// partOf encodes what was found, or why nothing was.
func partOf(now time.Time, found any, err error) *part {
	if err != nil {
		found = struct {
			Error string `json:"error"`
		}{err.Error()}
	}
	text, err := json.Marshal(found)
	if err != nil { // a bug: all that is given here can be encoded
		text = []byte(`{"error":"it cannot be shown"}`)
	}
	return &part{now, text}
}
