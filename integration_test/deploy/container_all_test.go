//go:build all

package deploy

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// image is what buildah made of the Dockerfile.
type image struct {
	root   string // its files
	config struct {
		User        string
		Entrypoint  []string
		Healthcheck struct{ Test []string }
	}
}

// buildImage builds the Dockerfile as it is. It asks no registry: the base image is made here, with a shell, its libraries and the
// certificates that the machine trusts. It sees the machine's Go and Go's caches.
func buildImage(t *testing.T) (i image) {
	t.Helper()
	harness.NeedRoot(t)
	harness.SeeSources()
	dir := t.TempDir()
	buildah := func(args ...string) string {
		t.Helper()
		return harness.Tool(t, "buildah",
			append([]string{"--root", dir + "/store", "--runroot", dir + "/run", "--storage-driver", "vfs"}, args...)...)
	}
	from := regexp.MustCompile(`(?m)^FROM (\S+) AS build$`).FindStringSubmatch(celldtest.ReadFile(t, "../../Dockerfile"))
	if from == nil {
		t.Fatal("the Dockerfile has no stage called build")
	}
	base := filepath.Join(dir, "base")
	libraries := regexp.MustCompile(`/\S+`).FindAllString(harness.Tool(t, "ldd", "/bin/sh")+harness.Tool(t, "ldd", "/bin/ln"), -1)
	for _, path := range append(libraries, "/bin/sh", "/bin/ln", authorities) {
		if err := os.MkdirAll(filepath.Dir(base+path), 0o755); err != nil {
			t.Fatal(err)
		}
		copyFile(t, path, base+path)
	}
	if err := os.Mkdir(base+"/tmp", 0o777); err != nil {
		t.Fatal(err)
	}
	env := strings.Split(harness.Tool(t, "go", "env", "GOROOT", "GOMODCACHE", "GOCACHE", "GOPROXY", "GOSUMDB"), "\n")
	celldtest.WriteFile(t, fmt.Sprintf("FROM scratch\nCOPY base/ /\nENV PATH=/usr/local/go/bin:/bin GOMODCACHE=/modules GOCACHE=/cache GOTOOLCHAIN=local GOPROXY=%q GOSUMDB=%q\n", env[3], env[4]), dir, "Dockerfile")
	buildah("build", "--isolation", "chroot", "--tag", from[1], dir)
	buildah("build", "--isolation", "chroot", "--pull-never", "--format", "docker", "--tag", "celld",
		"--volume", env[0]+":/usr/local/go:ro", "--volume", env[1]+":/modules", "--volume", env[2]+":/cache",
		"--volume", "/etc/ssl:/etc/ssl:ro", "../..")
	var about struct {
		Docker struct{ Config json.RawMessage }
	}
	if err := json.Unmarshal([]byte(buildah("inspect", "--type", "image", "celld")), &about); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(about.Docker.Config, &i.config); err != nil {
		t.Fatal(err)
	}
	i.root = strings.TrimSpace(buildah("mount", strings.TrimSpace(buildah("from", "--pull-never", "celld"))))
	return i
}

// container runs the image by runc, as Docker and Kubernetes run it with strict settings: nobody can write to the root, there are no
// capabilities, the user is that of the image, and memory is limited. It uses the network of this machine.
type container struct{ dir, id, runc string }

func (i image) container(t *testing.T, memory int, volume string, args ...string) container {
	t.Helper()
	c := container{dir: t.TempDir(), runc: celldtest.Need(t, "runc")}
	c.id = "celld-test-" + strconv.Itoa(os.Getpid()) + "-" + filepath.Base(c.dir)
	harness.Tool(t, "runc", "spec", "--bundle", c.dir)
	var spec map[string]any
	if err := json.Unmarshal([]byte(celldtest.ReadFile(t, c.dir, "config.json")), &spec); err != nil {
		t.Fatal(err)
	}
	var uid, gid int
	if _, err := fmt.Sscanf(i.config.User, "%d:%d", &uid, &gid); err != nil {
		t.Fatalf("USER %q: %v", i.config.User, err)
	}
	process, linux := spec["process"].(map[string]any), spec["linux"].(map[string]any)
	process["terminal"], process["noNewPrivileges"], process["capabilities"] = false, true, map[string]any{}
	process["user"] = map[string]int{"uid": uid, "gid": gid}
	process["args"] = append(slices.Clone(i.config.Entrypoint), args...)
	spec["root"] = map[string]any{"path": i.root, "readonly": true}
	if volume != "" {
		spec["mounts"] = append(spec["mounts"].([]any),
			map[string]any{"destination": "/data", "type": "bind", "source": volume, "options": []string{"rbind", "rw"}})
	}
	linux["namespaces"] = slices.DeleteFunc(linux["namespaces"].([]any), func(n any) bool {
		return n.(map[string]any)["type"] == "network"
	})
	linux["resources"] = map[string]any{"memory": map[string]int{"limit": memory}}
	text, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	celldtest.WriteFile(t, string(text), c.dir, "config.json")
	t.Cleanup(func() { exec.Command(c.runc, "--root", c.dir+"/state", "delete", "--force", c.id).Run() })
	return c
}

func (c container) words(command string, more ...string) []string {
	return append([]string{"--root", c.dir + "/state", command}, more...)
}

