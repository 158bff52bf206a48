package integration_test

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
)

// TestOneKeyManyClients lets 64 connections of four kinds of client at the same key: never more than its burst passes.
func TestOneKeyManyClients(t *testing.T) {
	t.Parallel()
	srv := startStress(t, "--io-threads", "4")
	const burst, callsEach = 1000, 100 // and a period so long that nothing flows back meanwhile
	args := []string{"shared", strconv.Itoa(burst - 1), "1", "1000000"}
	ctx := context.Background()
	goRedis := redis.NewClient(&redis.Options{Addr: srv.addr, PoolSize: 16, ReadTimeout: replyTimeout})
	defer goRedis.Close()
	rueidisDB, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{srv.addr}, DisableCache: true, ForceSingleClient: true})
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
					ints, err := rueidisDB.Do(ctx, rueidisDB.B().Arbitrary("CL.THROTTLE").Keys(args[0]).Args(args[1:]...).Build()).AsIntSlice()
					count(first(ints), err)
				}
			case 2:
				c, err := redigo.Dial("tcp", srv.addr)
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
				c := dial(t, srv.addr)
				one := frame(append([]string{"CL.THROTTLE"}, args...)...)
				if _, err := c.Write(slices.Repeat(one, callsEach)); err != nil {
					t.Error(err)
					return
				}
				for range callsEach {
					raw, err := c.tryReply(replyTimeout)
					ints, ok := fiveInts(raw)
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
	srv := startStress(t, "--io-threads", "3")
	conns := make([]*conn, 2000)
	for i := range conns {
		conns[i] = dial(t, srv.addr)
	}
	for round := range 2 {
		for i, c := range conns {
			c.send(frame("CL.THROTTLE", strconv.Itoa(i), "15", "30", "6000"))
		}
		for i, c := range conns {
			if ints, ok := fiveInts(c.reply()); !ok || ints[2] != int64(15-round) {
				t.Fatalf("connection %d: %v", i, ints)
			}
		}
	}
	if info := conns[0].do("INFO", "clients"); !containsLine(info, "connected_clients:2000") {
		t.Errorf("INFO clients: %s", info)
	}
	for _, c := range conns[1:] {
		c.Close()
	}
	eventually(t, "the closed connections are forgotten", func() bool { return containsLine(conns[0].do("INFO", "clients"), "connected_clients:1") })
}

// TestConnectionChurn opens and closes connections as fast as it goes, some in the middle of a command.
func TestConnectionChurn(t *testing.T) {
	t.Parallel()
	srv := startStress(t, "--io-threads", "3")
	var clients sync.WaitGroup
	for range 16 {
		clients.Go(func() {
			for i := range 100 {
				c := dial(t, srv.addr)
				switch i % 4 {
				case 0:
					c.Write([]byte("*2\r\n$4\r\nPI"))
				case 1:
					c.Write(slices.Repeat(frame("PING"), 1000)) // and does not wait for the answers
				case 2:
					c.do("MULTI")
				default:
					c.do("CL.THROTTLE", "k", "15", "30", "60")
				}
				c.Close()
			}
		})
	}
	clients.Wait()
	srv.alive()
}

// TestLongPipeline sends 10,000 commands without reading and gets 10,000 replies in order.
func TestLongPipeline(t *testing.T) {
	t.Parallel()
	c := dial(t, startStress(t, "--io-threads", "3").addr)
	const n = 10_000
	go func() {
		var b []byte
		for i := range n {
			b = append(b, frame("ECHO", strconv.Itoa(i))...)
		}
		c.SetWriteDeadline(time.Now().Add(replyTimeout))
		c.Write(b)
	}()
	for i := range n {
		if text, _ := bulk(c.reply()); text != strconv.Itoa(i) {
			t.Fatalf("reply %d: %q", i, text)
		}
	}
}

// TestSplitPackets cuts a pipeline in two at every byte, and into single bytes.
func TestSplitPackets(t *testing.T) {
	t.Parallel()
	srv := start(t)
	pipeline := slices.Concat(frame("ECHO", "a\r\nb"), []byte("PING 'in line'\r\n"), frame("NOSUCH", ""), frame("MULTI"), frame("GET", "nosuch"), frame("EXEC"), frame("PING"))
	const replies = 7
	read := func(c *conn) (all string) {
		for range replies {
			all += c.reply()
		}
		return all
	}
	whole := dial(t, srv.addr)
	whole.send(pipeline)
	want := read(whole)
	for i := 1; i < len(pipeline); i++ {
		c := dial(t, srv.addr)
		c.send(pipeline[:i])
		if i%8 == 0 {
			time.Sleep(time.Millisecond) // so that some of them do arrive apart
		}
		c.send(pipeline[i:])
		if got := read(c); got != want {
			t.Errorf("cut at %d: %q, want %q", i, got, want)
		}
		c.Close()
	}
	c := dial(t, srv.addr)
	for i := range pipeline {
		c.send(pipeline[i : i+1])
	}
	if got := read(c); got != want {
		t.Errorf("single bytes: %q, want %q", got, want)
	}
}
