package check

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"celld/cell"
)

// Limits checks that each answer is what package cell computes if calls of each key are decided one after the other, at instants between
// their beginning and their end, and crashes forget no more than they may. It returns a text for each key for which no such order exists,
// and how many keys have too many orders to try.
func Limits(h History) (faults []string, undecided int) {
	for key, calls := range h.byKey(func(c *Call) bool { return !c.ofLease() && !c.Bounded }) {
		switch is, tried := possible(calls, h.Crashes, h.Stalls); {
		case !tried:
			undecided++
		case !is:
			faults = append(faults, fmt.Sprintf("no order of the calls of key %s explains their answers:\n%s", key,
				shortest(calls, h.Crashes, h.Stalls)))
		}
	}
	return faults, undecided
}

// shortest lists the calls up to the first that nothing explains.
func shortest(calls []Call, crashes []Crash, stalls bool) string {
	n := len(calls)
	for from, to := 1, n; from < to; {
		middle := (from + to) / 2
		if is, tried := possible(calls[:middle], crashes, stalls); is || !tried {
			from = middle + 1
		} else {
			to = middle
		}
		n = to
	}
	var b strings.Builder
	for _, c := range calls[:n] {
		answer := fmt.Sprint(c.Answer)
		if c.Answer == nil {
			answer = "no answer"
		}
		if c.Error != "" {
			answer = c.Error
		}
		fmt.Fprintf(&b, "  %d-%d client %d %s: %s %v\n", c.Began, c.Ended, c.Client, c.Text, answer, span(c.Times))
	}
	for _, c := range crashes {
		fmt.Fprintf(&b, "  %d crash at %d\n", c.At, c.AtNS)
	}
	return b.String()
}

func span(times []int64) string {
	if len(times) == 0 {
		return "never"
	}
	return fmt.Sprintf("at %d..%d", times[0], times[len(times)-1])
}

// value is what a key holds.
type value struct {
	tat uint64 // of CL.THROTTLE
	of  [mostLimits]cell.State
}

// mostLimits is how many limits a call may ask for.
const mostLimits = 3

// state is what a key may hold at an instant.
type state struct {
	value
	nowNS int64
	past  []past // what a crash may bring back, the oldest first
}

// past is what the key held from an instant on.
type past struct {
	value
	atNS     int64
	answered int64 // the number of the event at which somebody was answered who has made it so; a crash before that may forget it
}

func (v *value) same(o *value) bool {
	same := v.tat == o.tat
	for i := range v.of {
		a, b := &v.of[i], &o.of[i]
		same = same && a.A == b.A && a.B == b.B && a.BlockedNS == b.BlockedNS && slices.Equal(a.Ring, b.Ring)
	}
	return same
}

func (v *value) clone() value {
	c := *v
	for i := range c.of {
		c.of[i].Ring = slices.Clone(c.of[i].Ring)
	}
	return c
}

// mostSteps is how many positions a search looks at. Most keys take some hundred. Where many calls have no answer, and crashes may forget
// much, there may be millions.
const mostSteps = 20_000

// mostLooks is how many instants it tries in all, and mostInstants how many of a call, each of which may leave a state of its own.
const (
	mostLooks    = 200_000
	mostInstants = 2_000
)

// possible reports whether an order exists, and whether that could be found out. Calls of one client are in its order, so an order of all
// is a merge of few queues. Porcupine, which knows no such queues, took minutes for 300 calls in pipelines.
func possible(calls []Call, crashes []Crash, stalls bool) (is, tried bool) {
	s := search{seen: map[string]bool{}, stalls: stalls}
	for _, c := range crashes {
		if !slices.ContainsFunc(calls, func(o Call) bool { return o.Began > c.At }) {
			break // nobody sees what it has left
		}
		s.crashes = append(s.crashes, c)
		s.forgetsNS = max(s.forgetsNS, c.ForgetsNS)
	}
	for _, c := range calls {
		for len(s.queues) <= c.Client {
			s.queues = append(s.queues, nil)
		}
		s.queues[c.Client] = append(s.queues[c.Client], c)
	}
	is = s.from(position{next: make([]int, len(s.queues))}, &state{past: []past{{}}})
	return is, is || len(s.seen) < mostSteps && s.looks < mostLooks
}

// search looks for an order.
type search struct {
	queues    [][]Call // by client
	crashes   []Crash
	forgetsNS int64
	stalls    bool            // see History
	looks     int             // instants that were tried
	seen      map[string]bool // positions and states from which there is no way to the end
}

// position is how many of each queue, and of the crashes, have been put in order.
type position struct {
	next    []int
	crashed int
}

