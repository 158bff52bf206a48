package cgroup

import (
	"testing"
	"testing/fstest"
)

const (
	v1Mount = "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n34 31 0:31 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
	v2Mount = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
)

func TestContainerLimit(t *testing.T) {
	t.Parallel()
	const mb = 1 << 20
	for name, c := range map[string]struct {
		cgroup, mounts string
		files          map[string]string
		want           int64
	}{
		"nothing, as on other systems":  {"", "", nil, 0},
		"v2, the container's own root":  {"0::/\n", v2Mount, map[string]string{"sys/fs/cgroup/memory.max": "268435456\n"}, 256 * mb},
		"v2, no limit":                  {"0::/\n", v2Mount, map[string]string{"sys/fs/cgroup/memory.max": "max\n"}, 0},
		"v2, the root of a machine":     {"0::/\n", v2Mount, nil, 0},
		"v2, a service of systemd":      {"0::/system.slice/celld.service\n", v2Mount, map[string]string{"sys/fs/cgroup/system.slice/celld.service/memory.max": "104857600\n", "sys/fs/cgroup/system.slice/memory.max": "max\n"}, 100 * mb},
		"v2, the limit is above":        {"0::/pod/celld\n", v2Mount, map[string]string{"sys/fs/cgroup/pod/celld/memory.max": "max\n", "sys/fs/cgroup/pod/memory.max": "209715200\n"}, 200 * mb},
		"v2, the smallest counts":       {"0::/pod/celld\n", v2Mount, map[string]string{"sys/fs/cgroup/pod/celld/memory.max": "524288000\n", "sys/fs/cgroup/pod/memory.max": "209715200\n"}, 200 * mb},
		"v2, the host's paths":          {"0::/kubepods/pod7/c9\n", "30 23 0:26 /kubepods/pod7/c9 /sys/fs/cgroup ro - cgroup2 cgroup rw\n", map[string]string{"sys/fs/cgroup/memory.max": "268435456\n"}, 256 * mb},
		"v2, a path outside of it":      {"0::/../other\n", "30 23 0:26 /../.. /sys/fs/cgroup ro - cgroup2 cgroup rw\n", map[string]string{"sys/fs/cgroup/memory.max": "268435456\n"}, 256 * mb},
		"v2, blanks in the path":        {"0::/a b\n", "30 23 0:26 / /mnt/my\\040cgroup ro - cgroup2 cgroup rw\n", map[string]string{"mnt/my cgroup/a b/memory.max": "268435456\n"}, 256 * mb},
		"v1":                            {"5:cpuset:/\n4:memory:/pod/celld\n", v1Mount, map[string]string{"sys/fs/cgroup/memory/pod/celld/memory.limit_in_bytes": "268435456\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 256 * mb},
		"v1, no limit":                  {"4:memory:/\n", v1Mount, map[string]string{"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 0},
		"v1, no limit, pages of 64 KB":  {"4:memory:/\n", v1Mount, map[string]string{"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854710272\n"}, 0},
		"v1, the host's paths":          {"4:memory:/docker/c9\n", "35 31 0:32 /docker/c9 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n", map[string]string{"sys/fs/cgroup/memory/memory.limit_in_bytes": "268435456\n"}, 256 * mb},
		"v1, controllers together":      {"4:cpu,memory:/a\n", "35 31 0:32 / /cg rw - cgroup cgroup rw,cpu,memory\n", map[string]string{"cg/a/memory.limit_in_bytes": "268435456\n"}, 256 * mb},
		"v1 for memory, v2 beside it":   {"4:memory:/a\n0::/\n", v1Mount + "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n", map[string]string{"sys/fs/cgroup/memory/a/memory.limit_in_bytes": "268435456\n"}, 256 * mb},
		"v1, the limit of another":      {"4:memory:/a\n", v1Mount, map[string]string{"sys/fs/cgroup/memory/b/memory.limit_in_bytes": "268435456\n", "sys/fs/cgroup/cpuset/a/memory.limit_in_bytes": "268435456\n"}, 0},
		"files that are not understood": {"x\n0::/\n", "y\n1 2 3 - cgroup2\n" + v2Mount, map[string]string{"sys/fs/cgroup/memory.max": "lots\n"}, 0},
	} {
		root := fstest.MapFS{"proc/self/cgroup": {Data: []byte(c.cgroup)}, "proc/self/mountinfo": {Data: []byte(c.mounts)}}
		for name, text := range c.files {
			root[name] = &fstest.MapFile{Data: []byte(text)}
		}
		if got := OfContainer(root); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	if got := OfContainer(fstest.MapFS{}); got != 0 {
		t.Errorf("without files: %d", got)
	}
}

// A mount may show a part of the hierarchy only, and then perhaps not the cgroup.
func TestBelow(t *testing.T) {
	for in, want := range map[[2]string]string{
		{"/", "/a/../b"}: "/b", {"/a", "/a/b"}: "/b", {"/a", "/a"}: "", {"/a", "/ab"}: "/", {"/a", "/x"}: "/", {"/a", "../a/b"}: "/b",
	} {
		if got := below(in[0], in[1]); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
