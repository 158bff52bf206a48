package envoy

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// reloaded is a celld whose configuration changes.
type reloaded struct {
	*served
	c ratelimit.RateLimitServiceClient
}

func startReloaded(t *testing.T, config string) *reloaded {
	t.Helper()
	s := startOn(t, harness.Spec{Flags: []string{"--envoy-config", config, "--envoy-bind", "127.0.0.1:0",
		"--envoy-metrics-bind", "127.0.0.1:0"}})
	return &reloaded{s, dial(t, s.grpc)}
}

// has waits until the limits are so: domain=limit, or domain=none.
func (r *reloaded) has(wants ...string) {
	r.T.Helper()
	celldtest.Eventually(r.T, strings.Join(wants, ", "), func() bool {
		for _, want := range wants {
			domain, limit, _ := strings.Cut(want, "=")
			if limitOf(r.c, domain) != limit {
				return false
			}
		}
		return true
	})
}

// loads are how many configurations were taken, and how many not.
func (r *reloaded) loads() string {
	r.T.Helper()
	_, _, page := harness.Get(r.Server, r.metrics)
	return metric(page, "ratelimit_service_config_load_success") + " good, " + metric(page, "ratelimit_service_config_load_error") + " bad"
}

// put makes a file as a whole: no look finds half of it.
func put(t *testing.T, text string, elem ...string) {
	t.Helper()
	path := filepath.Join(elem...)
	aside := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".new")
	celldtest.WriteFile(t, text, aside)
	move(t, aside, path)
}

