//go:build linux

package main

import (
	"bufio"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestCallersKeepTheirRate delays the first answer to a caller: the calls that were due meanwhile have waited as well.
func TestCallersKeepTheirRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := callers{Keys: 10, N: 1, PerSecond: 100, Duration: 100 * time.Second}
		begin, calls := time.Now().Add(time.Second), 0
		o := c.one(begin, func(key string) (bool, error) {
			if calls++; calls == 1 {
				time.Sleep(10 * time.Second)
			}
			return calls%2 == 0, nil
		}, rand.New(rand.NewPCG(1, 2)))
		if n := len(o.Taken); n != calls || n < 9_500 || n > 10_500 || o.Allowed != n/2 {
			t.Errorf("%d calls, %d of them pass", n, o.Allowed)
		}
		slices.Sort(o.Taken)
		late := 0
		for _, took := range o.Taken {
			if took > 0 {
				late++
			}
		}
		if o.Taken.longest() != 10*time.Second || late < 900 || late > 1100 {
			t.Errorf("the longest took %v, and %d others had to wait", o.Taken.longest(), late)
		}
		if o.First.Sub(begin) > time.Second || o.Last.Sub(begin) < 99*time.Second {
			t.Errorf("from %v to %v", o.First.Sub(begin), o.Last.Sub(begin))
		}
	})
}

// TestCallersEnd runs callers that ask again at once, and one that is refused.
func TestCallersEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := callers{Keys: 1, N: 3, Duration: time.Second}
		answer := func(key string) (bool, error) {
			time.Sleep(100 * time.Millisecond)
			return true, nil
		}
		o := c.run(time.Now(), []decider{answer, answer, func(string) (bool, error) { return false, errors.New("refused") }})
		if len(o.Taken) != 20 || o.Allowed != 20 || o.Last.Sub(o.First) != time.Second || o.Err != "refused" {
			t.Errorf("%+v", o)
		}
	})
}

func TestPermitted(t *testing.T) {
	if got := (limitWords{Burst: 4, Count: 30, Seconds: 60}).permitted(10, 3*time.Second); got != 10*(5+1.5) {
		t.Error(got)
	}
}

func TestReadAllowed(t *testing.T) {
	in := bufio.NewReader(strings.NewReader("*5\r\n:0\r\n:2\r\n:1\r\n:-1\r\n:2\r\n" + "*2\r\n$1\r\nx\r\n*2\r\n:1\r\n:0\r\n" +
		"-ERR no\r\n"))
	for _, want := range []bool{true, false} {
		if got, err := readAllowed(in); got != want || err != nil {
			t.Errorf("%v, %v", got, err)
		}
	}
	if _, err := readAllowed(in); err == nil || err.Error() != "ERR no" {
		t.Error(err)
	}
}

func TestScriptCall(t *testing.T) {
	log := "3\n1795376685\n20\nSLOWLOG\nGET\n127.0.0.1:5\n\n2\n1795376685\n20\nEVALSHA\nabc\n1\nsent\n7\n8\n127.0.0.1:4\ncelld\n" +
		"1\n1795376685\n20\nSET\nsent\n7\n127.0.0.1:4\ncelld"
	got, err := scriptCall(log, "sent")
	if want := []string{"EVALSHA", "abc", "1", keyWord, "7", "8"}; !slices.Equal(got, want) || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := scriptCall(log, "another"); err == nil {
		t.Errorf("%q", got)
	}
}
