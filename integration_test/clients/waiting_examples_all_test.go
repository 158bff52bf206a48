//go:build all

package clients

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// languages are the languages of the examples for waiting and leases, each with what runs an example.
var languages = map[string]func(t *testing.T, example string) *exec.Cmd{
	"go": func(t *testing.T, example string) *exec.Cmd {
		return harness.Command(t, harness.Example(t, example))
	},
	"python": func(t *testing.T, example string) *exec.Cmd {
		return harness.Command(t, installedClient(t, "python/bin/python"), fmt.Sprintf("../../examples/%s/%[1]s.py", example))
	},
	"node": func(t *testing.T, example string) *exec.Cmd {
		cmd := harness.Command(t, celldtest.Need(t, "node"), fmt.Sprintf("../../examples/%s/%[1]s.js", example))
		cmd.Env = []string{"NODE_PATH=" + filepath.Dir(installedClient(t, "node_modules/ioredis"))}
		return cmd
	},
}

// run is an example that runs.
type run struct {
	*exec.Cmd
	out strings.Builder
}

// begin starts an example. It ends with the test, at the latest.
func begin(t *testing.T, language, example string, srv *harness.Server, args ...string) *run {
	t.Helper()
	r := &run{Cmd: languages[language](t, example)}
	r.Env = append(append(harness.CleanEnv(), "PYTHONDONTWRITEBYTECODE=1", "RATE_LIMITER=redis://"+srv.Addr), r.Env...)
	r.Args = append(r.Args, args...)
	r.Stdout, r.Stderr = &r.out, &r.out
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	return r
}

// end waits for it to end with this code.
func (r *run) end(t *testing.T, code int) string {
	t.Helper()
	err := r.Wait()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) || r.ProcessState.ExitCode() != code {
		t.Errorf("%v: %v\n%s", r.Args, err, r.out.String())
	}
	return r.out.String()
}

// awaitCall waits until the service tells that an example calls it.
func awaitCall(t *testing.T, called chan bool) {
	t.Helper()
	select {
	case <-called:
	case <-time.After(celldtest.Patience):
		t.Fatalf("not within %v: the example calls the service", celldtest.Patience)
	}
}

// serve is a service that the examples call, until the test ends.
func serve(t *testing.T, handler http.HandlerFunc) (url string) {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s.URL
}

// TestExampleCrawler runs three crawlers that ask one host.
func TestExampleCrawler(t *testing.T) {
	t.Parallel()
	srv := harness.Start(t)
	var mu sync.Mutex
	var came []time.Duration
	pages := map[string]int{}
	began := time.Now()
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		came = append(came, time.Since(began))
		pages[r.URL.Path]++
	})
	const each = 3
	var runs []*run
	for language := range languages {
		var args []string
		for i := range each {
			args = append(args, fmt.Sprintf("%s/%s/%d", url, language, i))
		}
		runs = append(runs, begin(t, language, "crawler", srv, args...))
	}
	for _, r := range runs {
		if out := r.end(t, 0); strings.Count(out, "200 "+url) != each {
			t.Errorf("%v says %q", r.Args, out)
		}
	}
	for i, at := range came {
		if want := time.Duration(i) * 500 * time.Millisecond; at < want {
			t.Errorf("call %d comes after %v, want %v: %v", i, at, want, came)
		}
	}
	if len(came) != each*len(languages) || len(pages) != len(came) {
		t.Errorf("pages: %v", pages)
	}
}

// TestExampleJobs runs three workers that work off jobs. The first job of each takes longer than its lease, so the worker renews it.
// Then the test kills three workers while they work.
func TestExampleJobs(t *testing.T) {
	t.Parallel()
	srv := harness.Start(t)
	c := harness.Dial(t, srv.Addr)
	var running, most, done atomic.Int64
	stuck := make(chan bool, len(languages))
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		now := running.Add(1)
		defer running.Add(-1)
		for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
		}
		switch r.URL.Path {
		case "/long":
			celldtest.Eventually(t, "all are built, and have begun", func() bool { return most.Load() == int64(len(languages)) })
			time.Sleep(11 * time.Second)
		case "/stuck":
			stuck <- true
			io.Copy(io.Discard, r.Body) // so that the server sees that the client has gone
			<-r.Context().Done()
		default:
			time.Sleep(100 * time.Millisecond)
		}
		done.Add(1)
		io.WriteString(w, "done")
	})
	var runs []*run
	for language := range languages {
		runs = append(runs, begin(t, language, "jobs", srv, url+"/long", url+"/a", url+"/b", url+"/c"))
	}
	for _, r := range runs {
		if out := r.end(t, 0); strings.Count(out, " done\n") != 4 {
			t.Errorf("%v says %q", r.Args, out)
		}
	}
	if most.Load() != 3 || done.Load() != int64(4*len(languages)) {
		t.Errorf("%d jobs ran at once, %d are done", most.Load(), done.Load())
	}
	free := func() int64 {
		reply, _ := c.Lease("jobs:reports", "3/10s,algo=conc", "PEEK")
		return reply.Remaining
	}
	if got := free(); got != 3 {
		t.Errorf("when all is done, %d places are free", got)
	}
	for language := range languages {
		r := begin(t, language, "jobs", srv, url+"/stuck")
		awaitCall(t, stuck)
		r.Process.Kill()
		r.Wait()
	}
	if got := free(); got == 3 {
		t.Error("who was killed has no place")
	}
	celldtest.Eventually(t, "the places of those that were killed are free", func() bool { return free() == 3 })
}

