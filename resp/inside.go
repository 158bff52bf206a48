package resp

import (
	"errors"
	"slices"
	"strings"

	"celld/cell"
	"celld/resp/client"
	"celld/resp/command"
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
	errPanicked   = errors.New("a panic")
	errScriptBusy = errors.New("a script that takes too long")
)

// takeName is the command that calls from within are.
const takeName = "CL.TAKE"

// take is CL.TAKE key limit [option ...], from within the process: it is decided, counted, written to the disk and refused as a client's, and
// shown to monitors. It returns when the call is decided, and is on the disk where replies wait for that. With an engine that takes
// --store-timeout at most. The error is a *CallError. Any goroutine may call it.
func (srv *service) take(key, limit string, options ...string) (answer store.TakeRequest, err error) {
	err = &CallError{errInternal, errPanicked} // which a panic leaves
	defer srv.survive("call from within")
	row := srv.commands.Find([]byte(takeName))
	if refused := srv.refuseWithin(row); refused != nil {
		srv.stats.Rejected(row, refused.Text)
		return answer, refused
	}
	if srv.gate.has(gateMonitored) {
		args := [][]byte{[]byte(takeName), []byte(key), []byte(limit)}
		for _, option := range options {
			args = append(args, []byte(option))
		}
		srv.tellMonitors(client.MonitorLine(srv.store.WallNS(srv.clock()), "inside", args))
	}
	c := srv.scratches.get(&srv.deciding)
	if srv.synchronous {
		srv.persist.Begin()
	}
	answer, text := srv.decideWithin(c, key, limit, options)
	if answer.Err != nil {
		text = storeError(answer.Err)
	}
	err = nil
	switch {
	case !srv.synchronous:
	case text == "" && answer.Mode != cell.Peek:
		err = srv.commit()
	default: // it has only looked: it is answered also while the disk is slow
		srv.persist.Leave()
	}
	c.decider.Decided.Settle(c.lane, err)
	srv.scratches.put(c)
	switch {
	case text != "":
		srv.countError(row, []byte("-"+text))
		return answer, &CallError{text, answer.Err}
	case err != nil:
		return answer, &CallError{formatError(errMisconf, err), err}
	}
	return answer, nil
}

// refuseWithin returns the error of a call that the server does not take now, or nil.
func (srv *service) refuseWithin(row *command.Row) *CallError {
	text, refusal := srv.closed(row), srv.persist.Refusal()
	switch {
	case text == errBusy:
		return &CallError{text, errScriptBusy}
	case text != "":
		return &CallError{Text: text}
	case refusal != nil:
		return &CallError{formatError(errMisconf, refusal), refusal}
	}
	return nil
}

// decideWithin decides a call and counts it. It returns the request with its answer, or the text of an error.
func (srv *service) decideWithin(c *scratch, key, limit string, options []string) (answer store.TakeRequest, text string) {
	lane := srv.execution.lane(c.lane)
	lane.RLock()
	defer lane.RUnlock()
	nowNS, d, b, answered := srv.clock(), c.decider, &c.emptyBatch().Batch, make(woken, 1)
	c.stats.Begin(nowNS)
	shape, text := d.ShapeOf(limit, options...)
	c.stats.Count(shape.Row(), 1, c.lane)
	if text != "" {
		srv.countBatch(c)
		return answer, text
	}
	b.Add(shape, []byte(key))
	decided := d.Ask(b, srv.limiter, store.Access{NowNS: nowNS, Lane: c.lane}, answered)
	if srv.countBatch(c); !decided {
		lane.RUnlock() // a transaction may run alone meanwhile
		<-answered
		lane.RLock()
	}
	answer = *b.Take()
	answer.Calls = slices.Clone(answer.Calls)
	d.Note(b)
	return answer, ""
}

// woken is told when the limiter has answered.
type woken chan struct{}

func (w woken) Wake() { w <- struct{}{} }
