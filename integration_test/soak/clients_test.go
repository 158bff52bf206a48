package soak

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"time"

	redigo "github.com/gomodule/redigo/redis"

	"celld/integration_test/harness"
)

// patient is a connection whose every read may take replyTimeout, however long all of them take.
type patient struct{ net.Conn }

func (p patient) Read(b []byte) (int, error) {
	_ = p.SetReadDeadline(time.Now().Add(harness.ReplyTimeout))
	return p.Conn.Read(b)
}

// The clients of a soak. Each does a round and returns what is wrong.

// calls sends a pipeline of decisions, and counts their replies. It returns how many passed.
func (s *soak) calls(c redigo.Conn, kind, n int, victim bool, send func() error) (granted int64, err error) {
	count := &s.command[kind]
	for range n {
		if err := send(); err != nil {
			return 0, err
		}
	}
	if victim {
		count.unknown.Add(int64(n))
	}
	if err := c.Flush(); err != nil {
		return 0, err
	}
	for range n {
		ints, err := redigo.Int64s(c.Receive())
		var refused redigo.Error
		switch {
		case errors.As(err, &refused): // no such policy
		case err != nil:
			return granted, err
		case ints[0] == 0:
			count.allowed.Add(1)
			granted++
		default:
			count.limited.Add(1)
		}
		if victim {
			count.unknown.Add(-1)
		}
	}
	return granted, nil
}

var pipelines = []int{1, 1, 3, 16, 128, 500}

func (s *soak) throttle(r *rand.Rand) error {
	c, err := s.connect()
	if err != nil {
		return err
	}
	defer c.Close()
	for range 20 {
		if _, err := s.calls(c, soakThrottle, pipelines[r.IntN(len(pipelines))], false, func() error {
			key := fmt.Sprint("throttle:", r.IntN(2000))
			switch r.IntN(10) {
			case 0:
				return c.Send("CL.THROTTLE", fmt.Sprint("p:", key), "@p")
			case 1:
				return c.Send("EVAL", "return redis.call('CL.THROTTLE', KEYS[1], unpack(ARGV))", 1, key, 5, 30, 1+r.IntN(2), 1)
			}
			return c.Send("CL.THROTTLE", key, 5, 30, 1+r.IntN(2), 1)
		}); err != nil {
			return err
		}
	}
	return nil
}

func (s *soak) take(r *rand.Rand) error {
	c, err := s.connect()
	if err != nil {
		return err
	}
	defer c.Close()
	limits := []string{"5/1s", "100/1s", "50/1s,algo=log", "9/1s,algo=slide", "9/1s,algo=slide,buckets=5", "20/second",
		"1/1m,burst=3", "@p", "@p:x"}
	for range 20 {
		if _, err := s.calls(c, soakTake, pipelines[r.IntN(len(pipelines))], false, func() error {
			args := []any{fmt.Sprint("take:", r.IntN(500)), limits[r.IntN(len(limits))]}
			if r.IntN(4) == 0 {
				args = append(args, "1000/1h")
			}
			if r.IntN(10) == 0 {
				args = append(args, "FORCE")
			}
			return c.Send("CL.TAKE", args...)
		}); err != nil {
			return err
		}
	}
	return nil
}

func (s *soak) transaction(r *rand.Rand) error {
	c, err := s.connect()
	if err != nil {
		return err
	}
	defer c.Close()
	key := fmt.Sprint("tx:", r.IntN(50))
	for _, command := range [][]any{
		{"WATCH", "watched"}, {"MULTI"}, {"CL.THROTTLE", key, 5, 30, 1}, {"CL.TAKE", key + "t", "5/1s"}, {"PING"},
	} {
		if _, err := c.Do(command[0].(string), command[1:]...); err != nil {
			return err
		}
	}
	replies, err := redigo.Values(c.Do("EXEC"))
	if err != nil {
		return err
	}
	for kind, reply := range replies[:2] {
		ints, err := redigo.Int64s(reply, nil)
		if err != nil {
			return err
		}
		if ints[0] == 0 {
			s.command[kind].allowed.Add(1)
		} else {
			s.command[kind].limited.Add(1)
		}
	}
	return nil
}

// victim does what a client does that is killed sooner or later, by itself or by others.
func (s *soak) victim(r *rand.Rand) error {
	raw, err := s.dialVictim()
	if err != nil {
		return nil // it was killed in the middle of its handshake
	}
	if r.IntN(2) == 0 {
		reset(raw)
	}
	defer raw.Close()
	c := redigo.NewConn(raw, harness.ReplyTimeout, harness.ReplyTimeout)
	for range r.IntN(20) {
		switch r.IntN(5) {
		case 0:
			_, _ = c.Do("MONITOR")
			return nil
		case 1:
			_, err = c.Do("KEYS", "*")
		case 2: // gone before the replies
			n := pipelines[r.IntN(len(pipelines))]
			s.command[soakTake].unknown.Add(int64(n))
			frames := bytes.Repeat(harness.Frame("CL.TAKE", "victim", "5/1s"), n)
			_, _ = raw.Write(frames[:len(frames)-r.IntN(20)])
			return nil
		case 3:
			_, err = s.calls(c, soakTake, pipelines[r.IntN(len(pipelines))], true, func() error {
				return c.Send("CL.TAKE", "victim", "5/1s")
			})
		default:
			_, err = s.calls(c, soakThrottle, pipelines[r.IntN(len(pipelines))], true, func() error {
				return c.Send("CL.THROTTLE", "victim:t", 5, 30, 1)
			})
		}
		if err != nil {
			return nil
		}
	}
	return nil
}

