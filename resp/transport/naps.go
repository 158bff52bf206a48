//go:build linux

package transport

// naps decides when an event loop naps.
//
// A loop under load from many connections that has nothing to do will soon have more to do. It naps for some 60 µs, whatever
// arrives. Then it finds several batches, where it would have been woken for the first; each wake-up costs 2 µs and more. At
// -P 1 and 50 connections naps reduced a command from 7.7 to 6.4 µs and p99 from 0.55 to 0.45 ms, as fewer, fuller rounds
// answer the same load.
//
// A nap pays if it gathers at least two batches, from at most half of the connections. If all of them wait for answers, a nap
// only makes them wait longer. The loop tries a nap once in napEvery batches, and goes on as long as naps pay.
//
// Other lengths and rules were worse:
//
//   - No naps, or naps of 150 or 200 µs, -P 1 and 50 connections, medians of five runs beside each other: 8.80, 8.23 and 8.05 µs a
//     command over TCP, not 7.89 (PING of redis-server: 8.56); 5.91, 5.10 and 5.41 over a unix socket, not 4.87 (PING: 5.08).
//     Throughput was 2 to 8 % less, and p99 the same within the noise.
//   - Nap after every round, even if there is work: p99 0.68 ms at 60 µs.
//   - Nap as long as a nap gathers three batches, however few connections there are: 4 connections that each wait for their
//     answer made 44,000 requests a second, not 75,000.
//   - Lock the loop to its thread, to set how exactly the thread is woken: one connection that waits for each answer cost
//     28.5 µs a command, not 21.5.
type naps struct {
	pay      bool // the last nap did
	batches  int  // since the last trial
	distinct int  // connections that these batches came from
	active   int  // distinct at the last trial
	trial    uint32
}

const (
	napNS    = 20_000 // to which the kernel adds up to 50 µs, its timer slack
	napEvery = 64
)

// served counts a batch. of is the trial in which its connection was last counted.
func (n *naps) served(of *uint32) {
	n.batches++
	if *of != n.trial {
		*of = n.trial
		n.distinct++
	}
}

// due says whether a loop that has nothing to do may nap.
func (n *naps) due() bool {
	if n.batches < napEvery {
		return n.pay
	}
	n.active, n.distinct, n.batches = n.distinct, 0, 0
	n.trial++
	return true
}

// gathered records how many connections had something to read after a nap.
func (n *naps) gathered(connections int) {
	n.pay = 2 <= connections && connections <= n.active/2
}
