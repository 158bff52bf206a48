package deploy

import (
	"crypto/tls"
	"crypto/x509"
	"debug/elf"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// TestEmptyRoot runs the static binary as the image does: alone in its root, as a user without a name.
func TestEmptyRoot(t *testing.T) {
	t.Parallel()
	harness.NeedRoot(t)
	root := t.TempDir()
	copyFile(t, harness.Binary(t), filepath.Join(root, "celld"))
	for dir := root; len(dir) > len(os.TempDir()); dir = filepath.Dir(dir) {
		os.Chmod(dir, 0o755) // or the user could not get there
	}
	jail := &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
	srv := harness.Spec{Binary: "/celld", Sys: jail, Dir: "/"}.Start(t)
	if got := harness.Dial(t, srv.Addr).Throttle("laoqian:reply", "15", "30", "60", "1"); got != [5]int64{0, 16, 15, -1, 2} {
		t.Errorf("CL.THROTTLE: %v", got)
	}
	status, err := os.ReadFile("/proc/" + strconv.Itoa(srv.Cmd.Process.Pid) + "/status")
	if err != nil || !regexp.MustCompile(`Uid:\s+65532\s+65532`).Match(status) {
		t.Errorf("who it runs as: %v\n%s", err, status)
	}

	_, port := harness.HostPort(srv.Addr)
	health := func(port string) (string, error) { // as HEALTHCHECK does, with the container's environment
		cmd := harness.Command(t, "/celld", "ping")
		cmd.SysProcAttr, cmd.Dir, cmd.Env = jail, "/", []string{"CELLD_PORT=" + port}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := health(port); err != nil {
		t.Errorf("celld ping: %v\n%s", err, out)
	}
	srv.Cmd.Process.Signal(syscall.SIGTERM)
	srv.Wait(0)
	if out, err := health(port); err == nil {
		t.Errorf("celld ping of a server that has ended: %s", out)
	}
}

// authorities is the file of the authorities that the system trusts, as the Dockerfile copies it.
const authorities = "/etc/ssl/certs/ca-certificates.crt"

// TestEmptyRootTrusts starts celld on an engine whose certificate the system's authorities vouch for, and on one whose certificate
// another vouches for. As in the image, their file is all that the binary has of a system.
func TestEmptyRootTrusts(t *testing.T) {
	t.Parallel()
	harness.NeedRoot(t)
	root := t.TempDir()
	copyFile(t, harness.Binary(t), filepath.Join(root, "celld"))
	if err := os.MkdirAll(filepath.Join(root, filepath.Dir(authorities)), 0o755); err != nil {
		t.Fatal(err)
	}
	known := celldtest.NewAuthority(t)
	copyFile(t, known.File, filepath.Join(root, authorities))
	for dir := root; len(dir) > len(os.TempDir()); dir = filepath.Dir(dir) {
		os.Chmod(dir, 0o755)
	}
	for authority, trusted := range map[*celldtest.Authority]bool{known: true, celldtest.NewAuthority(t): false} {
		cert, key := authority.Sign("engine", &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			t.Fatal(err)
		}
		ln, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}})
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
		first := make(chan error, 1)
		go func() {
			conn, err := ln.Accept()
			if err == nil {
				_, err = conn.Read(make([]byte, 1)) // what a client says after it has verified the certificate
				conn.Close()
			}
			first <- err
		}()
		jail := &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
		store := "rediss://" + ln.Addr().String()
		if trusted {
			harness.Spec{Binary: "/celld", Sys: jail, Dir: "/", Flags: []string{"--store", store}}.Start(t)
		} else {
			cmd := exec.Command("/celld", "--port", "0", "--store", store)
			cmd.SysProcAttr, cmd.Dir, cmd.Env = jail, "/", []string{}
			if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "celld refuses the engine's certificate") {
				t.Errorf("%v: %s", err, out)
			}
		}
		if err := <-first; (err == nil) != trusted {
			t.Errorf("trusted %v: %v", trusted, err)
		}
	}
}

// copyFile lets cp copy. Another test may have started a process that has not come to its exec yet. That process would hold a file
// that this one writes, and Linux executes no file that is open for writing.
func copyFile(t *testing.T, from, to string) {
	t.Helper()
	if out, err := harness.Command(t, "cp", from, to).CombinedOutput(); err != nil {
		t.Fatalf("cp: %v: %s", err, out)
	}
}

// TestStaticBinary looks for what a static binary does not have.
func TestStaticBinary(t *testing.T) {
	t.Parallel()
	file, err := elf.Open(harness.Binary(t))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, program := range file.Progs {
		if program.Type == elf.PT_INTERP || program.Type == elf.PT_DYNAMIC {
			t.Errorf("it has a %v", program.Type)
		}
	}
	if libraries, err := file.ImportedLibraries(); err == nil && len(libraries) > 0 {
		t.Errorf("it needs %q", libraries)
	}
}

// TestDockerfile holds the Dockerfile to what the tests here run.
func TestDockerfile(t *testing.T) {
	t.Parallel()
	joined := regexp.MustCompile(`\\\n\s*`).ReplaceAllString(celldtest.ReadFile(t, "../../Dockerfile"), " ")
	var lines []string
	for line := range strings.Lines(joined) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			lines = append(lines, line)
		}
	}
	stages := slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return !strings.HasPrefix(line, "FROM ") })
	if len(stages) < 2 || stages[len(stages)-1] != "FROM scratch" {
		t.Errorf("stages: %q; the last is to be FROM scratch", stages)
	}
	find := func(pattern string) []string {
		t.Helper()
		for _, line := range lines {
			if m := regexp.MustCompile(pattern).FindStringSubmatch(line); m != nil {
				return m
			}
		}
		t.Errorf("no line is %s", pattern)
		return []string{"", ""}
	}
	build := find(`^RUN .*CGO_ENABLED=0 .*go build (.*) -o /celld \.$`)
	got := strings.Fields(strings.NewReplacer(`"`, "", `'`, "").Replace(build[1]))
	if !slices.Equal(got, strings.Fields(strings.Join(harness.BuildFlags, " "))) {
		t.Errorf("go build %q, and the tests build with %q", got, harness.BuildFlags)
	}
	find(`^COPY --from=build .*/celld /celld$`)
	find(`^RUN ln -s /celld ratelimit$`)
	find(`^COPY --from=build /links/ /$`)
	find(`^COPY --from=build ` + authorities + ` ` + authorities + `$`)
	user := find(`^USER (\d+)(:\d+)?$`)
	if user[1] == "0" {
		t.Error("USER is root")
	}
	var check []string
	health := find(`^HEALTHCHECK .*CMD (\[.*\])$`)
	if json.Unmarshal([]byte(health[1]), &check) != nil || !slices.Equal(check, []string{"/celld", "ping"}) {
		t.Errorf("HEALTHCHECK %q", health)
	}
	find(`^ENTRYPOINT \["/celld"\]$`)
}
