package decide

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"celld/resp/command/argument"
	"celld/store"

	"pgregory.net/rapid"
)

// explained is the sentence that CL.EXPLAIN answers.
func (w *world) explained(line string) string {
	w.t.Helper()
	head, text, _ := strings.Cut(w.do(strings.Fields("CL.EXPLAIN "+line)...), "\r\n")
	text = strings.TrimSuffix(text, "\r\n")
	if head != fmt.Sprintf("$%d", len(text)) {
		return head
	}
	return text
}

// waits is a store in which so many wait for each state, and whose engine may be away.
type waits struct {
	store.Store
	n    int64
	away error
}

func (w waits) WaitingFor(*store.Call) int64 { return w.n }
func (w waits) Away() error                  { return w.away }

func TestExplain(t *testing.T) {
	w := newWorld(t)
	for _, line := range []string{
		"CL.POLICY SET gold 3/1m", "CL.POLICY SET slow 1/10s,block=3s", "CL.RULE ADD DENY bad:*", "CL.RULE ADD ALLOW good",
		"CL.RULE ADD DENY ip: CIDR 10.0.0.0/8", "CL.TAKE k 5/1m", "CL.TAKE full 5/1m COST 5", "CL.TAKE gold @gold COST 3",
		"CL.TAKE blocked 5/1h,block=20s", "CL.TAKE blocked 5/1h,block=20s COST 6", "CL.TAKE slow @slow", "CL.TAKE slow @slow",
		"CL.TAKE warm 60/1m,warmup=5s", "CL.TAKE shadow 1/1h,shadow", "CL.TAKE debt 5/1m COST 9 FORCE", "CL.THROTTLE tat 1 1 60",
	} {
		w.do(strings.Fields(line)...)
	}
	w.do("CL.RULE", "ADD", "DENY", "", "CIDR", "192.0.2.0/24")
	for _, test := range [][2]string{
		{"new 5/1m", "would pass: 4 of 5 would be left under 5/1m"},
		{"new 5/1m cost 5", "would pass: 0 of 5 would be left under 5/1m"},
		{"new 5/1m COST 0", "would pass: 5 of 5 would be left under 5/1m"},
		{"new 5/1m 100/1h,algo=log COST 3", "would pass: 2 of 5 would be left under 5/1m"},
		{"new 60/1h 5/1m COST 3", "would pass: 2 of 5 would be left under 5/1m"},
		{"new 5/1m 5/1m", "would pass: 3 of 5 would be left under 5/1m"},
		{"new @gold 100/1s", "would pass: 2 of 3 would be left under 3/1m of @gold"},
		{"k 5/1m COST 2", "would pass: 2 of 5 would be left under 5/1m"},
		{"warm 60/1m,warmup=5s", "would be denied: 60/1m,burst=1,warmup=5s has none of 1 left, and a call of 1 passes in 2600 ms"},
		{"shadow 1/1h,shadow", "would pass: 0 of 1 would be left under 1/1h,shadow"},
		{"shadow 1/1h,shadow 5/1m", "would pass: 4 of 5 would be left under 5/1m"},
		{"shadow 1/1h,shadow 2/1m,shadow", "would pass: 0 of 1 would be left under 1/1h,shadow"},
		{"full 5/1m", "would be denied: 5/1m has none of 5 left, and a call of 1 passes in 12 s"},
		{"full 100/1s 5/1m COST 5", "would be denied: 5/1m has none of 5 left, and a call of 5 passes in 1 min"},
		{"gold @gold", "would be denied: 3/1m of @gold has none of 3 left, and a call of 1 passes in 20 s"},
		{"debt 5/1m", "would be denied: 5/1m has none of 5 left, and a call of 1 passes in 1 min"},
		{"new 5/1m COST 9", "would be denied: cost 9 is more than 5/1m ever allows"},
		{"full 5/1m 5/1m COST 3", "would be denied: cost 6 is more than 5/1m ever allows"},
		{"blocked 5/1h,block=20s", "would be denied: 5/1h,block=20s is blocked, and a call of 1 passes in 20 s"},
		{"blocked 5/1h,block=20s COST 0", "would be denied: 5/1h,block=20s is blocked, and a call of 0 passes in 20 s"},
		{"slow @slow", "would be denied: 1/10s,block=3s of @slow is blocked, and a call of 1 passes in 10 s"},
		{"bad:1 5/1m", "would be denied by the rule DENY bad:*"},
		{"ip:10.1.2.3 5/1m", "would be denied by the rule DENY ip: CIDR 10.0.0.0/8"},
		{"192.0.2.7 5/1m", `would be denied by the rule DENY "" CIDR 192.0.2.0/24`},
		{"good 5/1m COST 9", "would pass by the rule ALLOW good"},
		{"tat 5/1m", "-ERR " + store.ErrWrongType.Error()},
		{"k @none", strings.TrimSpace(fails(argument.ErrNoPolicy, "none"))},
		{"k 5/1m PEEK", "-ERR unknown option 'PEEK': expected COST or OF"},
		{"k 5/1m COST -1", "-" + errCost},
		{"k 5/1m COST x", "-" + fmt.Sprintf(errWhole, "COST", "", "x")},
	} {
		if got := w.explained(test[0]); got != test[1] {
			t.Errorf("%s:\n got %s\nwant %s", test[0], got, test[1])
		}
	}
	for n, want := range map[int64]string{1: "1 caller waits for 5/1m", 7: "7 callers wait for 5/1m"} {
		w.server.Store = waits{n: n}
		if got := w.explained("full 5/1m"); got != "would be denied: "+want+", and a call of 1 passes in 12 s" {
			t.Error(got)
		}
	}
	w.server.Store = waits{away: store.ErrFull}
	if got := w.explained("k 5/1m"); got != "would pass: 3 of 5 would be left under 5/1m, while the engine does not answer" {
		t.Error(got)
	}
}

