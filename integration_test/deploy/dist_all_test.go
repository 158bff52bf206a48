//go:build all

package deploy

import (
	"crypto/x509"
	"debug/macho"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// built is what make dist has made of the last commit, in a clone of its own in builtIn.
var (
	builtIn string
	built   = sync.OnceValues(func() (dir string, err error) {
		if builtIn, err = os.MkdirTemp("", "celld-dist"); err != nil {
			return "", err
		}
		return dist("../..", builtIn)
	})
)

// TestMain removes what was built.
func TestMain(m *testing.M) {
	code := m.Run()
	if builtIn != "" {
		os.RemoveAll(builtIn)
	}
	os.Exit(code)
}

// dist clones a repository into a folder, and builds a release there.
func dist(repository, dir string) (string, error) {
	clone := filepath.Join(dir, "celld")
	for _, command := range [][]string{{"git", "clone", "--quiet", repository, clone}, {clone + "/packaging/dist.sh"}} {
		cmd := exec.Command(command[0], command[1:]...)
		cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "GOFLAGS=") })
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("%q: %w\n%s", command, err, out)
		}
	}
	return filepath.Join(clone, "dist"), nil
}

// release returns the folder of the release, and its version.
func release(t *testing.T) (dir, version string) {
	t.Helper()
	if _, err := os.Stat("../../.git"); err != nil {
		celldtest.Missing(t, "no git checkout, so nothing can be released")
	}
	dir, err := built()
	if err != nil {
		t.Fatal(err)
	}
	archives, err := filepath.Glob(dir + "/celld_*_linux_amd64.tar.gz")
	if err != nil || len(archives) != 1 {
		t.Fatalf("%q, %v", archives, err)
	}
	return dir, strings.Split(filepath.Base(archives[0]), "_")[1]
}

// Two builds in two folders are equal.
func TestDistIsReproducible(t *testing.T) {
	t.Parallel()
	one, _ := release(t)
	other, err := dist(filepath.Dir(one), t.TempDir()) // of the same commit
	if err != nil {
		t.Fatal(err)
	}
	sums := celldtest.ReadFile(t, one, "SHA256SUMS")
	if again := celldtest.ReadFile(t, other, "SHA256SUMS"); again != sums {
		t.Errorf("built twice:\n%s\n%s", sums, again)
	}
	check := harness.Command(t, "sha256sum", "--check", "--quiet", "SHA256SUMS")
	check.Dir = one
	if out, err := check.CombinedOutput(); err != nil || strings.Count(sums, "\n") != 14 {
		t.Errorf("%v, %s\n%s", err, out, sums)
	}
}

// deadLinks are those links of pages below a folder that lead to no file.
func deadLinks(t *testing.T, root string) (dead []string) {
	t.Helper()
	followed := 0
	err := filepath.WalkDir(root, func(page string, _ os.DirEntry, err error) error {
		if err != nil || filepath.Ext(page) != ".md" {
			return err
		}
		for _, link := range regexp.MustCompile(`\]\(([^)#:]+)[)#]`).FindAllStringSubmatch(celldtest.ReadFile(t, page), -1) {
			followed++
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), link[1])); err != nil {
				dead = append(dead, strings.TrimPrefix(page, root)+": "+link[1])
			}
		}
		return nil
	})
	if err != nil || followed < 100 {
		t.Errorf("%s: %d links were followed, %v", root, followed, err)
	}
	return dead
}

