//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// callersProcess is this program once more, as callers.
type callersProcess struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *json.Decoder
}

// beginIn is the time for all callers to hear when to begin.
const beginIn = 50 * time.Millisecond

// call starts processes of callers, which all ask from the same moment on.
func (b *bench) call(all []callers) (o callersOutcome, err error) {
	var processes []callersProcess
	defer func() {
		for _, p := range processes {
			p.in.Close()
			if ended := p.cmd.Wait(); ended != nil {
				err = errors.Join(err, fmt.Errorf("callers: %w", ended))
			}
		}
	}()
	for _, c := range all {
		p, err := b.startCallers(c)
		if err != nil {
			return o, fmt.Errorf("start callers: %w", err)
		}
		processes = append(processes, p)
	}
	var ready string
	for _, p := range processes {
		if err := p.out.Decode(&ready); err != nil {
			return o, fmt.Errorf("callers: %w", err)
		}
	}
	begin := time.Now().Add(beginIn)
	for _, p := range processes {
		if err := json.NewEncoder(p.in).Encode(begin); err != nil {
			return o, fmt.Errorf("callers: %w", err)
		}
	}
	parts := make([]callersOutcome, len(processes))
	for i, p := range processes {
		if err := p.out.Decode(&parts[i]); err != nil {
			return o, fmt.Errorf("callers: %w", err)
		}
	}
	if o = merged(parts); o.Err != "" {
		return o, errors.New(o.Err)
	}
	return o, nil
}

func (b *bench) startCallers(c callers) (p callersProcess, err error) {
	p.cmd = exec.CommandContext(b.ctx, "/proc/self/exe", callersMode)
	p.cmd.Stderr, p.cmd.Env = os.Stderr, plainEnvironment()
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return p, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return p, err
	}
	p.out = json.NewDecoder(out)
	if err := p.cmd.Start(); err != nil {
		return p, err
	}
	return p, json.NewEncoder(p.in).Encode(c)
}
