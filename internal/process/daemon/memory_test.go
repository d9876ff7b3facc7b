package daemon

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/seqsvr/seqsvr/seq"
)

func TestTheMemoryLimitIsTheLeastOfAllCgroups(t *testing.T) {
	for name, row := range map[string]struct {
		files map[string]string
		want  uint64
	}{
		"no Linux":        {nil, 0},
		"v2, no limit":    {map[string]string{"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.max": "max\n"}, 0},
		"v2, its own":     {map[string]string{"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "536870912\n", "sys/fs/cgroup/a/memory.max": "max\n"}, 512 << 20},
		"v2, above it":    {map[string]string{"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "max\n", "sys/fs/cgroup/a/memory.max": "1048576\n"}, 1 << 20},
		"v2, the least":   {map[string]string{"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "2097152\n", "sys/fs/cgroup/a/memory.max": "1048576\n"}, 1 << 20},
		"v2, a container": {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "1048576\n"}, 1 << 20},
		"v1": {map[string]string{"proc/self/cgroup": "9:cpu,cpuacct:/x\n4:memory:/pod/c\n", "sys/fs/cgroup/memory/pod/c/memory.limit_in_bytes": "1048576\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n", "sys/fs/cgroup/cpu,cpuacct/x/memory.max": "5\n"}, 1 << 20},
		"v1, a container, where its path is not seen": {map[string]string{"proc/self/cgroup": "4:memory:/docker/123\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "1048576\n"}, 1 << 20},
		"v1, no limit": {map[string]string{"proc/self/cgroup": "4:memory:/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 0},
		"nonsense":     {map[string]string{"proc/self/cgroup": "\nx\n0::/a\n", "sys/fs/cgroup/a/memory.max": "-1\n"}, 0},
	} {
		root := fstest.MapFS{}
		for file, text := range row.files {
			root[file] = &fstest.MapFile{Data: []byte(text)}
		}
		if got := cgroupLimit(root); got != row.want {
			t.Errorf("%s: got %d, want %d", name, got, row.want)
		}
	}
}

func TestTheMemoryOfAProcess(t *testing.T) {
	none := map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n", "proc/meminfo": "MemFree: 1 kB\n" + "MemTotal:     262144 kB\n"}
	bound := map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "134217728\n", "proc/meminfo": "MemTotal:     262144 kB\n"}
	for name, row := range map[string]struct {
		flag, runtime uint64
		files         map[string]string
		want          uint64
		from, err     string
		given         bool
	}{
		"the flag":                      {flag: 64 << 20, files: bound, want: 64 << 20, from: "--memory", given: true},
		"the cgroup":                    {files: bound, want: 128 << 20, from: "cgroup", given: true},
		"the runtime's, below":          {runtime: 100 << 20, files: bound, want: 100 << 20, from: "GOMEMLIMIT", given: true},
		"the runtime's, above":          {runtime: 200 << 20, files: bound, want: 128 << 20, from: "cgroup", given: true},
		"the runtime's alone":           {runtime: 200 << 20, files: none, want: 200 << 20, from: "GOMEMLIMIT", given: true},
		"a cgroup without a limit":      {files: none, want: 256 << 20, from: "no cgroup has a limit"},
		"no Linux":                      {from: "nowhere"},
		"too little":                    {flag: 64<<20 - 1, files: none, err: "expected at least 67108864 bytes"},
		"above the machine":             {flag: 256<<20 + 1, files: none, err: "at most 268435456 bytes, the memory of the machine"},
		"above the cgroup":              {flag: 128<<20 + 1, files: bound, err: "at most 134217728 bytes, the limit of the cgroup"},
		"a machine that cannot be read": {files: map[string]string{"proc/meminfo": "MemTotal: much\n"}, from: "nowhere"},
	} {
		root := fstest.MapFS{}
		for path, text := range row.files {
			root[path] = &fstest.MapFile{Data: []byte(text)}
		}
		got, err := memoryOf(row.flag, row.runtime, root)
		if row.err != "" {
			if !errors.Is(err, seq.ErrBadArgument) || !strings.Contains(err.Error(), row.err) {
				t.Errorf("%s: got %v, want %q", name, err, row.err)
			}
			continue
		}
		if err != nil || got.Bytes != row.want || !strings.Contains(got.From, row.from) || got.Given != row.given {
			t.Errorf("%s: got %+v, %v, want %d from %q", name, got, err, row.want, row.from)
		}
	}
}
