//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == callersMode {
		if err := callersMain(); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) == 4 && os.Args[1] == netHTTP {
		fmt.Fprintln(os.Stderr, netHTTPMain(os.Args[2], os.Args[3]))
		os.Exit(1)
	}
	o := parseOptions()
	// Servers are told to die with the thread that started them, so that thread has to be the one that lives longest.
	runtime.LockOSThread()
	// The loader and the probe share the process: neither a collection nor a wait for a P may look like a slow answer.
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(1 << 30)
	runtime.GOMAXPROCS(runtime.NumCPU() + 6)
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// bench is what every step needs.
type bench struct {
	ctx      context.Context
	dir      string // temporary
	tools    tools
	keysRate map[string]float64 // new keys a second, by peer
}

func run(o options) error {
	rows, err := chooseRows(o)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	root, err := projectRoot()
	if err != nil {
		return err
	}
	dir, err := workDir(root)
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := &bench{ctx: ctx, dir: dir, keysRate: map[string]float64{}}
	if b.tools, err = findTools(root, dir, o); err != nil {
		return err
	}
	peers, missing, err := b.choosePeers(strings.Split(o.peers, ","))
	if err != nil {
		return err
	}
	for _, m := range missing {
		fmt.Fprintln(os.Stderr, "left out:", m)
	}

	report := newReport(o, peers, missing)
	report.Machine.Disk = diskOf(dir)
	for _, p := range peers {
		report.Peers[p.name] = p.version(&b.tools)
	}
	failures := b.measure(report, rows, peers, o.rounds)
	if ctx.Err() != nil {
		return errors.New("interrupted; nothing is written")
	}
	folder := filepath.Join(root, "bench", "results")
	if o.partial() {
		folder = ""
	}
	if err := report.write(os.Stdout, folder); err != nil {
		return err
	}
	if failures > 0 {
		return fmt.Errorf("%d steps failed", failures)
	}
	return nil
}

// measure runs every step and returns how many failed. The peers take turns, and who is first changes by round, so that
// noise hits all alike.
func (b *bench) measure(report *report, rows []row, peers []*peer, rounds int) (failures int) {
	var steps []step
	for round := range rounds {
		for i := range rows {
			r := &rows[i]
			if r.once && round > 0 {
				continue
			}
			turn := append(slices.Clone(peers[round%len(peers):]), peers[:round%len(peers)]...)
			for _, p := range turn {
				if r.work.fits(p) {
					steps = append(steps, step{round, r, p})
				}
			}
		}
	}
	progress := newProgress(steps)
	for i, s := range steps {
		result, err := s.row.work.run(b, s.peer)
		if b.ctx.Err() != nil {
			return failures
		}
		report.add(s.row, s.peer, result, err)
		if err != nil {
			failures++
		}
		progress.done(i, result, err)
	}
	return failures
}

// projectRoot is the folder that has bench in it.
func projectRoot() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "celld/bench").Output()
	if err != nil {
		return "", errors.New("run this in a checkout of celld: make bench")
	}
	return filepath.Dir(strings.TrimSpace(string(out))), nil
}

// sleep waits, or returns false when the program is told to end.
func (b *bench) sleep(d time.Duration) bool {
	select {
	case <-b.ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