// from reports whether there is an order of what is left.
func (s *search) from(at position, is *state) bool {
	ends, left := int64(math.MaxInt64), false
	for i, queue := range s.queues {
		if at.next[i] < len(queue) {
			ends, left = min(ends, queue[at.next[i]].Ended), true
		}
	}
	if at.crashed < len(s.crashes) {
		ends = min(ends, s.crashes[at.crashed].At)
	}
	if !left {
		return true
	}
	key := at.key(is)
	if s.seen[key] || len(s.seen) == mostSteps || s.looks >= mostLooks {
		return false
	}
	s.seen[key] = true
	if at.crashed < len(s.crashes) && s.crashes[at.crashed].At <= ends {
		for _, next := range crashed(is, s.crashes[at.crashed]) {
			if s.from(position{at.next, at.crashed + 1}, next) {
				return true
			}
		}
	}
	var ready []int
	for i, queue := range s.queues {
		if at.next[i] < len(queue) && queue[at.next[i]].Began <= ends { // else another had ended before it began, and goes first
			ready = append(ready, i)
		}
	}
	// Most calls are decided in the order of their answers.
	slices.SortStableFunc(ready, func(a, b int) int { return cmp.Compare(s.queues[a][at.next[a]].Ended, s.queues[b][at.next[b]].Ended) })
	for _, i := range ready {
		queue := s.queues[i]
		further := position{slices.Clone(at.next), at.crashed}
		further.next[i]++
		for _, next := range s.decided(is, queue[at.next[i]], at.crashed < len(s.crashes)) {
			if s.from(further, next) {
				return true
			}
		}
	}
	return false
}

func (p position) key(is *state) string {
	b := binary.AppendUvarint(nil, uint64(p.crashed))
	for _, n := range p.next {
		b = binary.AppendUvarint(b, uint64(n))
	}
	b = binary.AppendUvarint(b, uint64(is.nowNS))
	b = is.append(b)
	for _, p := range is.past {
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(p.atNS)), uint64(p.answered))
		b = p.append(b)
	}
	return string(b)
}

func (v *value) append(b []byte) []byte {
	b = binary.AppendUvarint(b, v.tat)
	for i := range v.of {
		st := &v.of[i]
		for _, word := range []uint64{st.A, st.B, st.BlockedNS, uint64(len(st.Ring))} {
			b = binary.AppendUvarint(b, word)
		}
		for _, word := range st.Ring {
			b = binary.AppendUvarint(b, word)
		}
	}
	return b
}

// crashed returns what a key may hold after a crash.
func crashed(s *state, c Crash) (next []*state) {
	for i := len(s.past) - 1; i >= 0; i-- {
		p := s.past[i]
		back := &state{nowNS: s.nowNS, value: p.clone()}
		if c.All {
			back.value = value{}
		}
		if back.past = []past{{value: back.clone()}}; c.Loose {
			back.past = s.past[: i+1 : i+1]
		}
		next = append(next, back)
		if c.All {
			break
		}
		// It may be lost only if it is young or, where replies wait for the disk, if nobody was told of it.
		if told := p.answered <= c.At || c.ForgetsNS > 0; told && p.atNS < c.AtNS-c.ForgetsNS {
			break
		}
	}
	return next
}

// decided returns what a key may hold after a call.
func (all *search) decided(s *state, c Call, crashes bool) (next []*state) {
	if c.Error != "" && !c.Maybe {
		return []*state{s}
	}
	if c.Answer == nil {
		next = append(next, s)
	}
	times := c.Times[:min(len(c.Times), mostInstants)] // each is compared with all before it: 14,712 took minutes
	if all.looks += len(times); len(times) < len(c.Times) {
		all.looks = mostLooks
	}
	for _, nowNS := range times {
		if nowNS < s.nowNS && !all.stalls {
			continue
		}
		after := &state{nowNS: nowNS, value: s.clone()}
		answer := after.perform(&c)
		after.nowNS = max(nowNS, s.nowNS)
		if c.Answer != nil && !slices.Equal(answer, c.Answer) {
			continue
		}
		// The same state at an earlier instant allows all that it allows later.
		if slices.ContainsFunc(next, func(o *state) bool { return o.same(&after.value) }) {
			continue
		}
		after.past = s.past
		if changed := !after.same(&s.value); crashes && changed {
			answered := c.Ended
			if c.Answer == nil {
				answered = 1 << 62
			}
			after.past = append(slices.Clone(s.past), past{after.clone(), nowNS, answered})
			after.forget(all.forgetsNS, c.Began)
		}
		next = append(next, after)
	}
	return next
}

// forget drops what no crash can bring back any more: what is older than the newest that is both old and told.
func (s *state) forget(forgetsNS, began int64) {
	for i := len(s.past) - 1; i > 0; i-- {
		if p := s.past[i]; p.atNS < s.nowNS-forgetsNS && (p.answered < began || forgetsNS > 0) {
			s.past = s.past[i:]
			return
		}
	}
}

