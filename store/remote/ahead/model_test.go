package ahead

import (
	"fmt"
	"slices"
	"testing"
)

// The model is the protocol of taking ahead in small: few instances, small numbers, and time in ticks. The test visits each state that any
// order of events leads to: requests, answers and give-backs that arrive at once, late or never, instances that die, and an engine that
// forgets the last thing that it has granted. In each it holds what celld promises.

// model is what does not change.
type model struct {
	instances   int
	bucket      bool   // one limit is a bucket
	window      bool   // one is a window
	tolerance   int8   // of the bucket, in ticks; a unit takes one
	period      int8   // of the window, in ticks
	most        int8   // of the window
	ahead       int8   // H, in ticks
	portions    []int8 // how many units a request may be for
	until       int8   // the last tick
	reliable    bool   // nothing that is sent is lost
	asks        int8   // how many requests are sent in all
	directs     int8   // how many calls are decided without taking ahead
	crashes     int8
	forgets     int8
	fault       fault
	states      map[key]bool
	path        []event
	whatIsWrong string
}

// event is what led to a state.
type event struct {
	how       string
	who, n    int
	now       int8
	tat, uses int8 // what the engine has
}

// fault is what is wrong with a protocol.
type fault int

const (
	none           fault = iota
	atOnce               // units are charged for the instant of the grant
	outlivesWindow       // units of a window may be used after it
	neverEnds            // units may be used after H
	givenTwice           // the engine takes a give-back twice
	givenLate            // a give-back counts, whatever was granted since
	forOne               // units are charged to the bucket only
)

// state is all that changes.
type state struct {
	now                    int8
	tat, count             int8 // what the engine has
	wasTAT, wasCount       int8 // what it had before the last grant
	last                   int8 // who has the last grant: an instance, nobody, or direct
	real, used             int8 // what the calls that have passed leave, where nobody takes ahead
	realBefore, usedBefore int8 // without those of the last grant
	grace                  int8 // units that the engine has forgotten, and was given back nevertheless
	lost                   int8 // units that have ended unused
	asks, directs          int8 // how many may come yet
	crashes, forgets       int8
	instances              [3]instance
}

const (
	nobody = -1
	direct = -2
)

type phase int8

const (
	idle    phase = iota
	sent          // its request is under way
	granted       // the answer is under way
	using
)

type instance struct {
	phase     phase
	asked     int8 // when it has sent the request
	base      int8 // the TAT before the first unit
	n, next   int8 // units of the grant, and how many are used
	end       int8 // when they end by its clock
	engineEnd int8 // and by the engine's
	window    int8 // of the grant
	forgotten bool // by the engine
	back      back
}

// back is a give-back that is under way.
type back struct {
	units, tat, end, window int8
	copies                  int8 // 0: there is none
	forgotten               bool
}

func (m *model) windowOf(at int8) int8 { return at / m.period }

// failed notes what is wrong in a state, and how one comes to it.
func (m *model) failed(format string, args ...any) bool {
	m.whatIsWrong = fmt.Sprintf(format, args...)
	for _, e := range m.path {
		m.whatIsWrong += fmt.Sprintf("\n  at %d: %s (instance %d, %d); the engine has TAT %d, count %d",
			e.now, e.how, e.who, e.n, e.tat, e.uses)
	}
	return true
}

// visit goes to a state, and on to all that follow. It reports whether one is wrong.
func (m *model) visit(s state, how string, who, n int) bool {
	m.path = append(m.path, event{how, who, n, s.now, s.tat, s.count})
	defer func() { m.path = m.path[:len(m.path)-1] }()
	if m.wrong(&s) {
		return true
	}
	key := s.key()
	if m.states[key] {
		return false
	}
	m.states[key] = true
	for i := range m.instances {
		if m.acts(s, i) {
			return true
		}
	}
	return m.happens(s)
}

// key is what tells states apart. Which of two instances is in which state does not matter, and what has passed neither.
type key struct {
	engine    [13]int8
	last      uint64
	instances [3]uint64
}

func (s *state) key() (k key) {
	for i := range s.instances {
		k.instances[i] = s.instances[i].bits()
	}
	if s.last >= 0 {
		k.last = k.instances[s.last]
	} else {
		k.last = uint64(-int64(s.last))
	}
	slices.Sort(k.instances[:])
	k.engine = [13]int8{s.now, max(s.tat, s.now), s.count, max(s.real, s.now), s.used, s.grace, min(s.lost, mostLost), s.directs, s.crashes,
		s.forgets, 0, 0, s.asks}
	if s.forgets > 0 {
		more := [4]int8{max(s.wasTAT, s.now), s.wasCount, max(s.realBefore, s.now), s.usedBefore}
		k.engine[10], k.engine[11] = more[0]<<4|more[1], more[2]<<4|more[3] // all are below 16
	}
	return k
}

// mostLost is from where on it does not matter how many units have been lost.
const mostLost = 3

