package world

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

// The counts of a policy are those of the answers of its calls, by whichever door these came.

const tallyLimit = "20/1s"

// tallyFields are what CL.STATS counts.
var tallyFields = []string{"allowed", "limited", "near"}

type tally struct {
	w      *world
	mu     sync.Mutex
	counts map[string]*[3]spent // of each process, in the order of tallyFields
}

func runTally(w *world) {
	t := &tally{w: w, counts: map[string]*[3]spent{}}
	var all sync.WaitGroup
	for n := range 2 {
		c := w.caller(fmt.Sprintf("voter %d", n), 211+n)
		c.only = w.all[n%len(w.all)]
		all.Go(func() {
			for range c.rounds(w.plan.calls/2, w.plan.think+time.Millisecond) {
				t.take(&c)
			}
			c.hangUp()
		})
	}
	all.Wait()
	c := w.caller("teller", 213)
	for _, m := range w.all {
		c.only = m
		before := m.process()
		stats, is := c.do("CL.STATS", "tally").value.([]any)
		if counts := t.counts[before]; is && counts != nil && before == m.process() && !w.plan.fails(handOver) {
			for i, field := range tallyFields {
				if n := shown(stats, field); n < counts[i].least || n > counts[i].most {
					w.wrong("%s counts %d %s, and %d to %d were answered", before, n, field, counts[i].least, counts[i].most)
				}
			}
			w.count("counts checked")
		}
		c.hangUp()
	}
}

// process names the process that serves.
func (m *machine) process() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return fmt.Sprintf("%s, life %d", m.name(), m.lives)
}

// take takes from a limit of the policy by some door.
func (t *tally) take(c *caller) {
	if !c.connect() {
		return
	}
	m, process := c.of, c.of.process()
	key, cost := fmt.Sprint("tally:", c.rnd.IntN(2)), 1+c.rnd.IntN(6)
	words := []string{"CL.TAKE", key, "@tally", "COST", fmt.Sprint(cost)}
	var a answer
	switch door := c.rnd.IntN(4); {
	case door == 0 && t.w.plan.has("http"):
		a = c.postTake(m, key, cost)
	case door == 1:
		a = c.do("EVAL", "return redis.call('CL.TAKE', KEYS[1], unpack(ARGV))", "1", key, words[2], words[3], words[4])
	case door == 2:
		c.do("MULTI")
		queued := c.do(words...)
		if a = c.do("EXEC"); queued.value != "QUEUED" {
			a = queued
		} else if list, is := a.value.([]any); is && len(list) == 1 {
			a.value = list[0]
		}
	default:
		a = c.do(words...)
	}
	failed := fmt.Sprint(a.value)
	if strings.Contains(failed, "NOPOLICY") {
		c.do("CL.POLICY", "SET", "tally", tallyLimit)
		return
	}
	if strings.HasPrefix(failed, "LOADING") {
		return
	}
	values, certain := a.value.([]any)
	certain = certain && len(values) > 2 && process == m.process()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range []string{process, m.process()} {
		if t.counts[p] == nil {
			t.counts[p] = &[3]spent{}
		}
	}
	for i := range tallyFields {
		switch n := &t.counts[process][i]; {
		case !certain:
			n.add(1, false)
			t.counts[m.process()][i].add(1, false)
		case i == 0 && values[0] == int64(0), i == 1 && values[0] == int64(1),
			i == 2 && values[0] == int64(0) && values[2].(int64)*5 < values[1].(int64): // --near-limit is 80 %
			n.add(1, true)
		}
	}
}

// postTake takes by JSON.
func (c *caller) postTake(m *machine, key string, cost int) (a answer) {
	conn, err := c.w.network.Dial(c.addr, m.http())
	if err != nil {
		return answer{value: failure("LOADING")}
	}
	body := fmt.Sprintf(`{"key":%q,"limits":["@tally"],"cost":%d}`, key, cost)
	c.w.event(c.name, "posts /v1/take to %s: %s", m.addr, body)
	status, text, err := post(conn, c.w.token(c)+m.http(), "/v1/take", []byte(body))
	c.w.event(c.name, "gets %d: %s, %v", status, text, err)
	switch read := (&asked{}); {
	case status == http.StatusUnauthorized:
		return answer{value: failure("LOADING")}
	case status == http.StatusOK && read.reads(text):
		a.value = []any{read.Answer[0], read.Answer[1], read.Answer[2]}
	default:
		a.value = failure(text)
	}
	return a
}
