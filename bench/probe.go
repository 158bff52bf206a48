//go:build linux

package main

import (
	"errors"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"

	"celld/resp/wire"
)

// probe asks a server one command every ms over a connection of its own, or at once where the answer before took longer
// than that, and notes how long each answer took.
type probe struct {
	stopping chan struct{}
	stopped  chan struct{}
	mu       sync.Mutex
	taken    []time.Duration
	err      error
}

const probeEvery = time.Millisecond

func startProbe(s *server) (*probe, error) {
	conn, err := dialSocket(s.addr)
	if err != nil {
		return nil, err
	}
	words := s.peer.words()
	if len(words) > 1 {
		words[1] = "probe"
	}
	p := &probe{stopping: make(chan struct{}), stopped: make(chan struct{}), taken: make([]time.Duration, 0, 1<<18)}
	go p.loop(conn, wire.AppendCommand(nil, words...), newReplies(conn, s.peer))
	return p, nil
}

func (p *probe) loop(conn socket, request []byte, in replies) {
	runtime.LockOSThread() // its thread sleeps in the kernel and wakes without Go's scheduler; it ends with the goroutine
	defer close(p.stopped)
	defer conn.Close()
	for due := time.Now(); ; due = due.Add(probeEvery) {
		select {
		case <-p.stopping:
			return
		default:
		}
		if wait := time.Until(due); wait > 0 {
			sleepThread(wait)
		}
		due = time.Now() // that the kernel woke it late is not the server's
		_, err := conn.Write(request)
		if err == nil {
			_, err = in.next()
		}
		took := time.Since(due)
		p.mu.Lock()
		if p.taken = append(p.taken, took); err != nil {
			p.err = err
			p.mu.Unlock()
			return
		}
		p.mu.Unlock()
	}
}

// take returns, and forgets, what was noted so far.
func (p *probe) take() (latencies, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	taken := withOmitted(p.taken)
	p.taken = p.taken[:0]
	if p.err == nil && len(taken) == 0 {
		return nil, errors.New("the probe got no answer")
	}
	slices.Sort(taken)
	return taken, p.err
}

func (p *probe) stop() {
	close(p.stopping)
	<-p.stopped
}

// latencies are sorted.
type latencies []time.Duration

// withOmitted adds the answers that others, asking once a millisecond, would have waited for: a pause of 50 ms is 50 slow answers,
// not one. This corrects coordinated omission, as HdrHistogram does.
func withOmitted(taken []time.Duration) latencies {
	all := slices.Clone(taken)
	for _, took := range taken {
		for took -= probeEvery; took > 0; took -= probeEvery {
			all = append(all, took)
		}
	}
	return all
}

// permille returns the latency that so many thousandths of the answers do not exceed.
func (l latencies) permille(n int) time.Duration {
	return l[max((len(l)*n+999)/1000, 1)-1]
}

func (l latencies) longest() time.Duration { return l[len(l)-1] }

func milliseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }

// sleepThread sleeps in the kernel instead of in Go's scheduler.
func sleepThread(d time.Duration) {
	left := syscall.NsecToTimespec(d.Nanoseconds())
	_ = syscall.Nanosleep(&left, nil) // woken early by a signal is no harm
}
