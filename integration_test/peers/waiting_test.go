package peers

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"celld/integration_test/harness"
)

// Limiters whose callers wait are asked by as many callers as celld is. What both must do is a timetable: it says when calls
// pass, since the limiter was made. No call may pass before its moment, on whatever machine. That one passes soon after it is
// tried again where the machine stood still.

// answer is what a caller got, and when, since its limiter was made: when the question left, and when the answer came.
type answer struct {
	passed     bool
	left, came time.Duration
}

// ask is a call that may wait.
func ask(made time.Time, call func() bool) (a answer) {
	a.left = time.Since(made)
	a.passed = call()
	a.came = time.Since(made)
	return a
}

// atOnce asks as n callers at the same time.
func atOnce(made time.Time, n int, call func(caller int) bool) []answer {
	answers := make([]answer, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { answers[i] = ask(made, func() bool { return call(i) }) })
	}
	all.Wait()
	return answers
}

// inTurn asks n times as one caller.
func inTurn(made time.Time, n int, call func(i int) bool) (answers []answer) {
	for i := range n {
		answers = append(answers, ask(made, func() bool { return call(i) }))
	}
	return answers
}

// timetable is when calls pass, in their order. All others are refused.
type timetable []time.Duration

// every is n moments that are apart by so much.
func every(apart time.Duration, n int) (w timetable) {
	for i := range n {
		w = append(w, time.Duration(i)*apart)
	}
	return w
}

// engineClock is how much less than d passes here at least while d passes on an engine: clocks that NTP slews go apart by 1 ms in a second.
func engineClock(d time.Duration) time.Duration {
	if os.Getenv(harness.StoreVariable) == "" {
		return 0
	}
	return d / 1000
}

// differs says what is not as in the timetable, or "". early is how coarse the clock is by which they pass.
func (w timetable) differs(t *testing.T, who string, early time.Duration, answers []answer) string {
	t.Helper()
	passed := slices.DeleteFunc(slices.Clone(answers), func(a answer) bool { return !a.passed })
	slices.SortFunc(passed, func(a, b answer) int { return int(a.came - b.came) })
	first := slices.MinFunc(answers, func(a, b answer) int { return int(a.left - b.left) }).left
	for i, a := range passed {
		switch {
		case i >= len(w):
			return fmt.Sprintf("%s lets %d of %d pass, want %d: %+v", who, len(passed), len(answers), len(w), answers)
		case a.came < w[i]-early-engineClock(w[i]):
			t.Errorf("%s lets call %d pass after %v, want %v", who, i+1, a.came, w[i])
		case a.came > first+w[i]+peerTimes:
			return fmt.Sprintf("%s lets call %d pass only after %v, want %v: %+v", who, i+1, a.came, w[i], answers)
		}
	}
	if len(passed) < len(w) {
		return fmt.Sprintf("%s lets %d of %d pass, want %d: %+v", who, len(passed), len(answers), len(w), answers)
	}
	for _, a := range answers {
		if !a.passed && a.came-a.left > peerTimes {
			return fmt.Sprintf("%s refuses only after %v", who, a.came-a.left)
		}
	}
	return ""
}

// callers are connections, one a caller.
func callers(t *testing.T, addr string, n int) (conns []*harness.Conn) {
	for range n {
		conns = append(conns, harness.Dial(t, addr))
	}
	return conns
}

// takes is a call of CL.TAKE, and whether it passed. Callers are goroutines, and so end no test.
func takes(c *harness.Conn, args ...string) bool {
	raw, err := c.TryDo(append([]string{"CL.TAKE"}, args...))
	passed := strings.HasPrefix(raw, "*7\r\n:0\r\n")
	if err != nil || !passed && !strings.HasPrefix(raw, "*7\r\n:1\r\n") {
		c.T.Errorf("CL.TAKE %q: %q, %v", args, raw, err)
	}
	return passed
}

// program is one that runs limiters. It is told a worker's name and a call, a line each, and answers with the name and what
// came of the call. The calls of a worker run one after another.
type program struct {
	t       *testing.T
	name    string
	in      io.Writer
	mu      sync.Mutex
	answers map[string]chan string
	ended   chan struct{} // closed when it has
}

// startProgram runs it, a harness.Command, until the test ends.
func startProgram(t *testing.T, name string, cmd *exec.Cmd) *program {
	t.Helper()
	p := &program{t: t, name: name, answers: map[string]chan string{}, ended: make(chan struct{})}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.in = in
	var errors strings.Builder
	cmd.Stderr = &errors
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			worker, text, _ := strings.Cut(lines.Text(), " ")
			if _, err := strconv.Atoi(worker); err == nil { // else it is what the program says by itself
				p.of(worker) <- text
			}
		}
	}()
	t.Cleanup(func() {
		<-p.ended
		if _ = cmd.Wait(); t.Failed() {
			t.Logf("%s: %v\n%s", name, cmd.ProcessState, errors.String())
		}
	})
	return p
}

func (p *program) of(worker string) chan string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.answers[worker] == nil {
		p.answers[worker] = make(chan string, 1)
	}
	return p.answers[worker]
}

// do makes a call as a worker, and returns what came of it.
func (p *program) do(worker int, call ...string) string {
	p.t.Helper()
	name := strconv.Itoa(worker)
	answers := p.of(name)
	p.mu.Lock()
	_, err := io.WriteString(p.in, name+" "+strings.Join(call, " ")+"\n")
	p.mu.Unlock()
	if err != nil {
		p.t.Errorf("%s: %q: %v", p.name, call, err)
		return ""
	}
	select {
	case text := <-answers:
		return text
	case <-p.ended:
		p.t.Errorf("%s has ended, and not answered %q", p.name, call)
		return ""
	}
}

// passes makes a call that may be refused.
func (p *program) passes(worker int, call ...string) bool {
	p.t.Helper()
	text := p.do(worker, call...)
	if text != "true" && text != "false" {
		p.t.Errorf("%s: %q: %s", p.name, call, text)
	}
	return text == "true"
}
