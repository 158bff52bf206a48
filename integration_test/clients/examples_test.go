package clients

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// example is a service in examples/.
type example struct {
	dir    string
	copied bool // what builds it writes into the folder that it is called in
	// run is the command that the file's first lines tell its reader, but that what it downloads is in .cache/.
	run func(t *testing.T, dir string) *exec.Cmd
}

var examples = []example{
	{"go", false, func(t *testing.T, _ string) *exec.Cmd { return harness.Command(t, harness.Example(t, "go")) }},
	{"python", false, func(t *testing.T, dir string) *exec.Cmd {
		return harness.Command(t, installedClient(t, "python/bin/python"), "service.py")
	}},
	{"node-ioredis", false, nodeExample("ioredis")},
	{"node-redis", false, nodeExample("redis")},
}

func nodeExample(module string) func(t *testing.T, dir string) *exec.Cmd {
	return func(t *testing.T, dir string) *exec.Cmd {
		cmd := harness.Command(t, celldtest.Need(t, "node"), "service.js")
		cmd.Env = []string{"NODE_PATH=" + filepath.Dir(installedClient(t, "node_modules/"+module))}
		return cmd
	}
}

// TestExamples runs each service without a limiter, with one, with one that hangs, with one that has ended and with one
// that is back, and asks it as its users do. They mostly wait, so all run at once, however many tests may.
func TestExamples(t *testing.T) { runExamples(t, examples) }

func runExamples(t *testing.T, examples []example) {
	t.Parallel()
	var all sync.WaitGroup
	defer all.Wait()
	for _, e := range examples {
		all.Go(func() { t.Run(e.dir, e.test) })
	}
}

func (e example) test(t *testing.T) {
	dir, err := filepath.Abs(filepath.Join("../../examples", e.dir))
	if err != nil {
		t.Fatal(err)
	}
	if e.copied {
		copied := harness.CachePath(t, "examples/"+e.dir)
		if err := os.RemoveAll(copied); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		dir = copied
	}
	port := harness.FreePort(t)
	cmd := e.run(t, dir)
	cmd.Dir = dir
	cmd.Env = append(append(harness.CleanEnv(), "PYTHONDONTWRITEBYTECODE=1", "LISTEN=127.0.0.1:0",
		"RATE_LIMITER=redis://:sesame@127.0.0.1:"+port), cmd.Env...)
	s := startService(t, cmd)

	s.withoutLimiter(40)
	limiter := harness.Start(t, "--port", port, "--requirepass", "sesame")
	s.limits(limiter)
	limiter.Cmd.Process.Signal(syscall.SIGSTOP)
	defer limiter.Cmd.Process.Signal(syscall.SIGCONT) // for its end, if the test ends here
	s.withoutLimiter(4)                               // each waits until it has lost patience
	limiter.Cmd.Process.Signal(syscall.SIGCONT)
	s.back()
	limiter.Cmd.Process.Signal(syscall.SIGTERM)
	limiter.Wait(0)
	s.withoutLimiter(40)
	s.limits(harness.Start(t, "--port", port, "--requirepass", "sesame"))
}

// service is an example that runs.
type service struct {
	t   *testing.T
	url string
	log *celldtest.LogBuffer
}

var listening = regexp.MustCompile(`listening on (http://127\.0\.0\.1:\d+)/`)

// startService runs a service until the test ends.
func startService(t *testing.T, cmd *exec.Cmd) *service {
	t.Helper()
	s := &service{t: t, log: &celldtest.LogBuffer{}}
	cmd.Stdout, cmd.Stderr = s.log, s.log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a build tool may be a parent of it
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan struct{})
	go func() { cmd.Wait(); close(exited) }()
	t.Cleanup(func() {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		<-exited
		if t.Failed() {
			t.Logf("its log:\n%s", s.log)
		}
	})
	for s.url == "" {
		if m := listening.FindStringSubmatch(s.log.String()); m != nil {
			s.url = m[1]
			break
		}
		select {
		case <-exited:
			t.Fatalf("%v ended: %v\n%s", cmd.Args, cmd.ProcessState, s.log)
		case <-time.After(20 * time.Millisecond): // until programTime: it may download and compile a hundred packages first
		}
	}
	return s
}

func (s *service) get(path string) (status int, header http.Header, body string) {
	s.t.Helper()
	client := http.Client{Timeout: harness.ReplyTimeout}
	response, err := client.Get(s.url + path)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return response.StatusCode, response.Header, string(text)
}

// lines is how often it has told that its limiter has gone or come. It is odd while the service knows none.
func (s *service) lines() int { return strings.Count(s.log.String(), "rate limiter: ") }

// withoutLimiter checks that the service, without a limiter, serves everybody, lets nobody log in, answers soon, and logs no line for
// each call.
func (s *service) withoutLimiter(calls int) {
	s.t.Helper()
	celldtest.Eventually(s.t, "it notices that it has no limiter", func() bool {
		_, header, _ := s.get("/")
		return header.Get("RateLimit") == ""
	})
	celldtest.Eventually(s.t, "it logs that it has no limiter", func() bool { return s.lines()%2 == 1 })
	lines, soonest := strings.Count(s.log.String(), "\n"), harness.ReplyTimeout
	for range calls / 2 {
		began := time.Now()
		if status, header, body := s.get("/"); status != 200 || body != "hello\n" || header.Get("RateLimit") != "" {
			s.t.Errorf("without a limiter: %d %v %q", status, header, body)
		}
		soonest = min(soonest, time.Since(began))
		if status, _, body := s.get("/login"); status != 503 || body != "try again later\n" {
			s.t.Errorf("without a limiter, a login: %d %q", status, body)
		}
	}
	if lines = strings.Count(s.log.String(), "\n") - lines; lines > calls/2 { // a client may log that it connects
		s.t.Errorf("%d lines in the log, of %d calls without a limiter:\n%s", lines, calls, s.log)
	}
	if soonest > 3*time.Second { // it waits for half a second
		s.t.Errorf("without a limiter, it answers after %v", soonest)
	}
}

