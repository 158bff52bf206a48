package harness

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"celld/internal/celldtest"
)

// Bash returns a bash that types a script in, in a folder, as a reader of a page would. Shims are scripts that stand before programs of
// their names in PATH. What it has started ends with the test, in the background, too.
func Bash(t testing.TB, script, dir string, shims map[string]string, env ...string) *exec.Cmd {
	t.Helper()
	path := t.TempDir()
	for name, text := range shims {
		celldtest.WriteFile(t, "#!/bin/bash\n"+text+"\n", path, name)
		if err := os.Chmod(filepath.Join(path, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	bash := Command(t, celldtest.Need(t, "bash"), "-c", script)
	bash.Dir, bash.Env = dir, append(append(CleanEnv(), "PATH="+path+":"+os.Getenv("PATH")), env...)
	bash.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	t.Cleanup(func() {
		if bash.Process != nil {
			_ = syscall.Kill(-bash.Process.Pid, syscall.SIGKILL)
			_ = bash.Wait()
		}
	})
	return bash
}
