package daemon

import (
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
)

// noLimit is the least limit of cgroup v1 that stands for no limit.
const noLimit = 1 << 60

// MemoryLimit returns how many bytes the process may take before it is ended, zero if nothing says
// so: the least of GOMEMLIMIT and of the limits of its cgroups (v2 and v1). Without a GOMEMLIMIT it
// has the runtime collect garbage more often from nine tenths of that on.
func MemoryLimit() uint64 {
	bound := debug.SetMemoryLimit(-1)
	limit := cgroupLimit(os.DirFS("/"))
	if bound == math.MaxInt64 {
		if limit > 0 {
			debug.SetMemoryLimit(int64(limit / 10 * 9))
		}
		return limit
	}
	if limit == 0 || uint64(bound) < limit {
		return uint64(bound)
	}
	return limit
}

// cgroupLimit returns the least memory limit of the cgroups that the process is in, zero for none.
// root is the file system from / on.
func cgroupLimit(root fs.FS) uint64 {
	text, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return 0 // no Linux
	}
	least := uint64(0)
	for line := range strings.Lines(string(text)) { // ID:CONTROLLERS:PATH, of v2 0::PATH
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) < 3 {
			continue
		}
		mount, file := "sys/fs/cgroup", "memory.max"
		if parts[1] != "" {
			if !strings.Contains(fmt.Sprintf(",%s,", parts[1]), ",memory,") {
				continue
			}
			mount, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		}
		// A container sees its own cgroup as the root, whatever the path says.
		for at := path.Clean("/" + parts[2]); ; at = path.Dir(at) {
			if limit := limitIn(root, mount+path.Join(at, "/", file)); limit > 0 && (least == 0 || limit < least) {
				least = limit
			}
			if at == "/" {
				break
			}
		}
	}
	return least
}

// limitIn reads one file of a cgroup; zero for no file and for no limit.
func limitIn(root fs.FS, name string) uint64 {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return 0
	}
	limit, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || limit >= noLimit { // "max"
		return 0
	}
	return limit
}