// bits are all that an instance is, 4 bits each.
func (in *instance) bits() (b uint64) {
	flags := int8(0)
	for _, is := range []bool{in.forgotten, in.back.forgotten} {
		flags <<= 1
		if is {
			flags++
		}
	}
	n := &in.back
	for _, of := range []int8{int8(in.phase), in.asked, in.base, in.n, in.next, in.end, in.engineEnd, in.window, flags,
		n.units, n.tat, n.end, n.window, n.copies} {
		b = b<<4 | uint64(of&15)
	}
	return b
}

// wrong holds the promises: what is charged is what was used, is held, or has been lost, and never less.
func (m *model) wrong(s *state) bool {
	held := int8(0)
	for i := range m.instances {
		in := &s.instances[i]
		if in.phase >= granted {
			held += in.n - in.next
		}
		if in.back.copies > 0 {
			held += in.back.units
		}
	}
	if m.bucket && s.lost < mostLost && s.tat > max(s.real, s.now)+m.ahead+held+s.lost {
		return m.failed("more is charged (TAT %d) than was used (%d), is held (%d) or lost (%d)", s.tat, s.real, held, s.lost)
	}
	return false
}

// pass lets a call pass. It reports whether no limit would have let it pass.
func (m *model) pass(s *state, forgotten, ofLast bool) bool {
	if forgotten { // as a call that the engine has forgotten
		return false
	}
	s.used++
	if m.bucket {
		s.real = max(s.real, s.now) + 1
	}
	if m.bucket && s.real > s.now+m.tolerance+s.grace {
		return m.failed("at %d a call passes that makes the TAT %d", s.now, s.real)
	}
	if m.window && s.used > m.most+s.grace {
		return m.failed("at %d call %d of a window passes", s.now, s.used)
	}
	if !ofLast {
		s.usedBefore++
		if m.bucket {
			s.realBefore = max(s.realBefore, s.now) + 1
		}
	}
	return false
}

// grants is a grant of up to n units by the engine, of which it may forget the last.
func (m *model) grants(s *state, n, aheadOf int8, by int8) (base, got int8) {
	base, got = max(s.tat, s.now+aheadOf), n
	if m.bucket {
		got = min(got, s.now+aheadOf+m.tolerance-base) // all are good before they end
		if aheadOf > 0 && m.fault != atOnce {
			got = min(n, s.now+m.ahead+m.tolerance-base)
		}
	}
	if m.window && m.fault != forOne {
		got = min(got, m.most-s.count)
	}
	if got <= 0 {
		return base, 0
	}
	s.wasTAT, s.wasCount, s.last, s.realBefore, s.usedBefore = s.tat, s.count, by, s.real, s.used
	if m.bucket {
		s.tat = base + got
	}
	if m.fault != forOne {
		s.count += got
	}
	return base, got
}

// acts lets an instance do each thing that it may do.
func (m *model) acts(s state, i int) bool {
	in := &s.instances[i]
	number := 0
	next := func(how string, change func(s *state, in *instance)) bool {
		after := s
		change(&after, &after.instances[i])
		return m.visit(after, how, i, number)
	}
	switch in.phase {
	case idle:
		if s.asks > 0 && next("asks", func(s *state, in *instance) {
			s.asks--
			in.phase, in.asked = sent, s.now
		}) {
			return true
		}
		if s.directs > 0 {
			after := s
			after.directs--
			if _, got := m.grants(&after, 1, 0, direct); got > 0 {
				if m.pass(&after, false, true) || m.visit(after, "passes directly", i, 1) {
					return true
				}
			}
		}
	case sent:
		if !m.reliable && next("is not heard", func(_ *state, in *instance) { *in = instance{back: in.back} }) {
			return true
		}
		for _, n := range m.portions {
			number = int(n)
			if next("is granted", func(s *state, in *instance) {
				ahead := m.ahead
				if m.fault == atOnce {
					ahead = 0
				}
				base, got := m.grants(s, n, ahead, int8(i))
				if got == 0 {
					*in = instance{back: in.back}
					return
				}
				*in = instance{phase: granted, n: got, end: in.asked + m.ahead, window: m.windowOf(s.now), back: in.back}
				if m.bucket {
					in.base, in.engineEnd = base, s.now+m.ahead
				}
				if m.fault == neverEnds {
					in.end = m.until + 1
				}
			}) {
				return true
			}
		}
	case granted:
		if next("hears", func(_ *state, in *instance) { in.phase = using }) || !m.reliable && next("hears nothing", m.loses) {
			return true
		}
	case using:
		good := in.next < in.n && s.now < in.end && (!m.bucket || in.base+in.next+1-m.tolerance <= s.now) &&
			(!m.window || m.fault == outlivesWindow || in.window == m.windowOf(s.now))
		if good {
			after := s
			after.instances[i].next++
			if m.pass(&after, in.forgotten, s.last == int8(i)) || m.visit(after, "uses a unit", i, 1) {
				return true
			}
		}
		if in.back.copies == 0 && in.next < in.n && next("gives back", func(s *state, in *instance) {
			b := back{in.n - in.next, in.base + in.n, in.engineEnd, in.window, 1, in.forgotten}
			if m.fault == givenTwice {
				b.copies = 2
			}
			*in = instance{back: b}
		}) {
			return true
		}
	}
	if in.back.copies > 0 {
		if !m.reliable && next("gives back in vain", func(s *state, in *instance) {
			s.lost += in.back.units
			in.back = back{}
		}) || next("has given back", m.takesBack) {
			return true
		}
	}
	return s.crashes > 0 && in.phase != idle && next("dies", func(s *state, in *instance) {
		s.crashes--
		m.loses(s, in)
	})
}

