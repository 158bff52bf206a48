//go:build linux

package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"celld/resp/wire"
)

// waiting is many callers that wait for one limit. It admits one of them at a time, each on a connection of its own that asks again as
// soon as it is answered. Before, half a second is taken ahead by FORCE. So there is always a queue, and answer n is due half a second and
// n intervals after that call was decided: between when it was sent and when its answer came. Lateness counts from the former, so it
// is the most that it can be. An answer that comes before its moment, counted from there too, fails the row.
type waiting struct {
	waiters   int
	perSecond int
	cost      int // of each call, and the limit's burst: two cores do not answer 100,000 single calls a second beside their callers
	duration  time.Duration
}

const (
	lateP99     metric = "late_p99_ms"
	lateLongest metric = "late_longest_ms"
	rateOff     metric = "rate_off_percent" // of the limit's rate, without sign
)

var waitingRows = []row{
	{name: "wait-100", title: "WAIT, 1,000 callers, 100/s", work: waiting{1000, 100, 1, 10 * time.Second}},
	{name: "wait-10k", title: "WAIT, 1,000 callers, 10,000/s", work: waiting{1000, 10_000, 1, 10 * time.Second}},
	{name: "wait-100k", title: "WAIT, 1,000 callers, 100,000/s, 10 each", work: waiting{1000, 100_000, 10, 10 * time.Second}},
}

var waitingGoals = []goal{
	{row: "wait-100", metric: lateP99, atMost: 2},
	{row: "wait-10k", metric: lateP99, atMost: 2},
	{row: "wait-100k", metric: lateP99, atMost: 2},
	{row: "wait-100", metric: rateOff, atMost: 0.1},
	{row: "wait-10k", metric: rateOff, atMost: 0.1},
	{row: "wait-100k", metric: rateOff, atMost: 0.1},
}

func (w waiting) fits(p *peer) bool { return p.isCelld() }

func (w waiting) quick() work { return waiting{w.waiters, w.perSecond, w.cost, w.duration / 5} }

func (w waiting) seconds(*peer) float64 { return w.duration.Seconds() + 1 }

func (w waiting) run(b *bench, p *peer) (sample, error) {
	s, err := b.start(p, room{connections: w.waiters + 100})
	if err != nil {
		return nil, err
	}
	defer s.stop()
	interval := time.Second * time.Duration(w.cost) / time.Duration(w.perSecond)
	limit, ahead := fmt.Sprintf("%d/1s,burst=%d", w.perSecond, w.cost), "0"
	request := wire.AppendCommand(nil, "CL.TAKE", "queue", limit, "COST", strconv.Itoa(w.cost), "WAIT", "60000")
	sockets := make(map[int32]socket, w.waiters)
	poll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	defer unix.Close(poll)
	for range w.waiters {
		c, err := dialSocket(s.addr)
		if err != nil {
			return nil, err
		}
		defer c.Close()
		sockets[int32(c.fd)] = c
		if err := unix.EpollCtl(poll, unix.EPOLL_CTL_ADD, c.fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(c.fd)}); err != nil {
			return nil, err
		}
	}
	before, err := readCPU(s.pid())
	if err != nil {
		return nil, err
	}
	first, err := dialSocket(s.addr)
	if err != nil {
		return nil, err
	}
	defer first.Close()
	var start time.Time
	reply := make([]byte, 256)
	for range 2 { // the first asks nothing yet: then all connections have been accepted
		start = time.Now()
		if _, err := first.Write(wire.AppendCommand(nil, "CL.TAKE", "queue", limit, "COST", ahead, "FORCE")); err != nil {
			return nil, err
		}
		if n, err := first.Read(reply); err != nil || reply[0] != '*' {
			return nil, fmt.Errorf("the server answers %q: %v", reply[:n], err)
		}
		ahead = strconv.Itoa(w.perSecond / 2)
	}
	for _, c := range sockets {
		if _, err := c.Write(request); err != nil {
			return nil, err
		}
	}
	var came []time.Duration // since start, of each answer
	events := make([]unix.EpollEvent, w.waiters)
	for time.Since(start) < w.duration && b.ctx.Err() == nil {
		n, err := unix.EpollWait(poll, events, 1000)
		if err == unix.EINTR {
			continue
		} else if err != nil {
			return nil, err
		}
		now := time.Since(start)
		for _, e := range events[:n] {
			n, err := sockets[e.Fd].Read(reply)
			if err != nil {
				return nil, err
			}
			if string(reply[:min(n, 8)]) != "*7\r\n:0\r\n" {
				return nil, fmt.Errorf("the server answers %q", reply[:n])
			}
			came = append(came, now)
			if _, err := sockets[e.Fd].Write(request); err != nil {
				return nil, err
			}
		}
	}
	after, err := readCPU(s.pid())
	if err != nil {
		return nil, err
	}
	if len(came) < 10 {
		return nil, fmt.Errorf("%d answers", len(came))
	}
	late := make(latencies, len(came))
	for i, at := range came {
		due := time.Second/2 + time.Duration(i)*interval
		if late[i] = at - due; late[i] < 0 {
			return nil, fmt.Errorf("answer %d came %v before its moment", i, -late[i])
		}
	}
	took := came[len(came)-1] - came[0]
	rate := float64((len(came)-1)*w.cost) / took.Seconds()
	slices.Sort(late)
	return sample{lateP99: milliseconds(late.permille(990)), lateLongest: milliseconds(late.longest()), perSecond: rate,
		rateOff:         math.Abs(rate/float64(w.perSecond)-1) * 100,
		cpuMicroseconds: float64(after.since(before).Microseconds()) / float64(len(came))}, nil
}
