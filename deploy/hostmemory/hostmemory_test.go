package hostmemory

import (
	"testing"
	"testing/fstest"
)

func TestLimit(t *testing.T) {
	t.Parallel()
	const meminfo = "MemTotal:       16777216 kB\nMemFree:        100 kB\n"
	for name, c := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"a machine":                   {map[string]string{"proc/meminfo": meminfo}, 8 << 30},
		"nothing is known":            {nil, 2 << 30},
		"no limit":                    {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n"}, 8 << 30},
		"a container":                 {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "1073741824\n"}, 768 << 20},
		"a group above has less":      {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/memory.max": "1073741824\n", "sys/fs/cgroup/a/b/memory.max": "2147483648\n"}, 768 << 20},
		"groups of the host":          {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/kube/pod\n", "sys/fs/cgroup/memory.max": "1073741824\n"}, 768 << 20},
		"version 1":                   {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "3:cpu,memory:/pod\n", "sys/fs/cgroup/memory/pod/memory.limit_in_bytes": "1073741824\n"}, 768 << 20},
		"version 1 without a limit":   {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "3:memory:/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 8 << 30},
		"more than the machine has":   {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "1099511627776\n"}, 8 << 30},
		"the machine is not readable": {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "1073741824\n"}, 768 << 20},
	} {
		root := fstest.MapFS{}
		for file, text := range c.files {
			root[file] = &fstest.MapFile{Data: []byte(text)}
		}
		if got := limit(root); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// On any system there is a limit.
func TestLimitOfThisMachine(t *testing.T) {
	t.Parallel()
	if Limit() < 64<<20 {
		t.Errorf("%d", Limit())
	}
}
