package cgroup

import (
	"io/fs"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
)

// OfContainer returns the smallest memory limit, in bytes, of the process's cgroups, v2 or v1, from its own up to the highest
// visible one. 0: there is none. root is the root of the file system.
//
// It uses no library, as those read only the machine's own files, so the forms of other machines could not be tested.
func OfContainer(root fs.FS) int64 {
	own := ownCgroups(root)
	mounts, _ := fs.ReadFile(root, "proc/self/mountinfo")
	least := int64(math.MaxInt64)
	for line := range strings.Lines(string(mounts)) {
		mount, about, _ := strings.Cut(line, " - ")
		where, kind := strings.Fields(mount), strings.Fields(about)
		if len(where) < 5 || len(kind) < 3 {
			continue
		}
		options := strings.Split(kind[2], ",")
		for _, h := range hierarchies {
			cgroup, in := own[h.controller]
			if !in || kind[0] != h.fsType || h.controller != "" && !slices.Contains(options, h.controller) {
				continue
			}
			top := unescape(where[4])
			for dir := path.Join(top, below(unescape(where[3]), cgroup)); ; dir = path.Dir(dir) {
				if limit := readLimit(root, path.Join(dir, h.file)); limit > 0 {
					least = min(least, limit)
				}
				if dir == top {
					break
				}
			}
		}
	}
	if least >= unlimited {
		return 0
	}
	return least
}

// unlimited and above mean no limit in v1: the largest multiple of the page size in an int64, for pages of up to 1 MB.
const unlimited = math.MaxInt64 &^ (1<<20 - 1)

// hierarchies are v2, whose files name no controller, and v1.
var hierarchies = []struct{ controller, fsType, file string }{
	{"", "cgroup2", "memory.max"},
	{"memory", "cgroup", "memory.limit_in_bytes"},
}

// ownCgroups reads the cgroups of the process by controller: lines of number:controllers:path.
func ownCgroups(root fs.FS) map[string]string {
	own := map[string]string{}
	text, _ := fs.ReadFile(root, "proc/self/cgroup")
	for line := range strings.Lines(string(text)) {
		if fields := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3); len(fields) == 3 {
			for controller := range strings.SplitSeq(fields[1], ",") {
				own[controller] = fields[2]
			}
		}
	}
	return own
}

// below returns the path of a cgroup under a mount that shows the hierarchy from the cgroup shown on. A container without a cgroup
// namespace sees the host's paths, and its mount may show only their last part. If the mount does not show the cgroup, the
// path is the mount itself.
func below(shown, cgroup string) string {
	cgroup = path.Clean("/" + cgroup)
	if shown == "/" {
		return cgroup
	}
	rest, in := strings.CutPrefix(cgroup, shown)
	if !in || rest != "" && rest[0] != '/' {
		return "/"
	}
	return rest
}

// readLimit returns the limit in a file. "max" and a missing file are 0, no limit.
func readLimit(root fs.FS, name string) int64 {
	text, err := fs.ReadFile(root, strings.TrimPrefix(name, "/"))
	if err != nil {
		return 0
	}
	limit, _ := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return limit
}

// unescape decodes a path of mountinfo, in which a space is \040.
func unescape(text string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(text)
}