// mkdir makes directories, one in the other.
func mkdir(t *testing.T, elem ...string) string {
	t.Helper()
	dir := filepath.Join(elem...)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// point makes a link, in place of another.
func point(t *testing.T, link, to string) {
	t.Helper()
	if err := os.Symlink(to, link+"_tmp"); err != nil {
		t.Fatal(err)
	}
	move(t, link+"_tmp", link)
}

func move(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

// TestFiles changes the files of a directory, adds some, and takes some away.
func TestFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put(t, of("a", 1), dir, "a.yaml")
	celldtest.WriteFile(t, "domain: [", dir, ".a.yaml.swp") // as an editor leaves it
	r := startReloaded(t, dir)
	r.has("a=1", "b=none")
	put(t, of("a", 2), dir, "a.yaml")
	r.has("a=2")
	put(t, of("b", 3), dir, "b.yml")
	r.has("a=2", "b=3")
	put(t, of("c", 4), mkdir(t, dir, "below", "it"), "any-name")
	r.has("a=2", "b=3", "c=4")
	aside := filepath.Join(t.TempDir(), "b.yml")
	move(t, filepath.Join(dir, "b.yml"), aside)
	r.has("a=2", "b=none", "c=4")
	move(t, aside, filepath.Join(dir, "again.yml"))
	r.has("a=2", "b=3", "c=4")
	if err := os.RemoveAll(filepath.Join(dir, "below")); err != nil {
		t.Fatal(err)
	}
	r.has("a=2", "b=3", "c=none")
	someLooks(t)
	if got := r.loads(); got != "7 good, 0 bad" {
		t.Error(got)
	}
}

// TestConfigMap changes files as Kubernetes does: they are links into ..data, which is a link itself, and is replaced.
func TestConfigMap(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	slow := false
	update := func(version string, files map[string]string) {
		t.Helper()
		began := time.Now()
		old, _ := os.Readlink(filepath.Join(dir, "..data"))
		for name, text := range files {
			put(t, text, mkdir(t, dir, version), name)
		}
		point(t, filepath.Join(dir, "..data"), version)
		for name := range files {
			point(t, filepath.Join(dir, name), filepath.Join("..data", name))
		}
		links, _ := filepath.Glob(filepath.Join(dir, "*.yaml"))
		for _, link := range links {
			if files[filepath.Base(link)] == "" {
				os.Remove(link)
			}
		}
		if old != "" {
			os.RemoveAll(filepath.Join(dir, old))
		}
		slow = slow || time.Since(began) > 1500*time.Millisecond // then two looks may have found a link that leads nowhere
	}
	update("..2026_01", map[string]string{"a.yaml": of("a", 1), "b.yaml": of("b", 1)})
	r := startReloaded(t, dir)
	r.has("a=1", "b=1", "c=none")
	update("..2026_02", map[string]string{"a.yaml": of("a", 2), "b.yaml": of("b", 1)})
	r.has("a=2", "b=1", "c=none")
	update("..2026_03", map[string]string{"a.yaml": of("a", 2), "c.yaml": of("c", 3)})
	r.has("a=2", "b=none", "c=3")
	update("..2026_04", map[string]string{"c.yaml": of("c", 4)})
	r.has("a=none", "b=none", "c=4")
	if got := r.loads(); got != "4 good, 0 bad" && !slow {
		t.Error(got)
	}
}

// TestLinkedDirectory replaces the directory as a whole, by a link above it: RUNTIME_ROOT is often one.
func TestLinkedDirectory(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for i := range 4 {
		put(t, of("a", i), mkdir(t, root, fmt.Sprintf("v%d", i), "ratelimit", "config"), "a.yaml")
	}
	current := filepath.Join(root, "current")
	point(t, current, "v1")
	r := startReloaded(t, filepath.Join(current, "ratelimit/config"))
	r.has("a=1")
	point(t, current, filepath.Join(root, "v2"))
	r.has("a=2")
	point(t, current, "v3")
	r.has("a=3")
	point(t, current, "nosuch")
	celldtest.Eventually(t, "it is counted", func() bool { return r.loads() == "3 good, 1 bad" })
	r.Logs(`"msg":"a file is refused, and what was read before stays","setting":"envoy-config"`, `"error":"stat `+current)
	r.has("a=3")
	point(t, current, "v3")
	celldtest.Eventually(t, "it is back", func() bool { return r.loads() == "4 good, 1 bad" })
}

// TestBadFiles: a set with mistakes changes nothing, the first is logged once, and the next good set is taken.
func TestBadFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put(t, of("a", 2), dir, "a.yaml")
	r := startReloaded(t, dir)
	for _, want := range []string{"1 left", "0 left"} {
		if got := told(ask(r.c, request("a", "client=ann"))); !strings.Contains(got, want) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	put(t, of("a", 9), dir, "a.yaml")
	put(t, "domain: b\ndescriptors: [{key: x, rate_limit: {unit: fortnight}}, {key: ''}, {key: y}, {key: y}]\n", dir, "b.yaml")
	put(t, "domain: a\nnosuch: 1\n", dir, "c.yaml")
	r.Logs("/b.yaml: b.x: unit 'fortnight': expected second, minute, hour, day, week, month or year", `"more_mistakes":3`)
	someLooks(t)
	if got := told(ask(r.c, request("a", "client=ann"))); got != overOf2 {
		t.Errorf("a bad set has changed the limit: %s", got)
	}
	if got := r.loads(); got != "1 good, 1 bad" {
		t.Error(got)
	}
	os.Remove(filepath.Join(dir, "c.yaml"))
	celldtest.Eventually(t, "a second bad one", func() bool { return r.loads() == "1 good, 2 bad" })
	celldtest.Eventually(t, "the log has the first mistake twice", func() bool {
		return strings.Count(r.Log.String(), "unit 'fortnight'") == 2
	})
	put(t, of("b", 5), dir, "b.yaml")
	r.has("a=9", "b=5")
	if got := told(ask(r.c, request("a", "client=ann"))); got != "OK / OK of 9 a YEAR, 5 left, ends" { // the calls before have counted
		t.Errorf("after a change of the limit: %s", got)
	}
	put(t, of("b", 6), dir, "c.yaml")
	r.Logs("/c.yaml: the domain 'b' stands twice")
	someLooks(t)
	r.has("a=9", "b=5")
	if got := r.loads(); got != "2 good, 3 bad" {
		t.Error(got)
	}
}

// someLooks waits until celld, which looks every 2 seconds, has looked at its files twice at least.
func someLooks(t *testing.T) {
	t.Helper()
	began := time.Now()
	celldtest.Eventually(t, "5 s have passed", func() bool { return time.Since(began) > 5*time.Second })
}

// TestMerge puts a domain together of several files.
func TestMerge(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put(t, "domain: a\n", dir, "1.yaml")
	put(t, of("a", 5), dir, "2.yaml")
	s := startOn(t, harness.Spec{Flags: []string{"--envoy-config", dir, "--envoy-bind", "127.0.0.1:0", "--envoy-merge-domains", "yes"}})
	if got := limitOf(dial(t, s.grpc), "a"); got != "5" {
		t.Error(got)
	}
}

// TestHalfWrittenFile: what a look finds half written is no mistake.
func TestHalfWrittenFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "a.yaml")
	celldtest.WriteFile(t, of("a", 1), file)
	r := startReloaded(t, file)
	f, err := os.OpenFile(file, os.O_WRONLY, 0) // and not anew each time: two looks might find it empty
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	began, last, stalled, n := time.Now(), time.Now(), false, 0
	celldtest.Eventually(t, "several looks have passed", func() bool {
		n++
		half := fmt.Sprintf("domain: a%08d\ndescriptors: [{key", n)
		if _, err := f.WriteAt([]byte(half), 0); err != nil || f.Truncate(int64(len(half))) != nil {
			t.Fatal(err)
		}
		stalled = stalled || time.Since(last) > 1500*time.Millisecond // then two looks may have found the same
		last = time.Now()
		return time.Since(began) > 5*time.Second
	})
	celldtest.WriteFile(t, of("a", 2), file)
	r.has("a=2")
	if got := r.loads(); got != "2 good, 0 bad" && !stalled {
		t.Error(got)
	}
}

