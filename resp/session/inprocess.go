package session

import (
	"errors"
	"slices"
	"strings"

	"celld/cell"
	"celld/resp/client"
	"celld/resp/command"
	"celld/resp/gate"
	"celld/store"
)

// CallError is the error that a call from within the process was answered with, such as "LOADING Redis is loading the dataset in memory".
type CallError struct {
	Text  string
	cause error // what the store or the disk has said; nil: neither was asked
}

func (e *CallError) Error() string { return e.Text }
func (e *CallError) Unwrap() error { return e.cause }

// Code is the error's first word.
func (e *CallError) Code() string {
	code, _, _ := strings.Cut(e.Text, " ")
	return code
}

// Why a process decides nothing that a restart would mend: see Server.Decides.
var (
	ErrPanicked   = errors.New("a panic")
	ErrScriptBusy = errors.New("a script that takes too long")
)

// takeName is the command that calls from within are.
const takeName = "CL.TAKE"

// Take is CL.TAKE key limit [option ...], from within the process: it is decided, counted, written to the disk and refused as a client's,
// and shown to monitors. It returns when the call is decided, and is on the disk where replies wait for that. With an engine that takes
// --store-timeout at most. The error is a *CallError. Any goroutine may call it.
func (srv *Service) Take(key, limit string, options ...string) (answer store.TakeRequest, err error) {
	err = srv.inProcess("call from within",
		func(c *scratch, w store.Waker) (decided bool, refused *CallError) {
			return srv.askWithin(c, w, key, limit, options)
		},
		func(c *scratch) (changes bool, refused *CallError) {
			answer, refused = srv.answerWithin(c)
			return refused == nil && answer.Mode != cell.Peek, refused
		})
	return answer, err
}

// inProcess calls ask, which asks for calls while no transaction or script runs alone, and then answer, which counts them. It returns when
// what has changed is on the disk, where replies wait for that. If ask says that the calls are not decided yet, w is woken when they are.
// Calls that have only looked are answered also while the disk is slow. The error is a *CallError.
func (srv *Service) inProcess(where string, ask func(c *scratch, w store.Waker) (decided bool, refused *CallError),
	answer func(c *scratch) (changes bool, refused *CallError),
) (err error) {
	err = &CallError{errInternal, ErrPanicked} // which a panic leaves
	defer srv.Survive(where)
	c, answered, changes := srv.scratches.get(&srv.deciding), make(woken, 1), false
	if srv.Synchronous {
		srv.Persist.Begin()
	}
	decided, refused := srv.besideOthers(c, func() (bool, *CallError) { return ask(c, answered) })
	if refused == nil {
		if !decided {
			<-answered
		}
		changes, refused = answer(c)
	}
	err = nil
	switch {
	case !srv.Synchronous:
	case changes:
		err = srv.commit()
	default:
		srv.Persist.Leave()
	}
	c.decider.Decided.Settle(c.lane, err)
	srv.scratches.put(c)
	switch {
	case refused != nil:
		return refused
	case err != nil:
		return &CallError{formatError(ErrMisconf, err), err}
	}
	return nil
}

// besideOthers runs ask while no transaction or script runs alone.
func (srv *Service) besideOthers(c *scratch, ask func() (decided bool, refused *CallError)) (decided bool, refused *CallError) {
	lane := srv.Execution.Lane(c.lane)
	lane.RLock()
	defer lane.RUnlock()
	return ask()
}

// refuseWithin returns the error of a call that the server does not take now, or nil.
func (srv *Service) refuseWithin(row *command.Row) *CallError {
	text, refusal := srv.closed(row), srv.Persist.Refusal()
	switch {
	case text == errBusy:
		return &CallError{text, ErrScriptBusy}
	case text != "":
		return &CallError{Text: text}
	case refusal != nil:
		return &CallError{formatError(ErrMisconf, refusal), refusal}
	}
	return nil
}

// askWithin asks for a call. It returns whether the call is decided, or why it is refused.
func (srv *Service) askWithin(c *scratch, w store.Waker, key, limit string, options []string) (decided bool, refused *CallError) {
	row := srv.Commands.Find([]byte(takeName))
	if refused = srv.refuseWithin(row); refused != nil {
		srv.Stats.Rejected(row, refused.Text)
		return false, refused
	}
	nowNS := srv.Clock()
	c.stats.Begin(nowNS)
	c.stats.Count(row, 1, c.lane)
	defer srv.countBatch(c)
	if srv.Gate.Has(gate.Monitored) {
		args := [][]byte{[]byte(takeName), []byte(key), []byte(limit)}
		for _, option := range options {
			args = append(args, []byte(option))
		}
		srv.tellMonitors(client.MonitorLine(srv.Store.WallNS(nowNS), "inside", slices.All(args)))
	}
	shape, text := c.decider.ShapeOf(limit, options...)
	if text != "" {
		srv.countError(row, []byte("-"+text))
		return false, &CallError{Text: text}
	}
	b := &c.emptyBatch().Batch
	b.Add(shape, []byte(key))
	return c.decider.Ask(b, srv.limiter, store.Access{NowNS: nowNS, Lane: c.lane}, w), nil
}

// answerWithin returns a call that is decided, and counts that.
func (srv *Service) answerWithin(c *scratch) (answer store.TakeRequest, refused *CallError) {
	b := &c.batch.Batch
	row := b.Row()
	answer = *b.Take()
	answer.Calls = slices.Clone(answer.Calls)
	c.decider.Note(b)
	if answer.Err != nil {
		refused = &CallError{storeError(answer.Err), answer.Err}
		srv.countError(row, []byte("-"+refused.Text))
	}
	return answer, refused
}

// woken is told when the limiter has answered.
type woken chan struct{}

func (w woken) Wake() { w <- struct{}{} }
