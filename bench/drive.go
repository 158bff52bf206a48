//go:build linux

package main

import (
	"errors"
	"fmt"
	"strings"

	"celld/resp/wire"
)

// drive is a load by redis-benchmark: CL.THROTTLE key:<12 digits> 15 30 60 on random keys, PING where the peer is asked
// nothing else. With few keys nearly all calls are limited. The rows of many keys have limits of their own, so that each
// measures one thing.
//
// In the rows about the append-only file every call passes, so each is a change. throttlecrab has no such file. redis-server is
// also asked SET.
type drive struct {
	clients, pipeline, keys, requests int
	fsync                             string   // --appendfsync, or noFile; empty: a row about something else
	question                          question // in place of CL.THROTTLE's; nil: a row about something else
	limit                             string   // lasting or brief; empty: 15 30 60
	tls                               bool     // by TLS
	scraped                           bool     // somebody reads celld's metrics each second
}

// question is what a row asks about each key in place of CL.THROTTLE key 15 30 60.
type question interface {
	fits(*peer) bool
	words(*peer) []string
	calls() int // to each key before anything is measured
	prepare(b *bench, s *server, keys int) error
	check(b *bench, s *server, keys int) error // afterwards
}

const (
	noFile = "off"

	// lasting lets all but some of four calls a key pass, and no key expires: a call takes two minutes of the limit.
	lasting = "15 30 3600"
	// brief makes a limit whose key ends 10 ms after its call. Of a million keys, one is asked every
	// 0.2 s at most, so nearly all have ended.
	brief = "15 100 1"

	// anyKey is so many random keys that of four million calls less than one in 500 is for a key that is there.
	anyKey = 2_000_000_000
)

// fresh tells that the calls are for new keys.
func (w drive) fresh() bool { return w.keys == anyKey }

func (w drive) persists() bool { return w.fsync != "" }

// appendFsync is what the server is told, empty for no file.
func (w drive) appendFsync() string {
	if w.fsync == noFile {
		return ""
	}
	return w.fsync
}

func (w drive) fits(p *peer) bool {
	if w.question != nil {
		return w.question.fits(p)
	}
	if w.persists() {
		return p.throttles() || p.sets()
	}
	if w.scraped {
		return p.isCelld()
	}
	if w.tls && !p.takesTLS() {
		return false
	}
	return !p.special() && (!p.pings() || w.keys == 1000)
}

// words returns the peer's command. Where every call must pass, it allows one a minute and a million at once, so a key lives for at
// least a minute, like SET's.
func (w drive) words(p *peer) []string {
	if w.question != nil {
		return w.question.words(p)
	}
	words := p.words()
	if w.limit != "" {
		words = append(words[:2], strings.Fields(w.limit)...)
	}
	if w.persists() && p.throttles() {
		words[2], words[3] = "1000000", "1"
	}
	return words
}

func (w drive) quick() work {
	w.requests /= 10
	return w
}

// on returns the work for this peer. Slow peers get fewer requests. throttlecrab sends the replies to a pipeline in small packets
// and waits for the acknowledgement of each (Nagle's algorithm), so it answers 18,000 commands a second at P=16.
func (w drive) on(p *peer) drive {
	if p.name == "throttlecrab" && w.pipeline > 1 {
		w.requests /= 16
	}
	if p.scripts() && w.pipeline > 1 { // 10 to 20 times the time a command
		w.requests /= 8
	}
	return w
}

func (w drive) seconds(p *peer) float64 {
	w = w.on(p)
	perSecond := map[int]float64{1: 110e3, 16: 800e3, 128: 1e6}[w.pipeline]
	if w.clients == 1 {
		perSecond = 25e3
	}
	if p.name == "throttlecrab" {
		perSecond = map[int]float64{1: 60e3, 16: 18e3, 128: 150e3}[w.pipeline]
	}
	if p.scripts() {
		perSecond = map[int]float64{1: 60e3, 16: 150e3}[w.pipeline]
	}
	if w.question != nil {
		return 1 + float64(w.requests+w.keys*w.question.calls())/perSecond
	}
	if w.persists() {
		return 5 + float64(w.requests)/map[int]float64{1: 70e3, 16: 400e3}[w.pipeline] + float64(w.keys)/300e3
	}
	estimate := 1 + float64(w.clients)/1250 + float64(w.requests)/perSecond
	if !w.fresh() {
		estimate += float64(w.keys) / 300e3
	}
	return estimate
}