// open connects and closes at once, before or after a word. It seldom uses the port of TLS: too many unfinished handshakes cost the
// oldest its place. That may belong to a client whose replies must come.
func (s *soak) open(r *rand.Rand) error {
	port := 0
	if r.IntN(50) == 0 {
		port = 1
	}
	c, err := net.Dial("tcp", s.victims[port])
	if err != nil {
		return err
	}
	if r.IntN(2) == 0 {
		_, _ = c.Write([]byte("PING\r\n"))
	}
	if r.IntN(2) == 0 {
		reset(c)
	}
	return c.Close()
}

func (s *soak) kill(r *rand.Rand) error {
	c, err := s.connect()
	if err != nil {
		return err
	}
	defer c.Close()
	for range 50 {
		for _, addr := range s.victims {
			n, err := redigo.Int64(c.Do("CLIENT", "KILL", "LADDR", addr))
			if err != nil {
				return err
			}
			s.kills.Add(n)
		}
		if r.IntN(4) == 0 {
			time.Sleep(time.Duration(r.IntN(20)) * time.Millisecond)
		}
	}
	return nil
}

// halfClose sends slow and quick commands, says that no more will come, and counts the replies.
func (s *soak) halfClose(r *rand.Rand) error {
	c, err := s.dial(s.patient)
	if err != nil {
		return err
	}
	defer c.Close()
	n := 1 + r.IntN(40)
	request := append(bytes.Repeat(harness.Frame("KEYS", "nothing:*"), n), "PING\r\n*2\r\n$4\r\nPI"...)
	if _, err := c.Write(request); err != nil {
		return err
	}
	if err := c.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		return err
	}
	got, err := io.ReadAll(patient{c})
	if want := strings.Repeat("*0\r\n", n) + "+PONG\r\n"; err != nil || string(got) != want {
		return fmt.Errorf("%d commands and a half-close: %d bytes of %d, %w", n, len(got), len(want), err)
	}
	return nil
}

// quit asks for much, says goodbye, and reads late: all of it comes.
func (s *soak) quit(r *rand.Rand) error {
	c, err := s.dial(s.patient)
	if err != nil {
		return err
	}
	defer c.Close()
	time.Sleep(time.Duration(r.IntN(300)) * time.Millisecond)
	text := strings.Repeat("x", 60<<10)
	n := 1 + r.IntN(80)
	go func() {
		_, _ = c.Write(append(bytes.Repeat(harness.Frame("ECHO", text), n), "QUIT\r\n"...))
	}()
	time.Sleep(time.Duration(r.IntN(600)) * time.Millisecond)
	got, err := io.Copy(io.Discard, patient{c})
	if want := int64(n*(len(text)+10) + 5); err != nil || got != want {
		return fmt.Errorf("%d ECHOs and QUIT: %d bytes of %d, %w", n, got, want, err)
	}
	return nil
}

// slowReader takes its replies in small bites, or leaves in the middle of them.
func (s *soak) slowReader(r *rand.Rand) error {
	c, err := s.dialVictim()
	if err != nil {
		return nil
	}
	defer c.Close()
	if _, err := c.Write(bytes.Repeat(harness.Frame("KEYS", "*"), 30)); err != nil {
		return nil
	}
	for range r.IntN(30) {
		if _, err := io.CopyN(io.Discard, patient{c}, 1+r.Int64N(20_000)); err != nil {
			return nil
		}
		time.Sleep(time.Millisecond)
	}
	return nil
}

// monitor starts, stops and starts to watch: what others do must reach it again.
func (s *soak) monitor(r *rand.Rand) error {
	c := harness.Dial(s.t, s.srv.Addr)
	defer c.Close()
	mark := fmt.Sprint("mark-", r.Uint64())
	c.Send([]byte("MONITOR\r\n"))
	c.Send([]byte("PING\r\nRESET\r\n"))
	for line := ""; line != "+RESET\r\n"; {
		var err error
		if line, err = c.TryReply(harness.ReplyTimeout); err != nil {
			return err
		}
		if line[0] == '-' {
			return errors.New(line)
		}
	}
	c.Send([]byte("MONITOR\r\n"))
	if line, err := c.TryReply(harness.ReplyTimeout); err != nil || line != "+OK\r\n" {
		return fmt.Errorf("MONITOR again: %q, %w", line, err)
	}
	if _, err := s.do("ECHO", mark); err != nil {
		return err
	}
	for {
		line, err := c.TryReply(harness.ReplyTimeout)
		if err != nil {
			return fmt.Errorf("MONITOR is silent: %w", err)
		}
		if strings.Contains(line, mark) {
			return nil
		}
	}
}

