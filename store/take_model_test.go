package store_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"celld/cell"
	"celld/store"
)

// takeModel is Take without any of what makes it fast: every limit is looked at, and then all or none are taken.
type takeModel map[string]map[cell.Slot]*modelState

type modelState struct {
	limit cell.Literal
	cell.State
}

func (m takeModel) state(key []byte, l *cell.Literal, nowNS int64) cell.State {
	known := m[string(key)][l.Slot]
	if known == nil {
		return cell.State{}
	}
	st := known.State
	st.Ring = slices.Clone(st.Ring)
	l.Carry(&st, &known.limit, nowNS)
	return st
}

func (m takeModel) decide(c *store.Call, nowNS, cost int64, mode cell.Mode) {
	st := m.state(c.Key, c.Limit, nowNS)
	c.Limit.Fit(&st, nowNS)
	was := st.BlockedNS
	c.Decision = c.Limit.Decide(&st, nowNS, cost, mode)
	if mode == cell.Peek || c.Decision.Limited && st.BlockedNS == was {
		return
	}
	if m[string(c.Key)] == nil {
		m[string(c.Key)] = map[cell.Slot]*modelState{}
	}
	m[string(c.Key)][c.Limit.Slot] = &modelState{*c.Limit, st}
}

func (m takeModel) take(calls []store.Call, nowNS, cost int64) (limited bool) {
	times := make([]int64, len(calls))
	for i := range calls {
		c := &calls[i]
		for _, before := range calls[:i+1] {
			if string(before.Key) == string(c.Key) && before.Limit.Slot == c.Limit.Slot {
				times[i]++
			}
		}
		m.decide(c, nowNS, cost*times[i], cell.Peek)
		limited = limited || c.Decision.Limited && !c.Limit.Shadow
	}
	for i := range calls {
		c := &calls[i]
		if !limited {
			m.decide(c, nowNS, cost, cell.Take)
		} else if c.Decision.Limited && c.Limit.BlockNS > 0 {
			m.decide(c, nowNS, cost*times[i], cell.Take)
		}
	}
	return limited
}

func (m takeModel) live(key []byte, nowNS int64) bool {
	for _, st := range m[string(key)] {
		if st.limit.EndNS(&st.State) > uint64(nowNS) {
			return true
		}
	}
	return false
}

func TestTakeOfSeveralLimitsIsThatOfTheModel(t *testing.T) {
	var limits []cell.Literal
	for _, text := range []string{
		"3/1s", "7/1s", "5/1m,burst=2", "4/10s,algo=window", "9/10s,algo=window", "6/10s,algo=slide", "6/10s,algo=slide,buckets=3",
		"5/10s,algo=log", "2/2s,shadow", "3/5s,block=20s", "4/20s,algo=window,align=clock,block=3s",
	} {
		l, err := cell.ParseLiteral(text)
		if err != nil {
			t.Fatal(err)
		}
		limits = append(limits, l)
	}
	random := rand.New(rand.NewPCG(1, 2))
	const runs, steps = 200, 300
	passed := 0
	for run := range runs {
		s, m, now := store.New(store.Options{Shards: 4, Journal: run%2 == 0}), takeModel{}, int64(t0)
		for step := range steps {
			now += []int64{0, 0, 1, 1e8, 1e8, 1e9, 7e9, 70e9}[random.IntN(8)]
			calls, what := drawCalls(random, limits)
			cost := 1 + random.Int64N(3)
			want := slices.Clone(calls)
			limited := m.take(want, now, cost)
			taken, err := s.Take(calls, store.TakeOptions{Cost: cost}, at(now))
			if err != nil || taken.Limited != limited {
				t.Fatalf("run %d, step %d, %s cost %d: %+v, %v, want %v", run, step, what, cost, taken, err, limited)
			}
			if !limited {
				passed++
			}
			for i := range calls {
				if calls[i].Decision != want[i].Decision {
					t.Fatalf("run %d, step %d, %s cost %d: limit %d: %+v, want %+v", run, step, what, cost, i, calls[i].Decision, want[i].Decision)
				}
			}
			for _, key := range []string{"a", "b"} {
				if there, err := s.Limits([]byte(key), untouched(now), func(*store.LimitState) {}); err != nil || there != m.live([]byte(key), now) {
					t.Fatalf("run %d, step %d, %s cost %d: %s is there: %v, %v", run, step, what, cost, key, there, err)
				}
			}
		}
	}
	if passed < runs*steps/5 || passed > runs*steps*9/10 {
		t.Fatalf("%d of %d calls passed", passed, runs*steps)
	}
}

