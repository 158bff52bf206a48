//go:build linux

package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"

	"celld/resp/wire"
)

// callers are goroutines of a process of their own that ask about random keys, each again once it is answered. Where PerSecond is set,
// all of them together ask so often, at random moments.
type callers struct {
	Addrs     []string // caller n asks Addrs[n % len]
	Command   []string // with keyWord for the key; empty: redis_rate.Allow
	Limit     limitWords
	N, Keys   int
	PerSecond int // 0: as fast as they are answered
	Duration  time.Duration
	Seed      uint64
}

// limitWords are CL.THROTTLE's, so Burst is one less than what passes at once.
type limitWords struct{ Burst, Count, Seconds int }

// callersOutcome is what callers saw.
type callersOutcome struct {
	Allowed     int
	Taken       latencies     // of each call
	First, Last time.Time     // when the first call began, and the last ended
	CPU         time.Duration // of their processes
	Err         string
}

// decider asks about a key.
type decider func(key string) (allowed bool, err error)

// callersMode is the argument that makes this program callers. They read what to do from standard input, write "ready", read when to
// begin, and write their outcome.
const callersMode = "callers"

func callersMain() error {
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	var c callers
	if err := in.Decode(&c); err != nil {
		return err
	}
	deciders, err := c.connect()
	if err != nil {
		return err
	}
	var begin time.Time
	if err := out.Encode("ready"); err != nil {
		return err
	}
	if err := in.Decode(&begin); err != nil {
		return err
	}
	before, err := readCPU(os.Getpid())
	if err != nil {
		return err
	}
	o := c.run(begin, deciders)
	after, err := readCPU(os.Getpid())
	o.CPU = after.since(before)
	return errors.Join(err, out.Encode(o))
}

// connect opens a connection for each caller, and uses it once.
func (c callers) connect() ([]decider, error) {
	deciders := make([]decider, c.N)
	var client *redis.Client
	if len(c.Command) == 0 {
		// By default, go-redis has ten connections for each CPU; others wait for one of them.
		client = redis.NewClient(&redis.Options{Addr: c.Addrs[0], PoolSize: c.N, MinIdleConns: c.N})
	}
	for i := range deciders {
		var err error
		if client != nil {
			deciders[i] = c.redisRate(client)
		} else if deciders[i], err = c.connection(c.Addrs[i%len(c.Addrs)]); err != nil {
			return nil, err
		}
		if _, err := deciders[i](fmt.Sprintf("warm:%d:%d", c.Seed, i)); err != nil {
			return nil, err
		}
	}
	return deciders, nil
}

func (c callers) redisRate(client *redis.Client) decider {
	limiter := redis_rate.NewLimiter(client)
	limit := redis_rate.Limit{Rate: c.Limit.Count, Burst: c.Limit.Burst + 1, Period: time.Duration(c.Limit.Seconds) * time.Second}
	return func(key string) (bool, error) {
		r, err := limiter.Allow(context.Background(), key, limit)
		return err == nil && r.Allowed > 0, err
	}
}

func (c callers) connection(addr string) (decider, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	in := bufio.NewReader(conn)
	head, tail := splitAtKey(c.Command)
	var request []byte
	return func(key string) (bool, error) {
		request = fmt.Appendf(append(request[:0], head...), "%d\r\n%s\r\n%s", len(key), key, tail)
		if _, err := conn.Write(request); err != nil {
			return false, err
		}
		return readAllowed(in)
	}, nil
}

// readAllowed reads a reply. Allowed are those whose first integer is 0, as CL.THROTTLE's.
func readAllowed(in *bufio.Reader) (bool, error) {
	allowed := false
	for left, first := 1, true; left > 0; left-- {
		r, err := wire.ReadReply(in)
		if err != nil {
			return false, err
		}
		if r.Kind == '-' {
			return false, errors.New(string(r.Text))
		}
		if left += r.N; r.Kind == ':' && first {
			allowed, first = string(r.Text) == "0", false
		}
	}
	return allowed, nil
}

// run lets all of them ask from begin on.
func (c callers) run(begin time.Time, deciders []decider) callersOutcome {
	own := make([]callersOutcome, len(deciders))
	var all sync.WaitGroup
	for i, decide := range deciders {
		all.Go(func() { own[i] = c.one(begin, decide, rand.New(rand.NewPCG(c.Seed, uint64(i)))) })
	}
	all.Wait()
	return merged(own)
}

// one is one caller. A call that is due while the one before it is under way has begun when it was due: the wait is the server's. That
// the caller itself wakes late is not.
func (c callers) one(begin time.Time, decide decider, random *rand.Rand) (o callersOutcome) {
	time.Sleep(time.Until(begin))
	due, end := begin, begin.Add(c.Duration)
	for time.Now().Before(end) {
		start := time.Now()
		if c.PerSecond > 0 {
			due = due.Add(time.Duration(random.ExpFloat64() * float64(c.N) / float64(c.PerSecond) * float64(time.Second)))
			if !due.Before(end) {
				return o
			}
			if start = due; time.Until(due) > 0 {
				time.Sleep(time.Until(due))
				start = time.Now()
			}
		}
		allowed, err := decide(fmt.Sprintf("key:%012d", random.IntN(c.Keys)))
		if err != nil {
			o.Err = err.Error()
			return o
		}
		o.Last = time.Now()
		if o.First.IsZero() {
			o.First = start
		}
		if o.Taken = append(o.Taken, o.Last.Sub(start)); allowed {
			o.Allowed++
		}
	}
	return o
}

func merged(parts []callersOutcome) callersOutcome {
	var all callersOutcome
	for _, o := range parts {
		all.Err, all.CPU = cmp.Or(all.Err, o.Err), all.CPU+o.CPU
		if len(o.Taken) == 0 {
			continue
		}
		if all.First.IsZero() || o.First.Before(all.First) {
			all.First = o.First
		}
		if o.Last.After(all.Last) {
			all.Last = o.Last
		}
		all.Allowed += o.Allowed
		all.Taken = append(all.Taken, o.Taken...)
	}
	return all
}

// permitted is the most that a limit lets through on so many keys in so long.
func (l limitWords) permitted(keys int, during time.Duration) float64 {
	return float64(keys) * (float64(l.Burst+1) + float64(l.Count)/float64(l.Seconds)*during.Seconds())
}

func (l limitWords) words() []string {
	return []string{fmt.Sprint(l.Burst), fmt.Sprint(l.Count), fmt.Sprint(l.Seconds)}
}
