package health

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// FlagsOfFirst is what process 1 was started with, where that is the program of this name, or an init that runs it
// (docker run --init). In a container it is, and a health check sees the container's environment but not its arguments. Elsewhere,
// and where the containers of a pod share their processes, there are none. proc is /proc.
func FlagsOfFirst(proc fs.FS, program string) []string {
	line, err := fs.ReadFile(proc, "1/cmdline")
	if err != nil {
		return nil
	}
	words := strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")
	at := slices.IndexFunc(words, func(word string) bool { return filepath.Base(word) == filepath.Base(program) })
	if at < 0 {
		return nil
	}
	return words[at+1:]
}
