package soak

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	redigo "github.com/gomodule/redigo/redis"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// queued are limits that calls wait for. Each key has one, at a rate that their callers exceed.
const queued, queuedPerSecond = 4, 200

// wait sends pipelines of calls that wait for their turn. At the end the grants of all clients must fit the rate.
func (s *soak) wait(r *rand.Rand) error {
	c, err := s.connect()
	if err != nil {
		return err
	}
	defer c.Close()
	for range 20 {
		n := r.IntN(queued)
		granted, err := s.calls(c, soakTake, 1+r.IntN(20), false, func() error {
			return c.Send("CL.TAKE", fmt.Sprint("queue:", n), fmt.Sprintf("%d/1s,burst=1", queuedPerSecond), "WAIT", 1+r.IntN(100))
		})
		if s.granted[n].Add(granted); err != nil {
			return err
		}
	}
	return nil
}

// impatient begins to wait, for a turn or for a lease, and goes, or is unblocked or killed by others.
func (s *soak) impatient(r *rand.Rand) error {
	raw, err := s.dialVictim()
	if err != nil {
		return nil
	}
	defer raw.Close()
	c := redigo.NewConn(raw, harness.ReplyTimeout, harness.ReplyTimeout)
	id, err := redigo.Int64(c.Do("CLIENT", "ID"))
	if err != nil {
		return nil
	}
	call := []any{fmt.Sprint("queue:", r.IntN(queued)), fmt.Sprintf("%d/1s,burst=1", queuedPerSecond), "WAIT", 1000}
	if r.IntN(2) == 0 {
		call = []any{"semaphore", semaphoreLimit, "BIND", "WAIT", 1000}
	}
	s.command[soakTake].unknown.Add(1)
	if c.Send("CL.TAKE", call...) != nil || c.Flush() != nil {
		return nil
	}
	time.Sleep(time.Duration(r.IntN(10)) * time.Millisecond)
	switch r.IntN(3) {
	case 0: // gone
	case 1:
		_, err := s.do("CLIENT", "UNBLOCK", id, []string{"TIMEOUT", "ERROR"}[r.IntN(2)])
		if err != nil {
			return err
		}
		_, _ = c.Receive()
	default:
		_, _ = c.Receive()
	}
	return nil
}

// The semaphore allows this many leases. A lease outlives the soak, so only a client that gives it back or closes frees its place.
const semaphorePlaces, semaphoreLimit = 5, "5/24h,algo=conc"

// lease takes a place in the semaphore and gives it back. No more clients hold one than there are places, and ids grow.
func (s *soak) lease(r *rand.Rand) error {
	c, err := s.connect()
	if err != nil {
		return err
	}
	defer c.Close()
	last := int64(0)
	for range 20 {
		args := []any{"semaphore", semaphoreLimit, "WAIT", 1 + r.IntN(50)}
		bound := r.IntN(3) == 0
		if bound {
			args = append(args, "BIND")
		}
		id, err := s.take8(c, args...)
		if err != nil || id == 0 {
			if err == nil {
				continue
			}
			return err
		}
		if held := s.held.Add(1); held > semaphorePlaces {
			return fmt.Errorf("%d clients hold one of %d places", held, semaphorePlaces)
		}
		if id <= last {
			return fmt.Errorf("a lease has the id %d, after %d", id, last)
		}
		last = id
		if renewed, err := redigo.Int(c.Do("CL.RENEW", "semaphore", id, 86_400_000)); err != nil || renewed != 1 {
			return fmt.Errorf("CL.RENEW of a lease that is held: %d, %w", renewed, err)
		}
		s.held.Add(-1)
		for again := range 2 {
			if released, err := redigo.Int(c.Do("CL.RELEASE", "semaphore", id)); err != nil || released != 1-again {
				return fmt.Errorf("CL.RELEASE, %d times before: %d, %w", again, released, err)
			}
		}
	}
	return nil
}

