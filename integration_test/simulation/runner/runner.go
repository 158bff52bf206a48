// Package runner runs Go programs in virtual time:
//
//	p, err := runner.Build(ctx, "celld/integration_test/simulation/world")
//	result, err := p.Run(ctx, runner.Options{Args: []string{"-seed", "7"}, Seed: 7})
//
// A program is compiled to WebAssembly (GOOS=wasip1), where all that it gets from outside comes from the runner: the time, chance, and an
// empty folder. The clock moves by 100 ns whenever it is read, and jumps to the next timer when all goroutines wait. WebAssembly has one
// thread, and Go's scheduler takes its chance from the runner, too. So a run depends on nothing but the program, its arguments and the
// seed. Real code needs no seam for that: its goroutines, channels, locks and timers are Go's.
//
// Tried before: coroutines of our own behind an interface for time, timers and goroutines. 60 files of the product would have had to ask
// it, and the code that waits on channels to be written anew. testing/synctest has virtual time, and no order of goroutines that a seed
// gives.
package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"
)

// StartNS is when each run begins, Unix ns: in September 2026.
const StartNS = 1_790_000_000_000_000_000

// lookNS is how far the clock moves when it is read, so that a loop that waits for an instant ends.
const lookNS = 100

// Program is a program that was compiled. Several goroutines may run it.
type Program struct {
	runtime wazero.Runtime
	module  wazero.CompiledModule
}

// Build compiles a main package, which the go command finds from the working directory. The first time takes 15 s, later some tenths: Go
// and wazero cache what they compile.
func Build(ctx context.Context, pkg string, flags ...string) (*Program, error) {
	folder, err := os.MkdirTemp("", "celld-simulation-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	out := filepath.Join(folder, "program.wasm")
	build := exec.Command("go", append(append([]string{"build", "-o", out}, flags...), pkg)...)
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if said, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", build, err, said)
	}
	code, err := os.ReadFile(out)
	if err != nil {
		return nil, err
	}
	config := wazero.NewRuntimeConfig() // WithCloseOnContextDone would take 1.4 times the time of a run more
	if cached, err := os.UserCacheDir(); err == nil {
		cache, err := wazero.NewCompilationCacheWithDir(filepath.Join(cached, "celld-simulation"))
		if err != nil {
			return nil, err
		}
		config = config.WithCompilationCache(cache)
	}
	p := &Program{runtime: wazero.NewRuntimeWithConfig(ctx, config)}
	wasi_snapshot_preview1.MustInstantiate(ctx, p.runtime)
	p.module, err = p.runtime.CompileModule(experimental.WithCompilationWorkers(ctx, runtime.NumCPU()), code)
	return p, err
}

// Close frees the program's memory.
func (p *Program) Close(ctx context.Context) error { return p.runtime.Close(ctx) }

// Options of a run.
type Options struct {
	Args []string // without the program's name
	Seed uint64   // what the program gets for chance: Go's maps and select take theirs from it

	Coverage string // a folder for the coverage of a program that was built with -cover; "": there is none
}

// Result is what a program has written, and its exit code. A Go program that panics or cannot go on ends with 2.
type Result struct {
	Output []byte
	Code   uint32
}

// Run runs the program to its end. It has an empty folder of its own for temporary files. The error says that it could not run, or that
// ctx has ended it, at its next look at the clock.
func (p *Program) Run(ctx context.Context, o Options) (Result, error) {
	folder, err := os.MkdirTemp("", "celld-simulation-")
	if err != nil {
		return Result{}, err
	}
	defer os.RemoveAll(folder)
	var out bytes.Buffer
	nowNS := int64(0)
	look := func() int64 {
		if ctx.Err() != nil {
			panic(sys.NewExitError(sys.ExitCodeContextCanceled))
		}
		nowNS += lookNS
		return nowNS
	}
	var key [32]byte
	for i := range 8 {
		key[i] = byte(o.Seed >> (8 * i))
	}
	folders := wazero.NewFSConfig().WithDirMount(folder, "/tmp")
	if o.Coverage != "" {
		folders = folders.WithDirMount(o.Coverage, "/coverage")
	}
	config := wazero.NewModuleConfig().WithName("").WithArgs(append([]string{"program"}, o.Args...)...).WithStdout(&out).WithStderr(&out).
		WithFSConfig(folders).WithEnv("GOCOVERDIR", "/coverage").
		WithRandSource(rand.NewChaCha8(key)).
		WithNanotime(look, sys.ClockResolution(1)).
		WithWalltime(func() (s int64, ns int32) { t := StartNS + look(); return t / 1e9, int32(t % 1e9) }, sys.ClockResolution(1)).
		WithNanosleep(func(ns int64) { nowNS += ns }).
		WithOsyield(func() { nowNS += lookNS })
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		var module api.Module
		if module, err = p.runtime.InstantiateModule(ctx, p.module, config); module != nil {
			_ = module.Close(ctx)
		}
	}()
	select {
	case <-ended:
	case <-ctx.Done():
		select {
		case <-ended:
		case <-time.After(time.Second): // it does not even look at the clock, and goes on until this process ends
			return Result{}, ctx.Err()
		}
	}
	result := Result{Output: out.Bytes()}
	var exit *sys.ExitError
	if errors.As(err, &exit) && ctx.Err() == nil {
		result.Code, err = exit.ExitCode(), nil
	}
	return result, err
}