// perform decides on a call at nowNS, and returns its answer.
func (s *state) perform(c *Call) []int64 {
	switch c.Kind {
	case Throttle:
		bucket, err := cell.NewBucket(c.Burst[0], c.Burst[1], c.Burst[2])
		if err != nil {
			panic(err)
		}
		tat, d, _ := bucket.Throttle(s.tat, s.nowNS, c.Cost)
		s.tat = tat
		retry := int64(-1)
		if d.RetryAfterNS != cell.Never {
			retry = max(1, seconds(d.RetryAfterNS))
		}
		return []int64{number(d.Limited), d.Limit, d.Remaining, retry, seconds(d.ResetAfterNS)}
	case Del:
		end := s.tat
		for i, l := range c.limits() {
			end = max(end, l.EndNS(&s.of[i]))
		}
		was := number(end > uint64(s.nowNS))
		s.value = value{}
		return []int64{was}
	case Reserve:
		if answer := s.reserve(c); answer != nil {
			return answer
		}
	}
	return s.take(c)
}

// limits are those that a call asks for; there are none with CL.THROTTLE.
func (c *Call) limits() []cell.Limit {
	if c.Limit.PeriodNS == 0 {
		return nil
	}
	return append([]cell.Limit{c.Limit}, c.Others...)
}

// costOf is what a call takes from a limit.
func (c *Call) costOf(i int) int64 {
	if i < len(c.Costs) && c.Costs[i] >= 0 {
		return c.Costs[i]
	}
	return c.Cost
}

// idle reports a limit that a call names, and takes nothing from.
func (c *Call) idle(i int) bool { return i < len(c.Costs) && c.Costs[i] == 0 }

// reserve takes ahead; nil: it need not, or cannot.
func (s *state) reserve(c *Call) []int64 {
	l, st := &c.Limit, &s.of[0]
	if l.EndNS(st) <= uint64(s.nowNS) {
		*st = cell.State{}
	}
	wait := l.Forecast(st, s.nowNS, c.Cost)
	if !l.Decide(st, s.nowNS, c.Cost, cell.Peek).Limited || wait > uint64(c.WaitNS) {
		return nil
	}
	l.Fit(st, s.nowNS, c.Cost)
	l.Book(st, s.nowNS, c.Cost)
	d := l.Decide(st, s.nowNS, 0, cell.Peek)
	return []int64{0, d.Limit, d.Remaining, -1, milliseconds(d.ResetAfterNS), c.Cost, milliseconds(wait)}
}

// take takes from all limits, or from none. The one that binds is that with the longest wait or, if all pass, the smallest share left.
func (s *state) take(c *Call) []int64 {
	mode := map[Kind]cell.Mode{Take: cell.Take, Reserve: cell.Take, Peek: cell.Peek, Force: cell.Force}[c.Kind]
	limits := c.limits()
	all := make([]cell.Decision, len(limits))
	limited := false
	for i := range limits {
		l, st := &limits[i], &s.of[i]
		if l.EndNS(st) <= uint64(s.nowNS) { // then the state is that of a key never seen
			*st = cell.State{}
		}
		all[i] = l.Decide(st, s.nowNS, c.costOf(i), cell.Peek)
		if c.idle(i) {
			all[i].Limited, all[i].RetryAfterNS = false, cell.Never
		}
		limited = limited || all[i].Limited && mode != cell.Force
	}
	binding, resetNS := 0, uint64(0)
	for i := range limits {
		l, st, d := &limits[i], &s.of[i], &all[i]
		if mode != cell.Peek && !c.idle(i) && (!limited || d.Limited) { // who denies may block the key
			l.Fit(st, s.nowNS, 1)
			*d = l.Decide(st, s.nowNS, c.costOf(i), mode)
		}
		resetNS = max(resetNS, d.ResetAfterNS)
		switch b := &all[binding]; {
		case c.idle(i) && len(limits) > 1:
		case c.idle(binding):
			binding = i
		case limited && d.Limited && (!b.Limited || d.RetryAfterNS > b.RetryAfterNS),
			!limited && float64(d.Remaining)/float64(d.Limit) < float64(b.Remaining)/float64(b.Limit):
			binding = i
		}
	}
	granted := int64(0)
	if !limited && mode != cell.Peek {
		granted = c.Cost
	}
	d := all[binding]
	return []int64{number(limited), d.Limit, d.Remaining, milliseconds(d.RetryAfterNS), milliseconds(resetNS), granted, 0}
}

func number(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// seconds rounds as CL.THROTTLE does: up, if the fraction has a whole millisecond.
func seconds(ns uint64) int64 {
	s := int64(ns / 1e9)
	if ns%1e9 >= 1e6 {
		s++
	}
	return s
}

// milliseconds rounds up, as CL.TAKE does.
func milliseconds(ns uint64) int64 {
	if ns == cell.Never {
		return -1
	}
	return int64((ns + 1e6 - 1) / 1e6)
}
