//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"celld/resp/wire"
)

// save loads distinct keys that live for an hour into a server with an append-only file, and measures what the files cost: the
// memory during a background snapshot, how long others wait during that and during a rewrite, the time to write a snapshot in
// the foreground, and the time to load it after the server was killed.
type save struct{ keys int }

const (
	sampleEvery = 50 * time.Millisecond // memory, and whether it is done
	restFor     = 3 * time.Second
)

func (w save) fits(p *peer) bool { return p.throttles() }

func (w save) quick() work { return w }

func (w save) seconds(p *peer) float64 {
	return 8 + float64(w.keys)/map[string]float64{"celld": 150e3, "redis-cell": 100e3}[p.name]
}

// hourLimit allows one call an hour and 15 more at once. One call sets the TAT an hour ahead.
func hourLimit(request []byte) []byte { return wire.AppendBulks(request, "15", "1", "3600") }

func (w save) run(b *bench, p *peer) (sample, error) {
	s, err := b.start(p, room{keys: w.keys * 5 / 4, fsync: "everysec"})
	if err != nil {
		return nil, err
	}
	defer s.stop()
	if err := (load{server: s, keys: w.keys, keyLen: 16, limit: hourLimit, fresh: true}).run(b.ctx); err != nil {
		return nil, fmt.Errorf("%w%s", err, s.lastLog())
	}
	b.sleep(settle)
	if _, err := s.allWritten(b); err != nil {
		return nil, err
	}
	result := sample{}
	// To read a large process's memory delays it, so memory is measured in a separate snapshot.
	for _, measure := range []func(*bench, *server, sample) error{memoryWhileSaving, waitsWhileSaving, saveSnapshot} {
		if err := measure(b, s, result); err != nil {
			return nil, fmt.Errorf("%w%s", err, s.lastLog())
		}
	}

	s.kill()
	began := time.Now()
	again, err := b.start(p, room{keys: w.keys * 5 / 4, fsync: snapshotOnly, dir: s.dir})
	if err != nil {
		return nil, err
	}
	result[loadSeconds] = time.Since(began).Seconds()
	defer again.kill() // it has nothing to write
	keys, err := again.keys()
	if err == nil && keys != w.keys && keys != w.keys+1 { // the probe's
		err = fmt.Errorf("%d keys saved, %d read", w.keys, keys)
	}
	return result, err
}

func memoryWhileSaving(b *bench, s *server, result sample) error {
	before, err := readGroupPSS(s.pid())
	if err != nil {
		return err
	}
	peak := before
	err = s.background(b, "BGSAVE", func() error {
		now, err := readGroupPSS(s.pid())
		peak = max(peak, now)
		return err
	})
	result[memoryMB], result[peakRatio] = float64(before)/1e6, float64(peak)/float64(before)
	return err
}

func waitsWhileSaving(b *bench, s *server, result sample) error {
	probe, err := startProbe(s)
	if err != nil {
		return err
	}
	defer probe.stop()
	b.sleep(restFor)
	rest, err := probe.take()
	if err != nil {
		return err
	}
	result[restLongest] = milliseconds(rest.longest())
	for _, w := range []struct {
		command       string
		p999, longest metric
	}{
		{"BGSAVE", bgsaveP999, bgsaveLongest}, {"BGREWRITEAOF", rewriteP999, rewriteLongest},
	} {
		if err := s.background(b, w.command, func() error { return nil }); err != nil {
			return err
		}
		waits, err := probe.take()
		if err != nil {
			return err
		}
		result[w.p999], result[w.longest] = milliseconds(waits.permille(999)), milliseconds(waits.longest())
	}
	return nil
}

func saveSnapshot(_ *bench, s *server, result sample) error {
	began := time.Now()
	if _, err := ask(s.addr, "SAVE"); err != nil {
		return err
	}
	result[saveSeconds] = time.Since(began).Seconds()
	file, err := os.Stat(filepath.Join(s.dir, "dump.rdb"))
	if err != nil {
		return err
	}
	result[fileMB] = float64(file.Size()) / 1e6
	return nil
}

// background runs BGSAVE or BGREWRITEAOF on the server, and calls meanwhile every sampleEvery until that is done.
func (s *server) background(b *bench, command string, meanwhile func() error) error {
	running, status, done := "rdb_bgsave_in_progress", "rdb_last_bgsave_status", "rdb_saves"
	if command == "BGREWRITEAOF" {
		running, status, done = "aof_rewrite_in_progress", "aof_last_bgrewrite_status", "aof_rewrites"
	}
	before, err := s.persistence(done)
	if err != nil {
		return err
	}
	if _, err := ask(s.addr, command); err != nil {
		return fmt.Errorf("%s: %w", command, err)
	}
	for b.sleep(sampleEvery) {
		if err := meanwhile(); err != nil {
			return err
		}
		info, err := ask(s.addr, "INFO", "persistence")
		if err != nil {
			return err
		}
		if still, err := parseCount(info, running); err != nil || still == 1 {
			if err != nil {
				return err
			}
			continue
		}
		if outcome, err := infoField(info, status); err != nil || outcome != "ok" {
			return fmt.Errorf("%s: %s: %q, %v", command, status, outcome, err)
		}
		if after, err := parseCount(info, done); err != nil || after != before+1 { // it was only scheduled, or was not the only one
			return fmt.Errorf("%s: %s went from %d to %d, %v", command, done, before, after, err)
		}
		return nil
	}
	return b.ctx.Err()
}

// persistence is a number of INFO persistence.
func (s *server) persistence(field string) (int, error) {
	info, err := ask(s.addr, "INFO", "persistence")
	if err != nil {
		return 0, err
	}
	return parseCount(info, field)
}