func (s *soak) settings(r *rand.Rand) error {
	pick := func(values ...string) string { return values[r.IntN(len(values))] }
	for _, args := range [][]any{
		{"SET", "maxmemory", pick("512mb", "600mb", "1gb"), "maxmemory-policy", pick("noeviction", "allkeys-lru")},
		{"SET", "max-keys", pick("100000", "200000", "1000000")},
		{"SET", "slowlog-log-slower-than", pick("0", "-1", "1000", "10000")},
		{"SET", "timeout", pick("0", "300"), "maxclients", pick("2000", "10000")},
		{"SET", "io-threads-nonsense", "1"}, {"SET", "max-keys", "1", "timeout", "abc"},
		{"SET", "auto-aof-rewrite-percentage", pick("0", "50", "100")}, {"SET", "save", pick("", "1 1", "60 100")}, {"GET", "*"},
	} {
		if _, err := s.do("CONFIG", args...); err != nil && !errors.As(err, new(redigo.Error)) {
			return err
		}
	}
	_, err := s.do("SLOWLOG", "GET", "10")
	return err
}

// rename moves keys over each other, and keys that stay over themselves by way of another name.
func (s *soak) rename(r *rand.Rand) error {
	c, err := s.connect()
	if err != nil {
		return err
	}
	defer c.Close()
	for range 50 {
		from, to := fmt.Sprint("rename:", r.IntN(100)), fmt.Sprint("rename:", r.IntN(100))
		if _, err := c.Do("RENAME", from, to); err != nil && !strings.Contains(err.Error(), "no such key") {
			return err
		}
		if _, err := c.Do("RENAMENX", to, from); err != nil && !strings.Contains(err.Error(), "no such key") {
			return err
		}
		if _, err := c.Do("SET", from, "9000000000000000000"); err != nil {
			return err
		}
		_, err := c.Do("COPY", s.stay[r.IntN(len(s.stay))], s.stay[r.IntN(len(s.stay))], "REPLACE")
		if err != nil && !strings.Contains(err.Error(), "the same") {
			return err
		}
		if _, err := c.Do("RENAME", from, s.stay[r.IntN(len(s.stay))]); err != nil {
			return err
		}
		if _, err := c.Do("SET", from, "9000000000000000000"); err != nil {
			return err
		}
	}
	return nil
}

// scan finds each key that exists throughout.
func (s *soak) scan(r *rand.Rand) error {
	c, err := s.connect()
	if err != nil {
		return err
	}
	defer c.Close()
	found := map[string]bool{}
	for cursor := "0"; ; {
		reply, err := redigo.Values(c.Do("SCAN", cursor, "COUNT", 1+r.IntN(100)))
		if err != nil {
			return err
		}
		cursor, _ = redigo.String(reply[0], nil)
		keys, _ := redigo.Strings(reply[1], nil)
		for _, key := range keys {
			found[key] = true
		}
		if cursor == "0" {
			break
		}
	}
	for _, key := range s.stay {
		if !found[key] {
			return fmt.Errorf("SCAN has missed %s", key)
		}
	}
	return nil
}

func (s *soak) policies(r *rand.Rand) error {
	limits := []string{"10/1s", "1000/1s", "5/1s,algo=log", "9/1m,algo=window", "9/1s,algo=slide,buckets=9", "7/1s,block=100ms",
		"100/1s,burst=3"}
	for _, command := range [][]any{
		{"CL.POLICY", "SET", "p", limits[r.IntN(len(limits))]}, {"CL.POLICY", "SET", "p", limits[r.IntN(len(limits))], "RESET"},
		{"CL.RULE", "ADD", "DENY", "take:1*", "EX", 1}, {"CL.RULE", "ADD", "ALLOW", "throttle:7*"},
		{"CL.RULE", "DEL", "ALLOW", "throttle:7*"}, {"CL.POLICY", "LIST"}, {"CL.RULE", "LIST"}, {"CL.POLICY", "DEL", "p"},
		{"CL.POLICY", "SET", "p", limits[r.IntN(len(limits))]},
	} {
		if _, err := s.do(command[0].(string), command[1:]...); err != nil {
			return err
		}
	}
	return nil
}

func (s *soak) files(r *rand.Rand) error {
	command := []string{"BGREWRITEAOF", "BGSAVE", "SAVE", "BGREWRITEAOF"}[r.IntN(4)]
	if _, err := s.do(command); err != nil && !errors.As(err, new(redigo.Error)) {
		return err
	}
	time.Sleep(time.Duration(r.IntN(200)) * time.Millisecond)
	return nil
}
