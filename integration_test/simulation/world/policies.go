package world

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

// A policy changes while members ask by it: alone, waiting, in transactions and in scripts, and by HTTP. It has one limit or several, which
// are equally large. Each call, transaction and script obeys the policy as a whole. The limit that a reply tells is another in each turn,
// but in each third one: there a temporary policy has ended by itself.

const policiesFile = "policies"

// planOf is the limits of the policy in a turn, and how large each is.
func (p *plan) planOf(turn int) (text string, limit int64) {
	if p.kindOf(turn) == ended {
		turn -= 2
	}
	limit = 1000 + int64(turn)
	r := p.chance("policy " + fmt.Sprint(turn))
	return fmt.Sprintf(oneOf(r, "%[1]d/1h", "%[1]d/1h,algo=window", "10/1s,burst=%[1]d", "%[1]d/1m,algo=slide",
		"%[1]d/1h %[1]d/1m,algo=slide", "%[1]d/1m,algo=slide 10/1s,burst=%[1]d %[1]d/1h,algo=window",
		"10/1s,burst=%[1]d %[1]d/1m,algo=window"), limit), limit
}

// The kinds of turns.
const (
	lasting = iota
	temporary
	ended
)

// kindOf is the kind of a turn. In worlds about configurations in memory all last, as most of these worlds end before a temporary
// one would.
func (p *plan) kindOf(turn int) int {
	if p.focus == "configurations" && p.engine == noEngine {
		return lasting
	}
	return turn % 3
}

// mostLate is how much later than its EX a temporary policy has ended.
const mostLate = 2 * time.Second

func drawPolicies(p *plan) {
	r := p.chance("policies")
	if r.IntN(2) == 0 {
		p.set("policies", p.folder+"/"+policiesFile)
	}
	if p.engine == noEngine && r.IntN(2) == 0 {
		p.set("lua-time-limit", "1")
		p.stalls = true // so a short script may take long
	}
}

// members are what asks by the policy.
type members struct {
	w     *world
	turns turns
	ends  time.Time // of the temporary policy, at the latest
	file  string    // the limits that the file has
}

func runPolicies(w *world) {
	s := &members{w: w, turns: turns{w: w, forgets: w.fleet == nil && w.plan.setting("policies") == ""}}
	operator := w.caller("operator", 150)
	var all sync.WaitGroup
	s.turns.change(func() { s.set(&operator, 0) })
	for n := range 3 {
		c := w.caller(fmt.Sprintf("member %d", n), 140+n)
		all.Go(func() {
			for range c.rounds(w.plan.calls/2, w.plan.think+time.Millisecond) {
				s.ask(&c)
			}
		})
	}
	s.turns.until(&all, operator.rnd, func(turn int) { s.set(&operator, turn) })
}

// set sets the policy, or waits until the temporary one has ended. It returns when all machines have it.
func (s *members) set(operator *caller, turn int) {
	kind := s.w.plan.kindOf(turn)
	text, _ := s.w.plan.planOf(turn)
	before, _ := s.w.plan.planOf(max(turn-1, 0))
	file := s.w.plan.setting("policies") != "" && kind != temporary
	if file && kind != ended {
		if turn > 0 && turn%2 == 0 {
			s.w.wrongFile(policiesFile, "plan "+text+"\nplan 5/x\n", "plan "+s.file+"\n")
		}
		s.file = text
		s.w.write(policiesFile, "plan "+text+"\n")
		for _, m := range s.w.all {
			m.reload()
		}
	}
	for _, m := range s.w.all {
		c := *operator
		c.only, c.conn = m, nil
		for tries, waited := 0, false; ; tries++ {
			has := limitsIn(c.do("CL.POLICY", "GET", "plan").value)
			if has == text || kind == temporary && tries > 10 { // which may have ended
				if waited {
					s.w.count("temporary policy ended")
				}
				break
			}
			words := append([]string{"CL.POLICY", "SET", "plan"}, strings.Fields(text)...)
			switch late := time.Now().After(s.ends); {
			case kind == ended && has == before && !late:
				waited = true
			case kind == ended && has == before && !s.w.plan.steps: // a process that starts takes its end as its wall clock has it
				s.w.wrong("a temporary policy has not ended: %v", has)
			case kind == temporary:
				c.do(append(words, "EX", "2")...)
				s.ends = time.Now().Add(2*time.Second + mostLate + max(s.w.plan.ahead, 0))
			case file && !late:
				m.reload() // the engine was away
			default:
				c.do(words...)
			}
			time.Sleep(100 * time.Millisecond)
		}
		c.hangUp()
	}
}

