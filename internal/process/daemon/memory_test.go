package daemon

import (
	"testing"
	"testing/fstest"
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