// Each binary starts on its system, that for arm64 in an emulation, and knows its version and commit. Those for darwin only look right.
func TestBinaries(t *testing.T) {
	t.Parallel()
	dir, version := release(t)
	commit := strings.TrimSpace(harness.Tool(t, "git", "-C", dir, "rev-parse", "HEAD"))
	for _, system := range []string{"linux_amd64", "linux_arm64", "darwin_amd64", "darwin_arm64"} {
		name := "celld_" + version + "_" + system
		root := t.TempDir()
		harness.Tool(t, "tar", "xzf", filepath.Join(dir, name+".tar.gz"), "-C", root)
		binary := filepath.Join(root, name, "celld")
		for _, file := range []string{"LICENSE", "README.md", "man/celld.1", "docs/how-to/login.md", "completions/_celld",
			"systemd/celld.service", "monitoring/celld-rules.yaml"} {
			if _, err := os.Stat(filepath.Join(root, name, file)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if dead := deadLinks(t, filepath.Join(root, name)); len(dead) > 0 {
			t.Errorf("%s: its pages lead to what is not there: %q", name, dead)
		}
		var bill struct {
			Metadata   struct{ Component struct{ Version string } }
			Components []struct{ Name string }
		}
		text := celldtest.ReadFile(t, dir, name+".cdx.json")
		if err := json.Unmarshal([]byte(text), &bill); err != nil || bill.Metadata.Component.Version != "v"+version ||
			!strings.Contains(text, "pkg:golang/github.com/tidwall/redcon@v") || len(bill.Components) < 8 {
			t.Errorf("%s: %v, %+v", name, err, bill)
		}
		if strings.HasPrefix(system, "darwin") {
			file, err := macho.Open(binary)
			want := map[string]macho.Cpu{"darwin_amd64": macho.CpuAmd64, "darwin_arm64": macho.CpuArm64}[system]
			if err != nil || file.Cpu != want {
				t.Errorf("%s: %v, %+v", name, err, file)
			}
			continue
		}
		var wrap []string
		if system == "linux_arm64" {
			wrap = []string{celldtest.Need(t, "qemu-aarch64-static")}
		}
		words := append(slices.Clone(wrap), binary, "version", "-v")
		about := harness.Tool(t, words[0], words[1:]...)
		if !strings.HasPrefix(about, "celld "+version+" (") || !strings.Contains(about, "vcs.revision "+commit) ||
			!strings.Contains(about, "vcs.modified false") {
			t.Errorf("%s: %s", name, about)
		}
		srv := harness.Spec{Binary: binary, Wrap: wrap}.Start(t)
		if got := harness.Dial(t, srv.Addr).Throttle("k", "15", "30", "60", "1"); got != [5]int64{0, 16, 15, -1, 2} {
			t.Errorf("%s: CL.THROTTLE: %v", name, got)
		}
		srv.Stop()
	}
}

// The package for Debian goes onto a fresh system, keeps limits and settings over an upgrade, and leaves nothing when it is purged.
func TestDeb(t *testing.T) {
	t.Parallel()
	harness.NeedRoot(t)
	dir, version := release(t)
	fresh, err := filepath.Abs("../../.cache/debian")
	if _, missing := os.Stat(fresh + "/.done"); err != nil || missing != nil {
		celldtest.Missing(t, "no fresh Debian: make .cache/debian/.done")
	}
	deb := filepath.Join(dir, "celld_"+version+"_amd64.deb")
	if out, err := harness.Command(t, "lintian", "--fail-on", "error", "--allow-root", deb).CombinedOutput(); err != nil {
		t.Errorf("lintian: %v\n%s", err, out)
	}
	unpacked := t.TempDir()
	harness.Tool(t, "dpkg-deb", "-x", deb, unpacked)
	if dead := deadLinks(t, unpacked+"/usr/share/doc/celld"); len(dead) > 0 {
		t.Errorf("the package's pages lead to what is not there: %q", dead)
	}
	root := filepath.Join(t.TempDir(), "root")
	harness.Tool(t, "cp", "-a", fresh, root)
	for dir := root; len(dir) > len(os.TempDir()); dir = filepath.Dir(dir) {
		os.Chmod(dir, 0o755)
	}
	in := func(words ...string) string {
		t.Helper()
		return harness.Tool(t, "chroot", append([]string{root}, words...)...)
	}
	install := func(deb string) {
		t.Helper()
		copyFile(t, deb, root+"/celld.deb")
		in("dpkg", "--install", "/celld.deb")
	}
	install(deb)
	user := strings.Split(in("getent", "passwd", "celld"), ":")
	var uid, gid uint32
	fmt.Sscan(user[2], &uid)
	fmt.Sscan(user[3], &gid)
	if group := in("stat", "-c", "%a %U:%G", "/etc/celld/env"); group != "640 root:celld\n" {
		t.Errorf("/etc/celld/env is %s", group)
	}
	if unit := celldtest.ReadFile(t, root, "usr/lib/systemd/system/celld.service"); !strings.Contains(unit, "\nUser=celld\n") ||
		!strings.Contains(unit, "\nExecStart=/usr/bin/celld ") || strings.Contains(unit, "DynamicUser") {
		t.Errorf("the unit is\n%s", unit)
	}
	if err := os.Mkdir(root+"/var/lib/celld", 0o700); err != nil { // as systemd does for StateDirectory
		t.Fatal(err)
	}
	if err := os.Chown(root+"/var/lib/celld", int(uid), int(gid)); err != nil {
		t.Fatal(err)
	}
	run := func(taken string) {
		t.Helper()
		jail := &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: uid, Gid: gid}}
		flags := []string{"--dir", "/var/lib/celld", "--appendonly", "yes"}
		srv := harness.Spec{Binary: "/usr/bin/celld", Sys: jail, Dir: "/", Flags: flags}.Start(t)
		if got := harness.Dial(t, srv.Addr).Throttle("kept", "5", "1", "86400"); fmt.Sprint(got[2]) != taken {
			t.Errorf("%v, want %s left", got, taken)
		}
		srv.Stop()
	}
	run("5")
	settings := root + "/etc/celld/env"
	celldtest.WriteFile(t, celldtest.ReadFile(t, settings)+"CELLD_LOGLEVEL=verbose\n", settings)

	next := t.TempDir()
	harness.Tool(t, "dpkg-deb", "-R", deb, next+"/tree")
	control := celldtest.ReadFile(t, next, "tree/DEBIAN/control")
	celldtest.WriteFile(t, regexp.MustCompile(`(?m)^Version: .*`).ReplaceAllString(control, "Version: 99.0"), next, "tree/DEBIAN/control")
	harness.Tool(t, "dpkg-deb", "-b", next+"/tree", next+"/next.deb")
	install(next + "/next.deb")
	if !strings.Contains(celldtest.ReadFile(t, settings), "\nCELLD_LOGLEVEL=verbose\n") {
		t.Error("an upgrade loses settings")
	}
	run("4")

	in("dpkg", "--remove", "celld")
	if _, err := os.Stat(settings); err != nil {
		t.Errorf("removed, not purged: %v", err)
	}
	in("dpkg", "--purge", "celld")
	for _, path := range []string{"etc/celld", "var/lib/celld", "usr/bin/celld", "usr/share/man/man1/celld.1.gz"} {
		if _, err := os.Lstat(filepath.Join(root, path)); err == nil {
			t.Errorf("purged, and there is /%s", path)
		}
	}
	if out, err := harness.TryTool(t, "", "chroot", root, "getent", "passwd", "celld"); err == nil {
		t.Errorf("purged, and there is the user %s", out)
	}
}