func TestWaitsInWords(t *testing.T) {
	for ns, want := range map[time.Duration]string{
		1: "1 ms", time.Second: "1 s", time.Second + 1: "1001 ms", 9999 * time.Millisecond: "9999 ms", 10*time.Second + 1: "11 s",
		time.Minute: "1 min", 599 * time.Second: "599 s", 10*time.Minute + 1: "11 min", time.Hour: "1 h", 599 * time.Minute: "599 min",
		36 * time.Hour: "36 h", 10*time.Hour + 1: "11 h",
	} {
		if got := textOfWait(uint64(ns)); got != want {
			t.Errorf("%v: %s, want %s", ns, got, want)
		}
	}
}

// CL.EXPLAIN says what CL.TAKE does at the same instant, and what is left then. Who waits as long as it says, passes.
func TestExplainAgrees(t *testing.T) {
	limits := []string{
		"5/1s", "3/2s,burst=2", "4/1s,algo=window", "6/minute", "5/1s,algo=slide", "6/1s,algo=slide,buckets=3", "5/1s,algo=log",
		"4/2s,algo=conc", "5/1s,warmup=3s", "2/3s,block=2s", "3/1s,algo=log,block=500ms", "1/4s,shadow", "@plan", "@one",
	}
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t)
		w.do("CL.POLICY", "SET", "plan", "5/1s", "9/1m,algo=window")
		w.do("CL.POLICY", "SET", "one", "3/1s,block=1s")
		w.do("CL.RULE", "ADD", "DENY", "bad", "EX", "3")
		w.do("CL.RULE", "ADD", "ALLOW", "good")
		for range rapid.IntRange(1, 40).Draw(rt, "calls") {
			line := rapid.SampledFrom([]string{"a", "a", "b", "bad", "good"}).Draw(rt, "key")
			for range rapid.IntRange(1, 3).Draw(rt, "limits") {
				line += " " + rapid.SampledFrom(limits).Draw(rt, "limit")
			}
			line += fmt.Sprint(" COST ", rapid.IntRange(0, 7).Draw(rt, "cost"))
			text := w.explained(line)
			_, again, waits := strings.Cut(text, " passes in ")
			switch rapid.IntRange(0, 5).Draw(rt, "then") {
			case 0:
				w.do(strings.Fields("CL.TAKE " + line + " FORCE")...)
			case 1:
				w.NowNS += rapid.Int64Range(0, 3e9).Draw(rt, "later")
			case 2:
				if !waits {
					continue
				}
				n, unit, _ := strings.Cut(again, " ")
				count, _ := strconv.Atoi(n)
				units := map[string]time.Duration{"ms": time.Millisecond, "s": time.Second, "min": time.Minute, "h": time.Hour}
				w.sleep(time.Duration(count) * units[unit])
				if then := w.explained(line); !strings.HasPrefix(then, "would pass") {
					rt.Fatalf("%s: %s; then %s", line, text, then)
				}
			default:
				agrees(rt, w, line, text)
			}
		}
	})
}

// agrees checks a sentence by CL.TAKE.
func agrees(t *rapid.T, w *world, line, text string) {
	reply := strings.Fields(strings.NewReplacer(":", " ", "*", " *").Replace(w.do(strings.Fields("CL.TAKE " + line + " FULL")...)))
	if reply[0][0] == '-' {
		if !strings.HasPrefix(text, "-") {
			t.Fatalf("%s: %s, and CL.TAKE answers %v", line, text, reply)
		}
		return
	}
	verdict := map[string]string{"0": "would pass", "1": "would be denied"}[reply[1]]
	if !strings.HasPrefix(text, verdict) {
		t.Fatalf("%s: %s, and CL.TAKE answers %v", line, text, reply)
	}
	var left, most int
	if n, _ := fmt.Sscanf(text, "would pass: %d of %d would be left under", &left, &most); n == 2 && !strings.Contains(line, "warmup") &&
		!strings.Contains(line, "shadow") && !strings.Contains(line, "COST 0") {
		if reply[2] != strconv.Itoa(most) || reply[3] != strconv.Itoa(left) {
			t.Fatalf("%s: %s, and CL.TAKE answers %v", line, text, reply)
		}
	}
}