func (w drive) run(b *bench, p *peer) (sample, error) {
	w = w.on(p)
	if err := raiseOpenFiles(uint64(w.clients) + 200); err != nil {
		return nil, err
	}
	most := w.keys
	if w.fresh() {
		most = w.requests
	}
	s, err := b.start(p, room{keys: most * 5 / 4, connections: w.clients + 100, fsync: w.appendFsync(), tls: w.tls, scraped: w.scraped})
	if err != nil {
		return nil, err
	}
	defer s.stop()
	var writtenBefore, writtenAfter int64
	if err := w.prepare(b, s); err != nil {
		return nil, err
	}
	if w.persists() {
		if writtenBefore, err = s.allWritten(b); err != nil {
			return nil, err
		}
	}

	command := w.words(p)[0]
	before, err := p.count(s, command)
	if err != nil {
		return nil, err
	}
	cpuBefore, err := readCPU(s.pid())
	if err != nil {
		return nil, err
	}
	stop := func() error { return nil }
	if w.scraped {
		stop = s.scrape()
	}
	d, err := redisBenchmark(b.ctx, b.tools.redisBenchmark, s, w)
	if err := errors.Join(err, stop()); err != nil {
		return nil, fmt.Errorf("%w%s", err, s.lastLog())
	}
	if w.persists() {
		if writtenAfter, err = s.allWritten(b); err != nil {
			return nil, err
		}
	}
	cpuAfter, err := readCPU(s.pid())
	if err != nil {
		return nil, err
	}
	after, err := p.count(s, command)
	if err != nil {
		return nil, err
	}
	rss, err := readRSS(s.pid())
	if err != nil {
		return nil, err
	}
	done := after.since(before)
	if err := w.check(s, done); err != nil {
		return nil, err
	}
	if w.question != nil {
		if err := w.question.check(b, s, w.keys); err != nil {
			return nil, err
		}
	}
	result := sample{
		cpuMicroseconds: float64(cpuAfter.since(cpuBefore).Nanoseconds()) / 1e3 / float64(done.commands),
		perSecond:       d.perSecond,
		p50:             d.p50, p99: d.p99, p999: d.p999, longest: d.max,
		rssMB: float64(rss) / 1e6,
	}
	if w.persists() {
		result[bytesWritten] = float64(writtenAfter-writtenBefore) / float64(done.commands)
	}
	return result, nil
}

// prepare asks about every key once, so that its memory is allocated before anything is measured. New keys grow the memory.
func (w drive) prepare(b *bench, s *server) error {
	if s.peer.pings() || w.fresh() {
		return nil
	}
	if w.question != nil {
		return w.question.prepare(b, s, w.keys)
	}
	limit := wire.AppendBulks(nil, w.words(s.peer)[2:]...)
	return load{server: s, keys: w.keys, keyLen: 16, limit: func(b []byte) []byte { return append(b, limit...) }}.run(b.ctx)
}

// found tells whether as many calls found their key alive as the row says: all where keys last, hardly any where they are new or brief.
func (w drive) found(done counts) bool {
	switch {
	case w.fresh() || w.limit == brief:
		return done.hits <= done.commands/20
	case w.limit == lasting:
		return done.hits >= done.commands*99/100
	}
	return true
}

// check compares what the server says it did with what was asked of it.
func (w drive) check(s *server, done counts) error {
	// redis-benchmark looks at its count once a pipeline; throttlecrab also counts what redis-benchmark asks first.
	slack := int64(w.clients*w.pipeline + 10)
	if done.failed != 0 || done.commands < int64(w.requests) || done.commands > int64(w.requests)+slack {
		return fmt.Errorf("%d commands asked, %d done, %d failed", w.requests, done.commands, done.failed)
	}
	if s.peer.throttles() && w.question == nil && !w.found(done) {
		return fmt.Errorf("%d of %d calls found their key", done.hits, done.commands)
	}
	keys, err := s.keys()
	if err != nil {
		return err
	}
	least := min(w.keys, w.requests) * 9 / 10
	if w.limit == brief {
		least = 0
	}
	if !s.peer.pings() && keys >= 0 && (keys < least || keys > w.keys) {
		return fmt.Errorf("%d keys after calls on %d", keys, w.keys)
	}
	return nil
}