// The package for Fedora and its kin has the same files, and goes into an empty root.
func TestRPM(t *testing.T) {
	t.Parallel()
	harness.NeedRoot(t)
	dir, version := release(t)
	for _, arch := range []string{"amd64", "arm64"} {
		root := t.TempDir()
		harness.Tool(t, "rpm", "--root", root, "--initdb")
		harness.Tool(t, "rpm", "--root", root, "--install", "--nodeps", "--noscripts", "--ignorearch",
			filepath.Join(dir, "celld_"+version+"_"+arch+".rpm"))
		for _, path := range []string{"usr/bin/celld", "etc/celld/env", "usr/lib/systemd/system/celld.service",
			"usr/lib/sysusers.d/celld.conf", "usr/share/man/man7/celld-commands.7.gz", "usr/share/zsh/site-functions/_celld"} {
			if _, err := os.Stat(filepath.Join(root, path)); err != nil {
				t.Error(err)
			}
		}
		if arch == "amd64" {
			if out := harness.Tool(t, root+"/usr/bin/celld", "version"); !strings.HasPrefix(out, "celld "+version+" (") {
				t.Errorf("celld version: %s", out)
			}
		}
	}
}

// The image of the release is that of the Dockerfile, for both architectures, with labels. It runs without a right, and trusts what public
// authorities vouch for.
func TestReleasedImage(t *testing.T) {
	t.Parallel()
	harness.NeedRoot(t)
	dir, version := release(t)
	archive := "oci-archive:" + filepath.Join(dir, "celld_"+version+"_image.tar")
	store := t.TempDir()
	buildah := func(args ...string) string {
		t.Helper()
		return harness.Tool(t, "buildah",
			append([]string{"--root", store + "/store", "--runroot", store + "/run", "--storage-driver", "vfs"}, args...)...)
	}
	for _, arch := range []string{"arm64", "amd64"} {
		var about struct {
			OCIv1 struct {
				Architecture string
				Config       struct {
					User       string
					Entrypoint []string
					Labels     map[string]string
				}
			}
		}
		lines := strings.Fields(buildah("from", "--arch", arch, archive)) // its progress, and then the name
		name := lines[len(lines)-1]
		if err := json.Unmarshal([]byte(buildah("inspect", name)), &about); err != nil {
			t.Fatal(err)
		}
		c := about.OCIv1
		if c.Architecture != arch || c.Config.User != "65532:65532" || !slices.Equal(c.Config.Entrypoint, []string{"/celld"}) ||
			c.Config.Labels["org.opencontainers.image.version"] != version ||
			len(c.Config.Labels["org.opencontainers.image.revision"]) != 40 {
			t.Errorf("%s: %+v", arch, c)
		}
		if arch != "amd64" {
			continue
		}
		var i image
		i.root = strings.TrimSpace(buildah("mount", name))
		i.config.User, i.config.Entrypoint = c.Config.User, c.Config.Entrypoint
		i.config.Healthcheck.Test = []string{"CMD", "/celld", "ping"}
		trusted := celldtest.ReadFile(t, i.root, authorities)
		if n := strings.Count(trusted, "BEGIN CERTIFICATE"); n < 100 {
			t.Errorf("the image trusts %d authorities", n)
		}
		if info, err := os.Stat(i.root + "/data"); err != nil || info.Sys().(*syscall.Stat_t).Uid != 65532 {
			t.Errorf("/data: %v", err)
		}
		if target, err := os.Readlink(i.root + "/bin/ratelimit"); target != "/celld" {
			t.Errorf("/bin/ratelimit is a link to %q, %v", target, err)
		}
		// An authority of this test stands for a public one.
		own := celldtest.NewAuthority(t)
		celldtest.WriteFile(t, trusted+celldtest.ReadFile(t, own.File), i.root, authorities)
		i.runs(t, own)
	}
}