// limitsIn is what CL.POLICY GET answers, as one text.
func limitsIn(value any) any {
	if list, is := value.([]any); is {
		return strings.Trim(fmt.Sprint(list), "[]")
	}
	return value
}

// ask asks by the policy in some way.
func (s *members) ask(c *caller) {
	key := fmt.Sprint("{m}", c.rnd.IntN(3))
	cost := oneOf(c.rnd, "1", "1", "400")
	switch c.rnd.IntN(5) {
	case 0:
		s.whole(c, c.do("CL.TAKE", key, "@plan", "COST", cost, "FULL"))
	case 1:
		s.whole(c, c.do("CL.TAKE", key, "@plan", "COST", cost, "FULL", "WAIT", fmt.Sprint(c.rnd.IntN(2000))))
	case 2:
		c.do("MULTI")
		c.do("CL.TAKE", key, "@plan", "COST", cost)
		c.do("CL.TAKE", "{m}3", "@plan")
		s.together(c, c.do("EXEC"))
	case 3:
		s.together(c, c.do("EVAL", `local one = redis.call('CL.TAKE', KEYS[1], '@plan')
			for i = 1, tonumber(ARGV[1]) do redis.call('TIME') end
			local other = redis.call('CL.TAKE', KEYS[2], '@plan')
			return {one, other}`, "2", key, "{m}3", s.long(c)))
	case 4:
		if !s.w.plan.has("http") {
			return
		}
		began := s.w.event(c.name, "asks by HTTP")
		status, header := s.w.fetch(c, s.w.all[c.rnd.IntN(len(s.w.all))], "/check/plan/x/by/word:"+key, http.StatusOK,
			http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusNotFound)
		if limit := header.Get("X-RateLimit-Limit"); limit != "" {
			s.obeys(c, answer{[]any{0, number(limit)}, false, began, s.w.event(c.name, "is answered %d, limit %s", status, limit)})
		}
	}
}

// long is how often a script calls something. With a short --lua-time-limit others are told -BUSY meanwhile.
func (s *members) long(c *caller) string {
	if s.w.plan.setting("lua-time-limit") != "" && c.rnd.IntN(4) == 0 {
		return "500"
	}
	return "3"
}

// whole checks a reply with FULL: all limits are those of one turn.
func (s *members) whole(c *caller, a answer) {
	if values, is := a.value.([]any); is && len(values) == 8 {
		for _, one := range values[7].([]any) {
			if one.([]any)[1] != values[1] {
				s.w.wrong("%s: a call sees limits of two turns: %v", c.name, a.value)
			}
		}
	}
	s.obeys(c, a)
}

// obeys checks the limit of a reply.
func (s *members) obeys(c *caller, a answer) {
	values, is := a.value.([]any)
	code, _, _ := strings.Cut(a.failed(), " ")
	switch {
	case a.none:
	case is && len(values) > 1:
		s.turns.obeys(c, a, func(turn int) bool {
			_, limit := s.w.plan.planOf(turn)
			_, before := s.w.plan.planOf(max(turn-1, 0))
			return limit == values[1] || s.w.plan.kindOf(turn) == temporary && before == values[1]
		})
	case code == "NOPOLICY" && s.mayBeGone(a), code == "MISCONF", s.w.plan.mayFail(code):
		s.w.count("member told " + code)
	default:
		s.w.wrong("%s was answered %v", c.name, a.value)
	}
}

// mayBeGone reports whether the policy may have been forgotten, and not set again, when a call was answered.
func (s *members) mayBeGone(a answer) bool {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	gone := s.w.fleet == nil
	for _, loss := range s.w.history.Losses {
		gone = gone || loss.Began < a.ended && !s.turns.setBetween(loss.Ended, a.began)
	}
	return gone
}

// together checks that two calls of a transaction or script obey the same limit.
func (s *members) together(c *caller, a answer) {
	pair, is := a.value.([]any)
	if !is || len(pair) != 2 {
		return
	}
	one, is := pair[0].([]any)
	other, also := pair[1].([]any)
	if !is || !also {
		return
	}
	if one[1] != other[1] {
		s.w.wrong("%s: two calls at one instant obey the limits %v and %v", c.name, one[1], other[1])
	}
	a.value = one
	s.obeys(c, a)
}