// start runs it until the test ends. A signal to runc is one to celld, and celld's exit code is runc's.
func (c container) start(t *testing.T) *harness.Server {
	t.Helper()
	words := append([]string{"exec", c.runc}, c.words("run", "--bundle", c.dir, c.id)...)
	return harness.Spec{Wrap: []string{"sh", "-c", strings.Join(words, " ")}}.Start(t) // sh drops the flags of Spec
}

// of reads a file about celld in /proc.
func (c container) of(t *testing.T, file string) string {
	t.Helper()
	var state struct{ PID int }
	if err := json.Unmarshal([]byte(harness.Tool(t, "runc", c.words("state", c.id)...)), &state); err != nil {
		t.Fatal(err)
	}
	return celldtest.ReadFile(t, "/proc", strconv.Itoa(state.PID), file)
}

// TestImage builds the image and runs it.
func TestImage(t *testing.T) {
	t.Parallel()
	i := buildImage(t)
	files, err := filepath.Glob(i.root + "/*")
	if err != nil || !slices.Equal(files, []string{i.root + "/bin", i.root + "/celld", i.root + "/data", i.root + "/etc"}) {
		t.Errorf("the image has %q, %v", files, err)
	}
	if target, err := os.Readlink(i.root + "/bin/ratelimit"); target != "/celld" {
		t.Errorf("/bin/ratelimit is a link to %q, %v", target, err)
	}
	if !strings.Contains(celldtest.ReadFile(t, i.root, "etc/ssl/certs/ca-certificates.crt"), "BEGIN CERTIFICATE") {
		t.Error("the image has no authorities")
	}
	if i.config.User != "65532:65532" || !slices.Equal(i.config.Healthcheck.Test, []string{"CMD", "/celld", "ping"}) {
		t.Errorf("%+v", i.config)
	}
	version := i.container(t, 128<<20, "", "version", "-v")
	out, err := harness.TryTool(t, "", "runc", version.words("run", "--bundle", version.dir, version.id)...)
	switch {
	case err != nil:
		celldtest.Missing(t, "no containers here: %v, %s", err, out)
	case !strings.Contains(out, "\nmodule github.com/spf13/pflag v"):
		t.Errorf("celld version -v: %s", out)
	}

	volume := t.TempDir()
	for dir := volume; len(dir) > len(os.TempDir()); dir = filepath.Dir(dir) {
		os.Chmod(dir, 0o755)
	}
	if err := os.Chown(volume, 65532, 65532); err != nil {
		t.Fatal(err)
	}
	flags := []string{"--port", harness.FreePort(t), "--log-format", "json", "--appendonly", "yes"}
	c := i.container(t, 128<<20, volume, append(flags, "--dir", "/data")...)
	srv := c.start(t)
	status := c.of(t, "status")
	for _, line := range []string{
		`Uid:(\s65532){4}`, `Gid:(\s65532){4}`, `CapPrm:\s0+`, `CapEff:\s0+`, `CapBnd:\s0+`, `CapAmb:\s0+`, `NoNewPrivs:\s1`,
	} {
		if !regexp.MustCompile(`(?m)^` + line + `$`).MatchString(status) {
			t.Errorf("it does not run with %s:\n%s", line, status)
		}
	}
	if root := regexp.MustCompile(`(?m)^\S+ \S+ \S+ \S+ / ro[, ]`); !root.MatchString(c.of(t, "mountinfo")) {
		t.Errorf("its root can be written to:\n%s", c.of(t, "mountinfo"))
	}
	srv.Logs(`"maxmemory_from":"cgroup"`)
	healthy := func() bool {
		_, err := harness.TryTool(t, "", "runc", c.words("exec", append([]string{c.id}, i.config.Healthcheck.Test[1:]...)...)...)
		return err == nil
	}
	if !healthy() {
		t.Error("the health check fails")
	}
	client := harness.Dial(t, srv.Addr)
	client.Do("CL.THROTTLE", "kept", "5", "1", "86400")
	client.Do("CL.THROTTLE", "kept", "5", "1", "86400")
	flood(t, client)
	srv.Stop()
	if healthy() {
		t.Error("the health check passes when it has stopped")
	}

	again := i.container(t, 128<<20, volume, append(flags, "--dir", "/data")...).start(t)
	if got := harness.Dial(t, again.Addr).Throttle("kept", "5", "1", "86400", "0"); got[2] != 4 {
		t.Errorf("after a restart: %v", got)
	}

	bare := i.container(t, 128<<20, "", "--port", "0", "--appendonly", "yes")
	out, err = harness.TryTool(t, "", "runc", bare.words("run", "--bundle", bare.dir, bare.id)...)
	if err == nil || !strings.Contains(out, "read-only file system") {
		t.Errorf("files without a volume: %v, %s", err, out)
	}
}

// flood makes up keys until some are evicted, while one is used. The kernel would end a celld that takes more than the container has.
func flood(t *testing.T, c *harness.Conn) {
	t.Helper()
	for n := 0; ; {
		var calls strings.Builder
		for range 10_000 {
			n++
			fmt.Fprintf(&calls, "CL.THROTTLE made-up-key-%d 5 1 3600\r\n", n)
		}
		c.Send([]byte(calls.String() + "CL.THROTTLE kept 5 1 86400 0\r\n"))
		for range 10_001 {
			c.Reply()
		}
		if !strings.Contains(c.Do("INFO", "stats"), "\nevicted_keys:0\r\n") {
			return
		}
		if n > 5_000_000 {
			t.Fatalf("no key of %d was evicted", n)
		}
	}
}
