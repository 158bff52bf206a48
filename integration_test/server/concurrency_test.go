package server

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	redigo "github.com/gomodule/redigo/redis"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// TestOneKeyManyClients calls the same key from 64 connections of four kinds of client: never more than its burst passes.
func TestOneKeyManyClients(t *testing.T) {
	t.Parallel()
	srv := harness.StartStress(t, "--io-threads", "4")
	const burst, callsEach = 1000, 100 // and a period so long that nothing flows back meanwhile
	args := []string{"shared", strconv.Itoa(burst - 1), "1", "1000000"}
	ctx := context.Background()
	goRedis := redis.NewClient(&redis.Options{Addr: srv.Addr, PoolSize: 16, ReadTimeout: harness.ReplyTimeout})
	defer goRedis.Close()
	rueidisDB, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{srv.Addr}, DisableCache: true, ForceSingleClient: true})
	if err != nil {
		t.Fatal(err)
	}
	defer rueidisDB.Close()

	var allowed, denied atomic.Int64
	count := func(limited int64, err error) {
		switch {
		case err != nil:
			t.Error(err)
		case limited == 0:
			allowed.Add(1)
		default:
			denied.Add(1)
		}
	}
	var clients sync.WaitGroup
	for i := range 64 {
		clients.Go(func() {
			switch i % 4 {
			case 0:
				for range callsEach {
					ints, err := goRedis.Do(ctx, "CL.THROTTLE", args[0], args[1], args[2], args[3]).Int64Slice()
					count(first(ints), err)
				}
			case 1:
				for range callsEach {
					ints, err := rueidisDB.Do(ctx,
						rueidisDB.B().Arbitrary("CL.THROTTLE").Keys(args[0]).Args(args[1:]...).Build()).AsIntSlice()
					count(first(ints), err)
				}
			case 2:
				c, err := redigo.Dial("tcp", srv.Addr)
				if err != nil {
					t.Error(err)
					return
				}
				defer c.Close()
				for range callsEach {
					ints, err := redigo.Int64s(c.Do("CL.THROTTLE", args[0], args[1], args[2], args[3]))
					count(first(ints), err)
				}
			default: // all in one pipeline
				c := harness.Dial(t, srv.Addr)
				one := harness.Frame(append([]string{"CL.THROTTLE"}, args...)...)
				if _, err := c.Write(slices.Repeat(one, callsEach)); err != nil {
					t.Error(err)
					return
				}
				for range callsEach {
					raw, err := c.TryReply(harness.ReplyTimeout)
					ints, ok := harness.FiveInts(raw)
					if err == nil && !ok {
						err = fmt.Errorf("%q", raw)
					}
					count(ints[0], err)
				}
			}
		})
	}
	clients.Wait()
	if allowed.Load() != burst || denied.Load() != 64*callsEach-burst {
		t.Errorf("%d calls passed and %d did not, of %d on a burst of %d", allowed.Load(), denied.Load(), 64*callsEach, burst)
	}
}

func first(ints []int64) int64 {
	if len(ints) != 5 {
		return -1
	}
	return ints[0]
}

// TestManyConnections opens 2,000 connections, speaks on each while all are open, and closes them.
func TestManyConnections(t *testing.T) {
	t.Parallel()
	srv := harness.StartStress(t, "--io-threads", "3")
	conns := make([]*harness.Conn, 2000)
	for i := range conns {
		conns[i] = harness.Dial(t, srv.Addr)
	}
	for round := range 2 {
		for i, c := range conns {
			c.Send(harness.Frame("CL.THROTTLE", strconv.Itoa(i), "15", "30", "6000"))
		}
		for i, c := range conns {
			if ints, ok := harness.FiveInts(c.Reply()); !ok || ints[2] != int64(15-round) {
				t.Fatalf("connection %d: %v", i, ints)
			}
		}
	}
	if info := conns[0].Do("INFO", "clients"); !harness.ContainsLine(info, "connected_clients:2000") {
		t.Errorf("INFO clients: %s", info)
	}
	for _, c := range conns[1:] {
		c.Close()
	}
	celldtest.Eventually(t, "the closed connections are forgotten", func() bool {
		return harness.ContainsLine(conns[0].Do("INFO", "clients"), "connected_clients:1")
	})
}

// TestConnectionChurn opens and closes connections as fast as it goes, some in the middle of a command.
func TestConnectionChurn(t *testing.T) {
	t.Parallel()
	srv := harness.StartStress(t, "--io-threads", "3")
	var clients sync.WaitGroup
	for range 16 {
		clients.Go(func() {
			for i := range 100 {
				c := harness.Dial(t, srv.Addr)
				switch i % 4 {
				case 0:
					c.Write([]byte("*2\r\n$4\r\nPI"))
				case 1:
					c.Write(slices.Repeat(harness.Frame("PING"), 1000)) // and does not wait for the answers
				case 2:
					c.Do("MULTI")
				default:
					c.Do("CL.THROTTLE", "k", "15", "30", "60")
				}
				c.Close()
			}
		})
	}
	clients.Wait()
	srv.Alive()
}

// TestLongPipeline sends 10,000 commands without reading and gets 10,000 replies in order.
func TestLongPipeline(t *testing.T) {
	t.Parallel()
	c := harness.Dial(t, harness.StartStress(t, "--io-threads", "3").Addr)
	const n = 10_000
	go func() {
		var b []byte
		for i := range n {
			b = append(b, harness.Frame("ECHO", strconv.Itoa(i))...)
		}
		c.SetWriteDeadline(time.Now().Add(harness.ReplyTimeout))
		c.Write(b)
	}()
	for i := range n {
		if text, _ := harness.Bulk(c.Reply()); text != strconv.Itoa(i) {
			t.Fatalf("reply %d: %q", i, text)
		}
	}
}

// TestSplitPackets cuts a pipeline in two at every byte, and into single bytes. The reply to a PING before the first part tells
// that celld has read it when the second is sent.
func TestSplitPackets(t *testing.T) {
	t.Parallel()
	srv := harness.Start(t)
	pipeline := slices.Concat(harness.Frame("ECHO", "a\r\nb"), []byte("PING 'in line'\r\n"), harness.Frame("NOSUCH", ""),
		harness.Frame("MULTI"), harness.Frame("GET", "nosuch"), harness.Frame("EXEC"), harness.Frame("PING"))
	const replies = 7
	read := func(c *harness.Conn) (all string) {
		for range replies {
			all += c.Reply()
		}
		return all
	}
	whole := harness.Dial(t, srv.Addr)
	whole.Send(pipeline)
	want := read(whole)
	for i := 1; i < len(pipeline); i++ {
		c := harness.Dial(t, srv.Addr)
		c.Send(slices.Concat(harness.Frame("PING"), pipeline[:i]))
		c.Expect("+PONG\r\n")
		c.Send(pipeline[i:])
		if got := read(c); got != want {
			t.Errorf("cut at %d: %q, want %q", i, got, want)
		}
		c.Close()
	}
	c := harness.Dial(t, srv.Addr)
	for i := range pipeline {
		c.Send(pipeline[i : i+1])
	}
	if got := read(c); got != want {
		t.Errorf("single bytes: %q, want %q", got, want)
	}
}