// number is a server that keeps a number. It refuses a write under a lock that another process has held since.
type number struct {
	mu      sync.Mutex
	n       int
	highest int64
	writes  int
}

func (s *number) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Method == http.MethodGet {
		fmt.Fprint(w, s.n)
		return
	}
	token, _ := strconv.ParseInt(r.Header.Get("Fencing-Token"), 10, 64)
	if token <= s.highest {
		w.WriteHeader(http.StatusConflict)
		return
	}
	body, _ := io.ReadAll(r.Body)
	s.n, _ = strconv.Atoi(string(body))
	s.highest = token
	s.writes++
}

// TestExampleLock runs three programs that add to a number. Then it stops each while it holds the lock, until another holds it.
func TestExampleLock(t *testing.T) {
	t.Parallel()
	srv := harness.Start(t)
	s := &number{}
	url := serve(t, s.ServeHTTP)
	const each = 8
	var runs []*run
	for language := range languages {
		runs = append(runs, begin(t, language, "lock", srv, url, strconv.Itoa(each)))
	}
	for _, r := range runs {
		r.end(t, 0)
	}
	if want := each * len(languages); s.n != want || s.writes != want {
		t.Errorf("the number is %d after %d writes, want %d", s.n, s.writes, want)
	}
	for language := range languages {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			srv, s := harness.Start(t), &number{}
			asked, goOn := make(chan bool, 9), make(chan bool, 1)
			url := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet {
					asked <- true
					select {
					case <-goOn:
					case <-r.Context().Done():
					}
				}
				s.ServeHTTP(w, r)
			})
			r := begin(t, language, "lock", srv, url, "1")
			awaitCall(t, asked)
			r.Process.Signal(syscall.SIGSTOP)
			reply, id := harness.Dial(t, srv.Addr).Lease("lock:number", "1/5s,algo=conc", "WAIT", "60000")
			if reply.Limited != 0 {
				t.Errorf("the lock does not end: %+v", reply)
			}
			s.mu.Lock()
			s.n, s.highest = 100, id
			s.mu.Unlock()
			goOn <- true
			r.Process.Signal(syscall.SIGCONT)
			if out := r.end(t, 1); !strings.Contains(out, "another has had the lock since") || s.n != 100 {
				t.Errorf("it says %q, and the number is %d", out, s.n)
			}
		})
	}
}