// TestReload: SIGHUP takes files at once.
func TestReload(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put(t, of("a", 0), dir, "a.yaml")
	r := startReloaded(t, dir)
	for i := range 5 {
		put(t, of("a", i+1), dir, "a.yaml")
		said := r.reload()
		if got := limitOf(r.c, "a"); got != fmt.Sprint(i+1) {
			t.Fatalf("the limit is %s\n%s", got, said)
		}
	}
	r.Logs(`"msg":"a file is taken","setting":"envoy-config","file":"` + dir + `","domains":1,"limits":1}`)
	if said := r.reload(); !strings.Contains(said, `"unchanged":"envoy-config"`) {
		t.Errorf("nothing has changed:\n%s", said)
	}
	put(t, "domain: a\nx: 1\nz: 2\n", dir, "a.yaml")
	said := r.reload()
	if strings.Count(said, "unknown key") != 1 || !strings.Contains(said, `"more_mistakes":1`) ||
		!strings.Contains(said, `"failed":"envoy-config"`) || r.loads() != "6 good, 1 bad" {
		t.Errorf("%s:\n%s", r.loads(), said)
	}
	r.has("a=5")
}

// TestCheck: --check finds the mistakes.
func TestCheck(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put(t, of("a", 1), dir, "a.yaml")
	args := []string{"--check", "--port", "0", "--envoy-bind", "127.0.0.1:0", "--envoy-config", dir}
	stdout, stderr, code := harness.RunToEnd(t, nil, args...)
	if code != 0 || !strings.Contains(stdout, "ok: ") || stderr != "" {
		t.Errorf("code %d\n%s%s", code, stdout, stderr)
	}
	put(t, "domain: b\nx: 1\nz: 1\n", dir, "b.yaml")
	_, stderr, code = harness.RunToEnd(t, nil, args...)
	for _, want := range []string{"celld: " + dir + "/b.yaml: unknown key 'x'\n", "celld: " + dir + "/b.yaml: unknown key 'z'\n"} {
		if code != 2 || !strings.Contains(stderr, want) || strings.Count(stderr, "\n") != 2 {
			t.Errorf("code %d: %s\nwant %s", code, stderr, want)
		}
	}
}