// runs starts the image in a container, on an engine whose certificate an authority vouches for.
func (i image) runs(t *testing.T, authority *celldtest.Authority) {
	t.Helper()
	cert, key := authority.Sign("engine", &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	port := harness.FreePort(t)
	redis := exec.Command(celldtest.Need(t, "redis-server"), "--port", "0", "--tls-port", port, "--tls-cert-file", cert,
		"--tls-key-file", key, "--tls-ca-cert-file", authority.File, "--tls-auth-clients", "no", "--save", "", "--dir", t.TempDir())
	if err := redis.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { redis.Process.Kill(); redis.Wait() })
	celldtest.Eventually(t, "the engine listens", func() bool {
		conn, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	c := i.container(t, 128<<20, "", "--port", harness.FreePort(t), "--log-format", "json", "--store", "rediss://127.0.0.1:"+port,
		"--store-timeout", "20s")
	srv := c.start(t)
	if status := c.of(t, "status"); !regexp.MustCompile(`(?m)^CapEff:\s0+$`).MatchString(status) {
		t.Errorf("it has capabilities:\n%s", status)
	}
	asks := harness.Dial(t, srv.Addr)
	celldtest.Eventually(t, "celld has connected to its engine", func() bool {
		return !strings.HasPrefix(asks.Do("CL.THROTTLE", "k", "15", "30", "60", "0"), "-STOREDOWN")
	})
	if got := asks.Throttle("k", "15", "30", "60", "1"); got != [5]int64{0, 16, 15, -1, 2} {
		t.Errorf("CL.THROTTLE: %v", got)
	}
	words := c.words("exec", append([]string{c.id}, i.config.Healthcheck.Test[1:]...)...)
	if out, err := harness.TryTool(t, "", "runc", words...); err != nil {
		t.Errorf("the health check fails: %v, %s", err, out)
	}
}
