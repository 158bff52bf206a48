package check

import (
	"slices"
	"testing"

	"celld/cell"

	_ "pgregory.net/rapid" // for its flags, which all tests here are given
)

// call is a CL.THROTTLE k 1 1 1: two at once, one a second.
func call(client int, began, ended int64, answer []int64, times ...int64) Call {
	return Call{Client: client, Key: "k", Burst: [3]int64{1, 1, 1}, Cost: 1, Began: began, Ended: ended, Answer: answer, Times: times,
		FromNS: times[0], ToNS: times[len(times)-1], Text: "CL.THROTTLE k 1 1 1"}
}

const s = int64(1e9)

var (
	first  = []int64{0, 2, 1, -1, 1}
	second = []int64{0, 2, 0, -1, 2}
	denied = []int64{1, 2, 0, 1, 2}
)

func TestLimits(t *testing.T) {
	for _, c := range []struct {
		name  string
		h     History
		wrong bool
	}{
		{"in their order", History{Calls: []Call{call(0, 1, 2, first, 9*s), call(0, 3, 4, second, 9*s), call(0, 5, 6, denied, 9*s)}}, false},
		{"one more than the limit", History{Calls: []Call{call(0, 1, 2, first, 9*s), call(0, 3, 4, second, 9*s), call(0, 5, 6, second, 9*s)}}, true},
		{"denied too soon", History{Calls: []Call{call(0, 1, 2, first, 9*s), call(0, 3, 4, denied, 9*s)}}, true},
		{"at once, and answered in another order", History{Calls: []Call{call(0, 1, 4, second, 9*s), call(1, 2, 3, first, 9*s)}}, false},
		{"the other order, but one after the other", History{Calls: []Call{call(0, 1, 2, second, 9*s), call(1, 3, 4, first, 9*s)}}, true},
		{"one client's calls stay in their order", History{Calls: []Call{call(0, 1, 4, second, 9*s), call(0, 1, 5, first, 9*s)}}, true},
		{"a call without an answer was counted", History{Calls: []Call{call(0, 1, 2, nil, 9*s), call(1, 3, 4, second, 9*s)}}, false},
		{"or not", History{Calls: []Call{call(0, 1, 2, nil, 9*s), call(1, 3, 4, first, 9*s)}}, false},
		{"but not twice", History{Calls: []Call{call(0, 1, 2, nil, 9*s), call(1, 3, 4, denied, 9*s)}}, true},
		{"an instant at which it was not decided", History{Calls: []Call{call(0, 1, 2, first, 9*s), call(0, 3, 4, first, 9*s)}}, true},
		{"an instant at which it was", History{Calls: []Call{call(0, 1, 2, first, 9*s), call(0, 3, 4, first, 9*s, 11*s)}}, false},
		{"a crash that forgets all", History{Calls: []Call{call(0, 1, 2, first, 9*s), call(0, 5, 6, first, 9*s)},
			Crashes: []Crash{{At: 3, AtNS: 9 * s, All: true}}}, false},
		{"a crash that forgets nothing that was answered", History{Calls: []Call{call(0, 1, 2, first, 9*s), call(0, 5, 6, first, 9*s+1)},
			Crashes: []Crash{{At: 3, AtNS: 9*s + 1}}}, true},
		{"and may forget the rest", History{Calls: []Call{call(0, 1, 4, nil, 9*s), call(1, 1, 2, second, 9*s), call(0, 5, 6, first, 9*s+1)},
			Crashes: []Crash{{At: 3, AtNS: 9*s + 1}}}, true},
		{"a crash that forgets a second", History{Calls: []Call{call(0, 1, 2, first, 9*s), call(0, 5, 6, first, 9*s+2)},
			Crashes: []Crash{{At: 3, AtNS: 9*s + 1, ForgetsNS: s}}}, false},
		{"and no more", History{Calls: []Call{call(0, 1, 2, []int64{0, 2, 1, -1, 1}, 9*s), call(0, 5, 6, first, 10*s-1)},
			Crashes: []Crash{{At: 3, AtNS: 10*s - 2, ForgetsNS: s / 2}}}, true},
		{"a crash that keeps what is not on the disk, and one that does not", History{Calls: []Call{call(0, 1, 2, first, 9*s),
			call(0, 4, 5, second, 9*s+1), call(0, 7, 8, first, 9*s+2)},
			Crashes: []Crash{{At: 3, AtNS: 9*s + 1, Loose: true}, {At: 6, AtNS: 9*s + 2, ForgetsNS: 1 << 61}}}, false},
		{"and not after one that keeps what is on the disk", History{Calls: []Call{call(0, 1, 2, first, 9*s),
			call(0, 7, 8, first, 9*s+2)},
			Crashes: []Crash{{At: 3, AtNS: 9*s + 1}, {At: 6, AtNS: 9*s + 2, ForgetsNS: 1 << 61}}}, true},
		{"an error that says that nothing was counted", History{Calls: []Call{
			{Key: "k", Burst: [3]int64{1, 1, 1}, Cost: 1, Began: 1, Ended: 2, Error: "LOADING", Times: []int64{9 * s}},
			call(1, 3, 4, second, 9*s)}}, true},
		{"an error that says that it may be", History{Calls: []Call{
			{Key: "k", Burst: [3]int64{1, 1, 1}, Cost: 1, Began: 1, Ended: 2, Error: "MISCONF", Maybe: true, Times: []int64{9 * s}},
			call(1, 3, 4, second, 9*s)}}, false},
	} {
		if faults, undecided := Limits(c.h); (len(faults) > 0) != c.wrong || undecided > 0 {
			t.Errorf("%s: %v, %d undecided", c.name, faults, undecided)
		}
	}
}