// TestExampleTokens sends requests to a model that uses 42 tokens for each, that fails, breaks off or is late, and whose callers die.
func TestExampleTokens(t *testing.T) {
	t.Parallel()
	const prompt, most, used, budget, breaksOff = "why?", 1004, 42, 100_000, -1
	for language := range languages {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			srv := harness.Start(t)
			c := harness.Dial(t, srv.Addr)
			left := func() int64 {
				reply, _ := c.Lease("llm:research", "@llm", "PEEK")
				return reply.Remaining
			}
			is := func(what string, want int64) {
				t.Helper()
				if got := left(); got != want {
					t.Errorf("%s: %d tokens are left, want %d", what, got, want)
				}
			}
			c.Do("CL.POLICY", "SET", "llm", "1000000/1d", fmt.Sprintf("%d/1d,algo=window,name=tokens", budget), "1000/2m,algo=conc")
			during, goOn := make(chan bool, 9), make(chan int, 1)
			url := serve(t, func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				during <- true
				select {
				case status := <-goOn:
					if status == breaksOff {
						panic(http.ErrAbortHandler)
					}
					w.WriteHeader(status)
					fmt.Fprintf(w, `{"usage": {"total_tokens": %d}}`, used)
				case <-r.Context().Done():
				}
			})
			ask := func(name string) *run {
				r := begin(t, language, "tokens", srv, url, name, prompt)
				awaitCall(t, during)
				return r
			}
			r := ask("one")
			is("while the model works", budget-most)
			goOn <- http.StatusOK
			if out := r.end(t, 0); out != fmt.Sprintf("used %d\n", used) {
				t.Errorf("it says %q", out)
			}
			is("afterwards", budget-used)

			r = ask("two")
			goOn <- http.StatusInternalServerError
			r.end(t, 1)
			is("after a failure", budget-used)

			gone := httptest.NewServer(nil)
			gone.Close()
			begin(t, language, "tokens", srv, gone.URL, "gone", prompt).end(t, 1)
			is("without a model", budget-used)

			r = ask("three")
			r.Process.Kill()
			r.Wait()
			is("its worker is dead", budget-used-most)
			r = ask("three")
			is("the same request again", budget-used-most)
			goOn <- http.StatusOK
			r.end(t, 0)
			is("the request is done", budget-2*used)

			r = ask("four")
			r.Process.Kill()
			r.Wait()
			_, id := c.Lease("llm:research", "@llm", "LEASE", "60000", "ID", "four")
			is("another worker is dead", budget-2*used-most)
			c.Play(harness.Step{fmt.Sprint("CL.RENEW llm:research ", id, " 1"), ":1"}) // instead of two minutes
			celldtest.Eventually(t, "what it took flows back", func() bool { return left() == budget-2*used })

			r = ask("late")
			_, id = c.Lease("llm:research", "@llm", "LEASE", "60000", "ID", "late")
			c.Play(harness.Step{fmt.Sprint("CL.RENEW llm:research ", id, " 1"), ":1"})
			celldtest.Eventually(t, "its lease has ended", func() bool { return left() == budget-2*used })
			goOn <- http.StatusOK
			r.end(t, 0)
			is("a request longer than its lease", budget-3*used)

			r = ask("cut")
			goOn <- breaksOff
			r.end(t, 1)
			is("an answer that broke off", budget-3*used-most)

			c.Do("CL.POLICY", "SET", "llm", "100/1d,algo=window,name=tokens")
			r = begin(t, language, "tokens", srv, url, "five", prompt)
			if out := r.end(t, 1); !strings.Contains(out, "over budget") {
				t.Errorf("it says %q", out)
			}
		})
	}
}

// TestExampleLogin tries wrong passwords until the account is blocked. A right one as the last forgives all, and then gets in again.
func TestExampleLogin(t *testing.T) {
	t.Parallel()
	page := celldtest.ReadFile(t, "../../docs/how-to/login.md")
	policy := regexp.MustCompile(`CL\.POLICY SET login \S+`).FindString(page)
	for language := range languages {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			srv := harness.Start(t)
			c := harness.Dial(t, srv.Addr)
			c.Do(strings.Fields(policy)...)
			tries := func(user, password, want string) {
				t.Helper()
				if out := begin(t, language, "login", srv, user, password).end(t, 0); !strings.HasPrefix(out, want) {
					t.Errorf("%s: it says %q, want %q", password, out, want)
				}
			}
			for left := range 4 {
				tries("ann", "guess", fmt.Sprintf("wrong; %d more\n", 4-left))
			}
			tries("ann", "secret", "welcome\n")
			for left := range 5 {
				tries("ann", "guess", fmt.Sprintf("wrong; %d more\n", 4-left))
			}
			for range 2 {
				tries("ann", "secret", "blocked; try again in 35")
			}
			tries("bob", "secret", "welcome\n")
			if peek := c.Take("login:ann", "@login", "PEEK"); peek.Limited != 1 || peek.RetryMS < 3_500_000 {
				t.Errorf("PEEK: %+v", peek)
			}
			c.Play(harness.Step{"CL.GIVE login:ann @login 1", ":1"})
			tries("ann", "secret", "welcome\n")
		})
	}
}

// TestRecipes holds the pages that name these programs to them: the limits and commands of a page's first block are in each of its
// programs.
func TestRecipes(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"login", "tokens", "crawler", "queue", "lock"} {
		page := celldtest.ReadFile(t, "../../docs/how-to/"+name+".md")
		_, block, _ := strings.Cut(page, "\n```")
		block, _, shown := strings.Cut(block, "```")
		words := regexp.MustCompile(`CL\.[A-Z]+|[0-9]+/[0-9a-z]+\S*|WAIT|LEASE|ID|OF|@\w+`).FindAllString(block, -1)
		if !shown || len(words) < 3 {
			t.Errorf("%s: the first block has %q", name, words)
		}
		programs := regexp.MustCompile(`\]\(\.\./\.\./(examples/\S+)\)`).FindAllStringSubmatch(page, -1)
		if len(programs) != len(languages) {
			t.Errorf("%s names %d programs, want %d", name, len(programs), len(languages))
		}
		for _, program := range programs {
			text := celldtest.ReadFile(t, "../../"+program[1])
			for _, word := range words {
				if !strings.Contains(text, word) {
					t.Errorf("%s has no %s", program[1], word)
				}
			}
		}
	}
}