// loses ends what an instance holds.
func (m *model) loses(s *state, in *instance) {
	if in.phase >= granted {
		s.lost += in.n - in.next
	}
	*in = instance{back: in.back}
}

// takesBack is a give-back that has come to the engine.
func (m *model) takesBack(s *state, in *instance) {
	b := in.back
	if in.back.copies--; in.back.copies == 0 {
		in.back = back{}
	}
	ofWindow := b.window == m.windowOf(s.now)
	if ofTAT := m.fault == givenLate || s.tat == b.tat; m.bucket && !(ofTAT && s.now < b.end) || m.window && !ofWindow {
		if in.back.copies == 0 {
			s.lost += b.units
		}
		return
	}
	if b.forgotten {
		s.grace += b.units
	}
	s.last = nobody
	if m.bucket {
		s.tat -= b.units
	}
	if m.window && ofWindow {
		s.count = max(0, s.count-b.units)
	}
}

// happens lets time pass, and the engine forget.
func (m *model) happens(s state) bool {
	if s.forgets > 0 && s.last != nobody {
		after := s
		after.forgets--
		after.tat, after.count, after.real, after.used = s.wasTAT, s.wasCount, s.realBefore, s.usedBefore
		if s.last >= 0 {
			if in := &after.instances[s.last]; in.phase >= granted {
				in.forgotten = true
			} else {
				in.back.forgotten = in.back.copies > 0
			}
		}
		after.last = nobody
		if m.visit(after, "the engine forgets what it granted last", int(s.last), 0) {
			return true
		}
	}
	if s.now == m.until {
		return false
	}
	s.now++
	if s.now%m.period == 0 {
		s.count, s.wasCount, s.used, s.usedBefore = 0, 0, 0, 0
	}
	for i := range m.instances {
		if in := &s.instances[i]; in.phase >= granted && s.now >= in.end+1 {
			m.loses(&s, in)
		}
	}
	return m.visit(s, "a tick", 0, 0)
}

// holds visits all states.
func (m model) holds(t *testing.T) (wrong string) {
	t.Helper()
	m.states = map[key]bool{}
	s := state{last: nobody, asks: m.asks, directs: m.directs, crashes: m.crashes, forgets: m.forgets}
	m.visit(s, "begins", 0, 0)
	t.Logf("%d states", len(m.states))
	return m.whatIsWrong
}

// models are those in which all is right.
var models = map[string]model{
	"a bucket, and failures": {instances: 2, bucket: true, tolerance: 3, ahead: 1, portions: []int8{1, 2}, period: 100,
		until: 3, asks: 3, directs: 1, crashes: 1, forgets: 1},
	"a bucket": {instances: 2, bucket: true, tolerance: 4, ahead: 2, portions: []int8{1, 2}, period: 100,
		until: 5, asks: 3, directs: 1},
	"a bucket, far ahead": {instances: 2, bucket: true, reliable: true, tolerance: 5, ahead: 4, portions: []int8{2, 4}, period: 100,
		until: 5, asks: 3},
	"a window": {instances: 2, window: true, period: 3, most: 3, ahead: 2, portions: []int8{1, 2},
		until: 4, asks: 3, directs: 1, crashes: 1, forgets: 1},
	"both": {instances: 2, bucket: true, window: true, tolerance: 2, period: 3, most: 3, ahead: 1, portions: []int8{1, 2},
		until: 4, asks: 4, directs: 1},
	"a bucket, for three": {instances: 3, bucket: true, tolerance: 2, ahead: 1, portions: []int8{1, 2}, period: 100,
		until: 3, asks: 4},
}

func TestModel(t *testing.T) {
	for name, m := range models {
		t.Run(name, func(t *testing.T) {
			if wrong := m.holds(t); wrong != "" {
				t.Error(wrong)
			}
		})
	}
}

// Each fault is seen.
func TestModelSeesFaults(t *testing.T) {
	for _, c := range []struct {
		name, model string
		fault       fault
	}{
		{"units are charged for the instant of the grant", "a bucket", atOnce},
		{"units may be used after H", "a bucket", neverEnds},
		{"units of a window may be used after it", "a window", outlivesWindow},
		{"a give-back is taken twice, of a bucket", "a bucket", givenTwice},
		{"a give-back is taken twice, of a window", "a window", givenTwice},
		{"a give-back counts whatever was granted since", "a bucket, far ahead", givenLate},
		{"units are charged to one of two limits", "both", forOne},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := models[c.model]
			m.fault = c.fault
			wrong := m.holds(t)
			if wrong == "" {
				t.Error("nothing is wrong")
			}
			t.Log(wrong)
		})
	}
}
