//go:build linux

package transport

// naps decides when an event loop naps.
//
// A loop under load from many connections that has nothing more to do will soon have more. It naps for some 60 µs, whatever
// arrives, and finds several batches where it would have been woken for the first; being woken costs 2 µs and more. At
// -P 1 and 50 connections this took 7.7 to 6.4 µs a command, and p99 from 0.55 to 0.45 ms, as the same load is answered
// in fewer, fuller rounds. What failed: napping after every round, without the look whether there is work (p99 0.68 ms at
// 60 µs); napping for as long as a nap gathers three batches, however few connections there are (4 connections that each wait
// for their answer made 44,000 requests a second, not 75,000); and locking the loop to its thread, to set how exactly that is
// woken (one connection that waits for each answer cost 28.5 µs a command, not 21.5).
//
// So a nap pays where it gathers two batches or more, but from no more than half of the connections: were they all waiting
// for their answers, the nap would only keep them waiting. Once in napEvery batches it is tried; then it goes on for as
// long as it pays.
type naps struct {
	pay      bool // the last one did
	batches  int  // since the last trial
	distinct int  // connections that they came from
	active   int  // distinct, as it was at the last trial
	trial    uint32
}

const (
	napNS    = 20_000 // to which the kernel adds up to 50 µs, its timer slack
	napEvery = 64
)

// served counts a batch. of is the connection's own note of the trial that it was last counted for.
func (n *naps) served(of *uint32) {
	n.batches++
	if *of != n.trial {
		*of = n.trial
		n.distinct++
	}
}

// due says whether the loop, which has nothing to do, may nap.
func (n *naps) due() bool {
	if n.batches < napEvery {
		return n.pay
	}
	n.active, n.distinct, n.batches = n.distinct, 0, 0
	n.trial++
	return true
}

// gathered takes how many connections had something to read after a nap.
func (n *naps) gathered(connections int) {
	n.pay = 2 <= connections && connections <= n.active/2
}