// back sees the limiter asked again.
func (s *service) back() {
	s.t.Helper()
	celldtest.Eventually(s.t, "it asks the limiter", func() bool {
		_, header, _ := s.get("/")
		return header.Get("RateLimit-Policy") == `"hello";q=10;w=60`
	})
	celldtest.Eventually(s.t, "it logs that the limiter is back", func() bool { return s.lines()%2 == 0 })
}

// limits uses both limits up. On a loaded machine the service may answer without its limiter: then limits asks again.
func (s *service) limits(limiter *harness.Server) {
	s.t.Helper()
	s.back()
	s.usedUp("/", "hello\n", `"hello";q=10;w=60`)
	s.usedUp("/login", "welcome\n", `"login";q=5;w=60`)

	c := harness.Dial(s.t, limiter.Addr)
	c.Do("AUTH", "sesame")
	celldtest.Eventually(s.t, "Retry-After is what CL.TAKE says, in whole seconds and rounded up", func() bool {
		before := c.Take("ip:127.0.0.1", "10/1m", "PEEK").RetryMS
		status, header, _ := s.get("/")
		after := c.Take("ip:127.0.0.1", "10/1m", "PEEK").RetryMS
		if status != 429 || after < 0 || before < after { // one has flowed back meanwhile
			return false
		}
		seconds := celldtest.IntReply(":" + header.Get("Retry-After") + "\r\n")
		if seconds < (after+999)/1000 || seconds > (before+999)/1000 {
			s.t.Fatalf("Retry-After: %d, and CL.TAKE said %d ms before, %d ms after", seconds, before, after)
		}
		return true
	})
	c.Do("CL.RULE", "ADD", "DENY", "ip:127.0.0.1")
	celldtest.Eventually(s.t, "who is denied by a rule is not told to come again", func() bool {
		status, header, _ := s.get("/")
		return status == 429 && header.Values("Retry-After") == nil
	})
	c.Do("CL.RULE", "DEL", "DENY", "ip:127.0.0.1")
}

// state is what remains, and when the limit is full again.
var state = regexp.MustCompile(`^"(?:hello|login)";r=(\d+);t=([1-9]|[1-5]\d|60)$`)

// usedUp sees the headers of each answer, as celld's own checks have them.
func (s *service) usedUp(path, allowed, policy string) {
	s.t.Helper()
	remaining := "" // of the last call that was allowed
	celldtest.Eventually(s.t, path+" is limited", func() bool {
		status, header, body := s.get(path)
		retryAfter, said, left := header.Get("Retry-After"), header.Get("RateLimit") != "", ""
		if said {
			parts := state.FindStringSubmatch(header.Get("RateLimit"))
			if parts == nil || header.Get("RateLimit-Policy") != policy {
				s.t.Fatalf("%s: %v", path, header)
			}
			left = parts[1]
		}
		switch {
		case status == 200 && said && body == allowed && retryAfter == "":
			remaining = left
		case status == 429 && said && body == "too many requests\n" && left == "0" &&
			regexp.MustCompile(`^([1-9]|1[012])$`).MatchString(retryAfter):
			return true
		case said:
			s.t.Fatalf("%s: %d %v %q", path, status, header, body)
		}
		return false
	})
	if path != "/" && remaining != "0" {
		s.t.Errorf("%s: %q remained of the last call that was allowed", path, remaining)
	}
}

// TestExampleVersions holds what the examples depend on to what `make clients` installs and go.mod of these tests says.
func TestExampleVersions(t *testing.T) {
	t.Parallel()
	read := func(path string) string { return celldtest.ReadFile(t, path) }
	if a, b := read("../../examples/python/requirements.txt"), read("testdata/requirements.txt"); a != b {
		t.Errorf("requirements.txt: %q here, %q there", a, b)
	}
	goRedis := regexp.MustCompile(`github\.com/redis/go-redis/v9 \S+`)
	if a, b := goRedis.FindString(read("../../examples/go.mod")), goRedis.FindString(read("../go.mod")); a != b {
		t.Errorf("go.mod: %q here, %q there", a, b)
	}
	dependencies := func(path string) map[string]string {
		var file struct{ Dependencies map[string]string }
		if err := json.Unmarshal([]byte(read(path)), &file); err != nil {
			t.Fatal(err)
		}
		return file.Dependencies
	}
	all := dependencies("testdata/package.json")
	for _, module := range []string{"ioredis", "redis"} {
		dir := "node-redis"
		if module == "ioredis" {
			dir = "node-ioredis"
		}
		if got := dependencies("../../examples/" + dir + "/package.json"); len(got) != 1 || got[module] != all[module] {
			t.Errorf("%s: %v here, %v there", dir, got, all)
		}
	}
}
