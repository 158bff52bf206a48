package decide

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"celld/resp/command"
	"celld/resp/command/calltest"
	policies "celld/resp/command/limit"
	"celld/resp/config"
	"celld/resp/decisions"
	"celld/resp/wire"
	"celld/store"
	"celld/store/memory"
)

// world is a Decider on a store in memory, with the commands on policies, rules and leases beside its own.
type world struct {
	*calltest.Host
	t       testing.TB
	cfg     *config.Config
	server  Server
	d       *Decider
	limiter store.Limiter
	batch   Batch    // of pipelines
	failed  []string // replies that are errors of the limiter
	asked   []int    // how many calls each batch had
}

func newWorld(t testing.TB) *world {
	w := &world{t: t, cfg: config.New()}
	limits := func() policies.Server {
		return policies.Server{Store: w.server.Store, InForce: w.Store, LogMax: w.cfg.LogMax.Get(), Decisions: w.server.Counts,
			Top: w.server.Top, Now: func() int64 { return 0 }}
	}
	rows := append(Rows(), policies.Rows(limits)...)
	w.Host = calltest.New(memory.Options{Shards: 1}, rows...)
	w.As(w)
	w.server = Server{
		Table: w.Store, Store: memory.Port{Store: w.Store}, Counts: decisions.NewRows(w.Store.Set),
		Top: decisions.NewTop(w.Store.Set), Commands: command.NewTable(rows, func() any { return nil }), LogMax: w.cfg.LogMax,
		WaitMax: w.cfg.WaitMax,
	}
	w.d, w.limiter = New(&w.server, 0), w.Store
	return w
}

// The methods of Host.

func (w *world) Decider() *Decider { return w.d }

func (w *world) Decide(c *command.Call, f *Shape) {
	b := &Batch{}
	b.AddCall(f, c.Args)
	w.ask(c, b)
}

func (w *world) Failed(row *command.Row, reply []byte) {
	w.failed = append(w.failed, row.Name+" "+string(reply))
}

// ask decides a batch and answers its calls.
func (w *world) ask(c *command.Call, b *Batch) {
	w.t.Helper()
	w.asked = append(w.asked, b.Len())
	if !w.d.Ask(b, w.limiter, w.Access(), nil) {
		w.t.Error("the limiter has not answered")
	}
	w.d.Answer(c, b)
}

// shapeOf is the shape of a CL.TAKE.
func (w *world) shapeOf(limit string, options ...string) (*Shape, string) {
	args := [][]byte{[]byte("CL.TAKE"), nil, []byte(limit)}
	for _, option := range options {
		args = append(args, []byte(option))
	}
	f := &w.d.single
	f.reset(w.d.Commands.Find(args[0]))
	return f, readTake(&w.d.limits, f, args)
}

// do runs a command by itself.
func (w *world) do(words ...string) string { return w.Do(words...) }

// want runs a command, whose words have spaces between them, and compares the reply.
func (w *world) want(line, reply string) {
	w.t.Helper()
	if got := w.do(strings.Fields(line)...); got != reply {
		w.t.Errorf("%s: %q, want %q", line, got, reply)
	}
}

// send sends a pipeline, whose calls are gathered as far as they go together.
func (w *world) send(pipeline string) string {
	w.t.Helper()
	data, args, limits := []byte(pipeline), [][]byte(nil), wire.Limits{MaxArgs: 1 << 20, MaxBulk: 1 << 20, Authed: true}
	c, b := &command.Call{Host: w, NowNS: w.NowNS}, &w.batch
	for len(data) > 0 {
		used, next := w.d.Gather(b, data, &args, limits)
		if used > 0 {
			w.ask(c, b)
		}
		if next > 0 {
			var words []string
			for _, arg := range args {
				words = append(words, string(arg))
			}
			c.Out = append(c.Out, w.Do(words...)...)
		}
		if data = data[used+next:]; used+next == 0 {
			break
		}
	}
	return string(c.Out)
}

func (w *world) sleep(d time.Duration) { w.NowNS += int64(d) }

func frame(words ...string) string { return string(wire.AppendCommand(nil, words...)) }

func fails(text string, args ...any) string { return "-" + fmt.Sprintf(text, args...) + "\r\n" }

// later is a limiter that answers when it is told to. Until then nobody must touch the requests.
type later struct {
	store.Limiter
	answer func()
}

func (l *later) ThrottleBatch(reqs []store.Request, a store.Access, w store.Waker) bool {
	l.answer = func() { l.Limiter.ThrottleBatch(reqs, a, nil); w.Wake() }
	return false
}

func (l *later) TakeBatch(reqs []store.TakeRequest, a store.Access, w store.Waker) bool {
	l.answer = func() { l.Limiter.TakeBatch(reqs, a, nil); w.Wake() }
	return false
}

// woken counts how often it was woken.
type woken int

func (w *woken) Wake() { *w++ }