// The model answers as CL.TAKE does by other algorithms, too.
func TestLimitsOfCLTake(t *testing.T) {
	l, err := cell.ParseLimit("2/1s,algo=log")
	if err != nil {
		t.Fatal(err)
	}
	take := func(n int64, kind Kind, answer ...int64) Call {
		return Call{Key: "k", Kind: kind, Limit: l, Cost: 1, Began: n, Ended: n, Answer: answer, Times: []int64{9*s + n*1e6}}
	}
	right := []Call{take(1, Take, 0, 2, 1, -1, 1000, 1, 0), take(2, Peek, 0, 2, 1, -1, 999, 0, 0), take(3, Take, 0, 2, 0, -1, 1000, 1, 0),
		take(4, Take, 1, 2, 0, 997, 999, 0, 0), take(5, Del, 1), take(6, Del, 0), take(7, Take, 0, 2, 1, -1, 1000, 1, 0)}
	if faults, _ := Limits(History{Calls: right}); len(faults) > 0 {
		t.Error(faults)
	}
	for i := range right {
		for j := range right[i].Answer {
			wrong := append([]Call(nil), right...)
			wrong[i].Answer = append([]int64(nil), wrong[i].Answer...)
			wrong[i].Answer[j]++
			if faults, _ := Limits(History{Calls: wrong}); len(faults) == 0 {
				t.Errorf("call %d: integer %d is not looked at", i, j)
			}
		}
	}
}

// A call of several limits takes from all or from none, and is answered by the one that binds.
func TestLimitsTogether(t *testing.T) {
	few, err := cell.ParseLimit("1/1s,burst=1")
	if err != nil {
		t.Fatal(err)
	}
	many, err := cell.ParseLimit("10/10s,algo=window")
	if err != nil {
		t.Fatal(err)
	}
	take := func(number, atNS int64, answer ...int64) Call {
		return Call{Key: "k", Kind: Take, Limit: many, Others: []cell.Limit{few}, Cost: 1, Began: number, Ended: number, Answer: answer,
			Times: []int64{atNS}, FromNS: atNS, ToNS: atNS}
	}
	calls := []Call{take(1, 9*s, 0, 1, 0, -1, 10_000, 1, 0), take(2, 9*s, 1, 1, 0, 1000, 10_000, 0, 0),
		take(3, 10*s, 0, 1, 0, -1, 9000, 1, 0)}
	if faults, _ := Limits(History{Calls: calls}); len(faults) > 0 {
		t.Errorf("%v", faults)
	}
	for i, wrong := range map[int]int64{0: 9_999, 2: 10_000} {
		others := slices.Clone(calls)
		others[i].Answer = slices.Clone(others[i].Answer)
		others[i].Answer[4] = wrong
		if faults, _ := Limits(History{Calls: others}); len(faults) == 0 {
			t.Errorf("call %d may say that all is full after %d ms", i, wrong)
		}
	}
}