// drawCalls draws a limit of a key that has no other, or up to five limits of one or two keys, no two of which share a state
// and differ.
func drawCalls(random *rand.Rand, limits []cell.Literal) (calls []store.Call, what string) {
	if random.IntN(2) == 0 {
		l := &limits[random.IntN(len(limits))]
		key := l.Slot.AppendText([]byte("only "))
		return []store.Call{{Key: key, Limit: l}}, string(key)
	}
	for range 1 + random.IntN(5) {
		c := store.Call{Key: []byte{"aaab"[random.IntN(4)]}, Limit: &limits[random.IntN(len(limits))]}
		if slices.ContainsFunc(calls, func(of store.Call) bool {
			return string(of.Key) == string(c.Key) && of.Limit.Slot == c.Limit.Slot && of.Limit != c.Limit
		}) {
			continue
		}
		calls = append(calls, c)
		what += fmt.Sprintf("%s %s ", c.Key, c.Limit.String())
	}
	return calls, what
}

// A key that is full of limits loses those that have ended, of which a call may have found one already.
func TestTakeMakesRoomForLimits(t *testing.T) {
	s := store.New(store.Options{Shards: 1})
	call := func(texts ...string) (calls []store.Call) {
		for _, text := range texts {
			l, err := cell.ParseLiteral(text)
			if err != nil {
				t.Fatal(err)
			}
			calls = append(calls, store.Call{Key: []byte("a"), Limit: &l})
		}
		return calls
	}
	take := func(now int64, texts ...string) store.Taken {
		t.Helper()
		taken, err := s.Take(call(texts...), store.TakeOptions{Cost: 1}, at(now))
		if err != nil {
			t.Fatal(err)
		}
		return taken
	}
	for i := range store.MaxLimits - 3 {
		take(t0, fmt.Sprintf("10/%dh", i+1))
	}
	take(t0, "1/1s")
	take(t0, "1/2s")
	take(t0, "1/4s")
	now := int64(t0) + int64(time.Minute)
	take(now, "1/1s", "1/3s")
	if taken := take(now, "1/1s"); !taken.Limited {
		t.Errorf("what was taken is lost: %+v", taken)
	}
	if taken := take(now, "1/3s"); !taken.Limited {
		t.Errorf("what was taken is lost: %+v", taken)
	}
	s.Delete([]byte("a"), now)
	if n := s.Stats(now).Bytes; n != 0 {
		t.Errorf("%d bytes of no key", n)
	}
}

// What Undo takes back of limits it takes back whole, also of those that are changed in place.
func TestUndoOfLimits(t *testing.T) {
	var limits []cell.Literal
	for _, text := range []string{"100/1m", "100/1m,algo=log", "100/1m,algo=slide,buckets=6", "3/1m,algo=log,block=1m"} {
		l, err := cell.ParseLiteral(text)
		if err != nil {
			t.Fatal(err)
		}
		limits = append(limits, l)
	}
	s, now := store.New(store.Options{Shards: 1, Journal: true}), int64(t0)
	s.KeepUndo()
	take := func(n int) {
		for range n {
			now += 1e8
			for i := range limits {
				calls := []store.Call{{Key: fmt.Append(nil, "key", i), Limit: &limits[i]}}
				if _, err := s.Take(calls, store.TakeOptions{Cost: 1}, at(now)); err != nil {
					t.Fatal(err)
				}
			}
			several := []store.Call{{Key: []byte("several"), Limit: &limits[0]}, {Key: []byte("several"), Limit: &limits[1]}}
			if _, err := s.Take(several, store.TakeOptions{Cost: 1}, at(now)); err != nil {
				t.Fatal(err)
			}
		}
	}
	all := func() (text string) {
		for _, key := range []string{"key0", "key1", "key2", "key3", "several"} {
			found, err := s.Limits([]byte(key), untouched(now), func(l *store.LimitState) {
				text += fmt.Sprintln(key, l.Literal.String(), l.State.A, l.State.B, l.State.BlockedNS, l.State.Ring)
			})
			if !found || err != nil {
				t.Fatalf("%s: %v, %v", key, found, err)
			}
		}
		return text
	}
	take(20)
	drain(s, func(store.Change) {})
	s.Keep()
	kept := all()
	for _, n := range []int{1, 20, 60} {
		take(n)
		drain(s, func(store.Change) {})
		take(1)
		s.Undo(now)
		if got := all(); got != kept {
			t.Fatalf("after %d calls:\n%swant\n%s", n, got, kept)
		}
	}
}
