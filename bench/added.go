//go:build linux

package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// added is what celld adds to the engine's own latency: callers ask celld, and, in turns of a second, send the engine what celld sends it.
type added struct{ onEngine }

const (
	directP50 metric = "direct_p50_ms"
	directP99 metric = "direct_p99_ms"
	addedP50  metric = "added_p50_ms"
	addedP99  metric = "added_p99_ms"
)

func (w added) fits(p *peer) bool { return p.isCelld() }

func (w added) quick() work { return added{w.onEngine.quick().(onEngine)} }

func (w added) run(b *bench, p *peer) (sample, error) {
	e, err := w.start(b, p)
	if err != nil {
		return nil, err
	}
	defer e.stop()
	through := w.callersOf(p, e)[0]
	through.Duration = w.lasts() / 4
	direct := through
	direct.Addrs = []string{e.server.addr}
	if direct.Command, err = e.sent(through); err != nil {
		return nil, err
	}
	var taken, takenDirect latencies
	for range 2 {
		for _, turn := range []struct {
			callers
			taken *latencies
		}{{through, &taken}, {direct, &takenDirect}} {
			o, err := b.call([]callers{turn.callers})
			if err != nil {
				return nil, fmt.Errorf("%w%s", err, e.lastLog())
			}
			*turn.taken = append(*turn.taken, o.Taken...)
		}
	}
	slices.Sort(taken)
	slices.Sort(takenDirect)
	result := sample{p50: milliseconds(taken.permille(500)), p99: milliseconds(taken.permille(990)),
		directP50: milliseconds(takenDirect.permille(500)), directP99: milliseconds(takenDirect.permille(990)),
		perSecond: float64(len(taken)) / (2 * through.Duration).Seconds()}
	result[addedP50], result[addedP99] = result[p50]-result[directP50], result[p99]-result[directP99]
	return result, nil
}

// sent returns the script's call that celld sends for a call of the key that is asked again, with keyWord for the key.
func (e *engine) sent(c callers) ([]string, error) {
	const key = "sent"
	if _, err := ask(e.server.addr, "CONFIG", "SET", "slowlog-log-slower-than", "0"); err != nil {
		return nil, err
	}
	for range 3 {
		words := slices.Clone(c.Command)
		words[slices.Index(words, keyWord)] = key
		if _, err := ask(e.celld[0].addr, words...); err != nil {
			return nil, err
		}
	}
	log, err := ask(e.server.addr, "SLOWLOG", "GET", "100")
	if err != nil {
		return nil, err
	}
	if _, err := ask(e.server.addr, "CONFIG", "SET", "slowlog-log-slower-than", "-1"); err != nil {
		return nil, err
	}
	return scriptCall(log, key)
}

// addrLine is what follows a command's words in SLOWLOG: who sent it.
var addrLine = regexp.MustCompile(`^[0-9.]+:[0-9]+$`)

// scriptCall finds the last EVALSHA of a key in the lines of SLOWLOG GET, whose first entry is the last call.
func scriptCall(log, key string) ([]string, error) {
	lines := strings.Split(log, "\n")
	for i, line := range lines {
		if line != "EVALSHA" {
			continue
		}
		end := i
		for end < len(lines) && !addrLine.MatchString(lines[end]) {
			end++
		}
		if at := slices.Index(lines[i:end], key); at > 0 {
			lines[i+at] = keyWord
			return lines[i:end], nil
		}
	}
	return nil, fmt.Errorf("no EVALSHA of %s among what the engine was sent", key)
}
