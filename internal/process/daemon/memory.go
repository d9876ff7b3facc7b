package daemon

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/seqsvr/seqsvr/seq"
)

// noLimit is the least limit of cgroup v1 that stands for no limit.
const noLimit = 1 << 60

// MinMemory is the least --memory, in bytes. A daemon without data takes half of it.
const MinMemory = 64 << 20

// Memory is the memory limit of the process.
type Memory struct {
	Bytes uint64 // zero if nothing is known
	From  string // where the limit comes from
	Given bool   // for this process, by a flag, a cgroup or GOMEMLIMIT, and not only by the machine
}

// memoryOf returns the limit of a process: flag, if it is not zero, else the least of GOMEMLIMIT (runtime,
// zero for none) and of the limits of the cgroups (v2 and v1), else the machine's memory. root is the file
// system from / on. Error: seq.ErrBadArgument for a flag that is too small, or above what there is.
func memoryOf(flag, runtime uint64, root fs.FS) (Memory, error) {
	cgroup, machine := cgroupLimit(root), machineMemory(root)
	switch {
	case flag == 0 && cgroup > 0 && (runtime == 0 || cgroup <= runtime):
		return Memory{Bytes: cgroup, From: "cgroup", Given: true}, nil
	case flag == 0 && runtime > 0:
		return Memory{Bytes: runtime, From: "GOMEMLIMIT", Given: true}, nil
	case flag == 0 && machine > 0:
		return Memory{Bytes: machine, From: "the machine, because no cgroup has a limit"}, nil
	case flag == 0:
		return Memory{From: "nowhere"}, nil
	case flag < MinMemory:
		return Memory{}, fmt.Errorf("%w: --memory %d, expected at least %d bytes, which a daemon needs to start", seq.ErrBadArgument, flag, MinMemory)
	case cgroup > 0 && flag > cgroup:
		return Memory{}, fmt.Errorf("%w: --memory %d, expected at most %d bytes, the limit of the cgroup", seq.ErrBadArgument, flag, cgroup)
	case machine > 0 && flag > machine:
		return Memory{}, fmt.Errorf("%w: --memory %d, expected at most %d bytes, the memory of the machine", seq.ErrBadArgument, flag, machine)
	}
	return Memory{Bytes: flag, From: "--memory", Given: true}, nil
}

// openMemory sets Memory.
func (c *Common) openMemory() (err error) {
	runtime := uint64(0)
	if os.Getenv(runtimeLimit) != "" {
		runtime = uint64(debug.SetMemoryLimit(-1))
	}
	if runtime >= noLimit { // "off"
		runtime = 0
	}
	c.Memory, err = memoryOf(c.memoryFlag, runtime, os.DirFS("/"))
	return Usage(err)
}

// runtimeLimit is the environment variable of the Go runtime's own limit.
const runtimeLimit = "GOMEMLIMIT"

// boundRuntime has the runtime collect garbage more often from nine tenths of the limit on. A GOMEMLIMIT
// stands. The machine's memory is no limit of the runtime, because other processes share it.
func (c *Common) boundRuntime() {
	c.Logger.Info("memory limit", "bytes", c.Memory.Bytes, "from", c.Memory.From)
	if share := int64(c.Memory.Bytes / 10 * 9); c.Memory.Given && os.Getenv(runtimeLimit) == "" && share < debug.SetMemoryLimit(-1) {
		debug.SetMemoryLimit(share)
	}
}

// machineMemory returns the memory of the machine, zero if it is not known.
func machineMemory(root fs.FS) uint64 {
	text, err := fs.ReadFile(root, "proc/meminfo")
	if err != nil {
		return 0 // no Linux
	}
	for line := range strings.Lines(string(text)) {
		if size, ok := strings.CutPrefix(line, "MemTotal:"); ok {
			kib, err := strconv.ParseUint(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(size), "kB")), 10, 53)
			if err != nil {
				return 0
			}
			return kib << 10
		}
	}
	return 0
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
