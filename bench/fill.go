//go:build linux

package main

import (
	"fmt"
	"time"
)

// fill loads distinct keys into an empty server. They all expire at one instant. It measures the memory with the keys and after
// them, and how long others wait meanwhile. A peer that is only pinged gets PINGs: its times are what the machine itself adds.
type fill struct {
	keys, keyLen int
	take         bool // by CL.TAKE, celld alone
}

const (
	settle       = 2 * time.Second // after loading, before memory is read
	goneAtLeast  = 8 * time.Second // after the keys' end
	goneAtMost   = time.Minute
	cleanupEvery = 5 // seconds; throttlecrab's default of 300 would be waited for
	calibrate    = 300_000
)

func (w fill) fits(p *peer) bool {
	if w.take {
		return p.isCelld()
	}
	return !p.special() && (!p.pings() || w.keyLen == 16)
}

func (w fill) quick() work { return w }

func (w fill) seconds(p *peer) float64 {
	load := float64(w.keys) /
		map[string]float64{"celld": 700e3, "before": 700e3, "redis-cell": 250e3, "throttlecrab": 200e3, "ping": 1.5e6}[p.name]
	if p.pings() {
		return 2 + load
	}
	return 1 + patience*load + (settle + goneAtLeast + 4*time.Second).Seconds()
}

// patience is how many times longer than expected loading may take before the first keys expire.
const patience = 2

func (w fill) run(b *bench, p *peer) (sample, error) {
	loadFor, err := b.loadingTime(p, w)
	if err != nil {
		return nil, err
	}
	s, err := b.start(p, room{keys: w.keys * 5 / 4, cleanupSeconds: cleanupEvery})
	if err != nil {
		return nil, err
	}
	defer s.stop()
	probe, err := startProbe(s)
	if err != nil {
		return nil, err
	}
	defer probe.stop()
	b.sleep(500 * time.Millisecond)
	empty, err := readRSS(s.pid())
	if err != nil {
		return nil, err
	}
	if _, err := probe.take(); err != nil {
		return nil, err
	}

	end := time.Now().Add(time.Duration(patience*float64(loadFor)) + settle + time.Second)
	l := load{server: s, keys: w.keys, keyLen: w.keyLen, limit: untilLimit(end), fresh: true}
	if w.take {
		l.head, _ = splitAtKey((&perMinute).words(p))
		l.limit = untilLiteral(end)
	}
	if err := l.run(b.ctx); err != nil {
		return nil, fmt.Errorf("%w%s", err, s.lastLog())
	}
	growing, err := probe.take()
	if err != nil {
		return nil, err
	}
	result := sample{growP999: milliseconds(growing.permille(999)), growLongest: milliseconds(growing.longest())}
	if p.pings() {
		return result, nil
	}
	b.sleep(settle)
	full, err := w.fullRSS(s, end)
	if err != nil {
		return nil, err
	}

	b.sleep(time.Until(end) - 100*time.Millisecond)
	if _, err := probe.take(); err != nil {
		return nil, err
	}
	left, gone, expiring, err := w.expire(b, s, probe, end)
	if err != nil {
		return nil, err
	}
	result[rssMB] = float64(full) / 1e6
	result[bytesPerKey] = float64(full-empty) / float64(w.keys)
	result[bytesPerKeyGone] = float64(left-empty) / float64(w.keys)
	if gone > 0 {
		result[goneSeconds] = gone.Seconds()
	}
	result[expireP999] = milliseconds(expiring.permille(999))
	result[expireLongest] = milliseconds(expiring.longest())
	return result, nil
}

// loadingTime estimates how long a peer takes to load the row's keys. It measures a few keys on a server of their own.
func (b *bench) loadingTime(p *peer, w fill) (time.Duration, error) {
	if p.pings() {
		return 0, nil
	}
	if b.keysRate[p.name] == 0 {
		s, err := b.start(p, room{})
		if err != nil {
			return 0, err
		}
		defer s.stop()
		began := time.Now()
		if err := (load{server: s, keys: calibrate, keyLen: 16, limit: hourLimit}).run(b.ctx); err != nil {
			return 0, err
		}
		b.keysRate[p.name] = calibrate / time.Since(began).Seconds()
	}
	return time.Duration(float64(w.keys) / b.keysRate[p.name] * 1e9), nil
}

// fullRSS returns the memory with all keys live. It checks that they are.
func (w fill) fullRSS(s *server, end time.Time) (int64, error) {
	keys, err := s.keys()
	if err != nil {
		return 0, err
	}
	rss, err := readRSS(s.pid())
	if err != nil {
		return 0, err
	}
	if time.Now().After(end) {
		return 0, fmt.Errorf("loading took so long that keys expired meanwhile")
	}
	if keys >= 0 && keys != w.keys && keys != w.keys+1 { // the probe's
		return 0, fmt.Errorf("%d keys loaded, %d are there", w.keys, keys)
	}
	return rss, nil
}

// expire waits until the keys are gone and the memory is steady. It returns that memory, how long after end the keys were gone,
// and the probe's waits. After goneAtMost it no longer waits for keys that are still there.
func (w fill) expire(b *bench, s *server, probe *probe, end time.Time) (rss int64, gone time.Duration, waits latencies, err error) {
	steady, last := 0, int64(0)
	for b.sleep(time.Second) {
		if rss, err = readRSS(s.pid()); err != nil {
			return 0, 0, nil, err
		}
		if steady++; rss < last*99/100 || rss > last*101/100 {
			steady = 0
		}
		last = rss
		expired, err := s.expired()
		if err != nil {
			return 0, 0, nil, err
		}
		passed := time.Since(end)
		if gone == 0 && expired >= w.keys {
			gone = passed
		}
		known := gone > 0 || expired < 0
		if passed > goneAtMost || known && passed > goneAtLeast && steady >= 4 {
			if !known {
				gone = goneAtMost
			}
			waits, err = probe.take()
			return rss, gone, waits, err
		}
	}
	return 0, 0, nil, b.ctx.Err()
}
