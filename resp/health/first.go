package health

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// FlagsOfFirst returns the flags of process 1, if that is the named program or an init that runs it (docker run --init). So it is
// in a container, where a health check sees the server's environment but not its arguments. Elsewhere, and in a pod whose
// containers share their processes, it returns nil. proc is /proc.
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
