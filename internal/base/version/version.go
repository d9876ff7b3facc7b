package version

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/seqsvr/seqsvr/seq"
)

// Set by the linker with -X, see the package's documentation; empty otherwise.
// They are read by Get and never written by Go code.
var (
	// Version is the release, such as v1.2.3.
	Version string
	// Commit is the full hash of the commit that was built.
	Commit string
	// Date is the time of that commit in RFC 3339, UTC.
	Date string
)

// Protocol is the version of the wire contract and of the records on disk that
// this build speaks. It goes up only when an old peer could misread a new one.
// 2 sends string keys as they are; builds of 1 hashed them before they sent them. 3 goes
// by the protocol that a cluster requires. 4 answers nothing in strict spaces by a lease, and knows spaces with
// tickets.
const Protocol = 4

// The first protocol of each feature that a build of before would undo. The stores require
// it of every session before the feature is first used.
const (
	ExactSpaces = 2
	Sets        = 3
	Tickets     = 4
	// Gate is the first whose builds go by the required protocol.
	Gate = 3
	// SetsBefore is required at once where stores of before have Sets already: builds of 1 do
	// not know them, and some of 2 do.
	SetsBefore = 2
	// Preempted is the first whose sessions the stores let others preempt. Older sessions answer Current
	// in strict spaces by their lease.
	Preempted = 4
)

// OfMapping returns the feature of a mapping that needs the highest protocol, and that protocol; 0 if every build
// knows its spaces.
func OfMapping(m seq.Mapping) (feature string, protocol int) {
	switch {
	case m.HasTickets():
		return "spaces with tickets", Tickets
	case m.HasExact():
		return "exact spaces", ExactSpaces
	}
	return "", 0
}

// OldestProtocol is the oldest version that this build still works with: the other
// side of a rolling upgrade.
const OldestProtocol = 1

// Info is what there is to know about a build. A fact that was not recorded is
// "unknown"; the version of such a build is "devel".
type Info struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"` // ends in "-dirty" if the checkout had changes
	Date     string `json:"date"`   // RFC 3339, UTC
	Go       string `json:"go"`     // the Go release, such as go1.26.0
	Protocol int    `json:"protocol"`
}

// Get returns the facts about the running binary.
func Get() Info {
	build, _ := debug.ReadBuildInfo()
	return resolve(Info{Version: Version, Commit: Commit, Date: Date}, build)
}

// resolve fills what the linker left empty in stamped from build, which may be
// nil.
func resolve(stamped Info, build *debug.BuildInfo) Info {
	info := stamped
	info.Go, info.Protocol = runtime.Version(), Protocol
	if build != nil {
		setting := make(map[string]string, len(build.Settings))
		for _, s := range build.Settings {
			setting[s.Key] = s.Value
		}
		if info.Version == "" && build.Main.Version != "(devel)" {
			info.Version = build.Main.Version
		}
		if info.Commit == "" && setting["vcs.revision"] != "" {
			info.Commit = setting["vcs.revision"]
			if setting["vcs.modified"] == "true" {
				info.Commit += "-dirty"
			}
		}
		if info.Date == "" {
			info.Date = setting["vcs.time"]
		}
	}
	if info.Version == "" {
		info.Version = "devel"
	}
	if info.Commit == "" {
		info.Commit = "unknown"
	}
	if info.Date == "" {
		info.Date = "unknown"
	}
	return info
}

// String is the build in one line, such as
// "v1.2.3 (commit 0123456789ab, 2006-01-02T15:04:05Z, go1.26.0, protocol 1)".
func (i Info) String() string {
	return fmt.Sprintf("%s (commit %s, %s, %s, protocol %d)", i.Version, i.shortCommit(), i.Date, i.Go, i.Protocol)
}

// shortCommit keeps the first 12 digits of a hash, and the mark of a changed
// checkout.
func (i Info) shortCommit() string {
	hash, dirty := strings.CutSuffix(i.Commit, "-dirty")
	if len(hash) > 12 {
		hash = hash[:12]
	}
	if dirty {
		hash += "-dirty"
	}
	return hash
}

// String is Get().String().
func String() string { return Get().String() }

// JSON is Get() as one indented JSON object that ends in a newline, with the
// keys version, commit, date, go and protocol.
func JSON() []byte {
	text, err := json.MarshalIndent(Get(), "", "  ")
	if err != nil {
		panic("version: encode: " + err.Error()) // strings and an int always encode
	}
	return append(text, '\n')
}