// budget takes from a budget by leases, and settles them, renews them or lets them flow back.
func (s *soak) budget(r *rand.Rand) error {
	c, err := s.connect()
	if err != nil {
		return err
	}
	defer c.Close()
	limits := []string{"1000/1s", "500/1s,algo=window", "500/1s,algo=slide", "100/1s,algo=log"}
	for range 50 {
		key := fmt.Sprint("budget:", r.IntN(20))
		args := []any{key, limits[r.IntN(len(limits))], "COST", 1 + r.IntN(20), "LEASE", 1 + r.IntN(200)}
		if r.IntN(3) == 0 {
			args = append(args, "ID", fmt.Sprint("job-", r.IntN(50)))
		}
		id, err := s.take8(c, args...)
		if err != nil {
			return err
		}
		if id == 0 {
			continue
		}
		command := [][]any{{"CL.SETTLE", key, id, r.IntN(40)}, {"CL.RENEW", key, id, 1 + r.IntN(100)}, {"CL.RELEASE", key, id},
			{"HGETALL", key}, {"RENAME", key, key}}[r.IntN(5)]
		_, err = c.Do(command[0].(string), command[1:]...)
		if err != nil && !strings.Contains(err.Error(), "no such key") && !strings.Contains(err.Error(), "same") {
			return err
		}
	}
	return nil
}

// take8 takes by a lease, counts the answer, and returns its id, or 0.
func (s *soak) take8(c redigo.Conn, args ...any) (id int64, err error) {
	ints, err := redigo.Int64s(c.Do("CL.TAKE", args...))
	if err != nil {
		return 0, err
	}
	if len(ints) != 8 {
		return 0, fmt.Errorf("CL.TAKE %v: %d integers", args, len(ints))
	}
	if ints[0] != 0 {
		s.command[soakTake].limited.Add(1)
		return 0, nil
	}
	s.command[soakTake].allowed.Add(1)
	return ints[7], nil
}

// Scripts that decide, fail at some depth, or take much for a moment.
var soakScripts = []struct {
	text string
	fail string // a part of the error; empty: it does not fail
}{
	{`local t = redis.call('CL.TAKE', KEYS[1], '20/1s') if t[1] == 0 then return redis.call('CL.THROTTLE', KEYS[2], 5, 30, 1)[1] end return -1`, ""},
	{`local function f(n) if n == 0 then error('deep') end return f(n - 1) end return f(10000)`, "deep"},
	{`local n = 0 for i = 1, 1000 do if not pcall(error, 'x') then n = n + 1 end end return n`, ""},
	{`local t = {} for i = 1, 20000 do t[i] = 'xxxxxxxxxx' end return #table.concat(t)`, ""},
	{`return redis.call('CL.TAKE', KEYS[1], 'nonsense')`, "invalid limit"},
	{`return redis.call('NOTHING')`, "nknown"},
	{`return string.rep('x', 1e10)`, "memory"},
}

// script runs scripts by their text and by their sum.
func (s *soak) script(r *rand.Rand) error {
	c, err := s.connect()
	if err != nil {
		return err
	}
	defer c.Close()
	for range 20 {
		script := soakScripts[r.IntN(len(soakScripts))]
		if calls := strings.Contains(script.text, "20/1s"); calls {
			s.command[soakTake].unknown.Add(1)
			s.command[soakThrottle].unknown.Add(1)
		}
		keys := []any{2, fmt.Sprint("script:", r.IntN(100)), fmt.Sprint("script:t", r.IntN(100))}
		var err error
		if r.IntN(2) == 0 {
			_, err = c.Do("EVAL", append([]any{script.text}, keys...)...)
		} else {
			var sum any
			if sum, err = c.Do("SCRIPT", "LOAD", script.text); err == nil {
				_, err = c.Do("EVALSHA", append([]any{sum}, keys...)...)
			}
		}
		if script.fail == "" && err != nil ||
			script.fail != "" && (err == nil || !errors.As(err, new(redigo.Error)) || !strings.Contains(err.Error(), script.fail)) {
			return fmt.Errorf("%s: %w", script.text, err)
		}
	}
	return nil
}

// checkWaits compares what was granted with what the limits permit. Nobody holds or waits for anything any more.
func (s *soak) checkWaits(took time.Duration) {
	for n := range queued {
		if granted, most := s.granted[n].Load(), 1+int64(took.Seconds()*queuedPerSecond)+1; granted > most {
			s.t.Errorf("queue:%d granted %d calls in %s, and permits %d", n, granted, took, most)
		}
	}
	celldtest.Eventually(s.t, "all places of the semaphore are free", func() bool {
		taken, err := redigo.Int64s(s.do("CL.TAKE", "semaphore", semaphoreLimit, "PEEK"))
		return err == nil && taken[2] == semaphorePlaces
	})
}

// waits is what soaks of waiting and leases have seen.
type waits struct {
	granted [queued]atomic.Int64
	held    atomic.Int64 // places of the semaphore
}
