package session

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"celld/resp/command"
	"celld/resp/command/argument"
	"celld/resp/command/spec"
	"celld/resp/decisions"
	"celld/resp/door"
	"celld/resp/gate"
	"celld/resp/transport"
	"celld/store"
)

// keyTx is a command on keys that an engine has. Its session waits until the engine has told what they hold, runs the handler on a
// table that holds just that, and waits again until the engine has stored what changed. Where others have changed a key meanwhile, the
// reply is dropped and the handler runs again on what is there now.
//
//	call ─▶ open ─▶ handler ─▶ commit ─▶ reply
//	                   ▲          │
//	                   └─conflict─┘
//
// Commands over all keys have no view: see elsewhere.
type keyTx struct {
	row     *command.Row
	args    [][]byte // of its own, as the session's buffer goes on
	startNS int64
	tr      transport.Conn

	answered atomic.Bool // the engine has done what it was asked for last
	gone     atomic.Bool // the session has gone before that

	keys   [][]byte
	known  map[string]bool // keys
	tx     store.Tx
	bytes  int64      // that it takes while it waits
	held   *door.Held // those of all that waits for the engine
	ran    bool       // the handler has run, and its outcome is being stored
	reply  []byte     // of the handler
	tries  int
	ranNS  int64 // how long the handler took, in all tries
	ending ending
	before sessionState

	decided  decisions.Batch
	passedOn bool // the script has returned an error of a command that it called
	effects  []func()

	operated map[int]operation // by their places in the transaction
}

// operation is what a command for operators has done in a transaction: changed users or settings, closed connections. That is done, and
// stays so where the transaction runs again.
type operation struct {
	reply   []byte
	effects []func()
}

// sessionState is what a transaction may change of its session, and has to find again when it runs again.
type sessionState struct {
	tx    transaction
	gate  gate.Word
	resp3 bool
}

// A handler that takes long is a script. Others' changes overtake it each time, and a key that is not there is a conflict after
// store.CommitWithin: so it does not run again once it has taken that long.
var errLong = &store.DownError{Cause: "the command took so long that others may have changed its keys"}

// mostEffects is how many effects of a key transaction wait until it is stored: 64 KB. Those of a longer script happen whenever it runs.
const mostEffects = 1000

// keyBytes is what each key of a view takes beside its name.
const keyBytes = 256

// mostTxKeys is how many keys a key transaction may have, one more than once included. With so many, it keeps its event loop for some ms.
const mostTxKeys = 1000

var errManyKeys = fmt.Errorf("with --store, a command, transaction or script has at most %d keys", mostTxKeys)

// openTx runs a command on the engine's keys, and reports whether it is one that needs that.
func (f inFlight) openTx() bool {
	s, row, args := f.s, f.row, f.args
	keys := f.txKeys()
	if len(keys) == 0 {
		return false
	}
	v := &keyTx{row: row, startNS: s.srv.Clock(), tr: s.client.Conn, held: &s.srv.Held,
		before: sessionState{s.tx, s.gate, s.call.RESP3}}
	v.args = s.detach(args)
	for _, arg := range v.args {
		v.bytes += int64(len(arg)) + queuedBytes
	}
	for _, key := range keys {
		v.bytes += int64(len(key)) + keyBytes
	}
	v.bytes += door.ViewBytes
	if err := s.srv.Held.Hold(v.bytes); err != nil {
		v.bytes = 0
		v.refuse(s, err)
		return true
	}
	if len(keys) > mostTxKeys {
		v.refuse(s, errManyKeys)
		return true
	}
	v.ask(s.srv.Port, keys, s.nowNS)
	v.proceed(s)
	return true
}

// txKeys are the keys that a command needs to have in its view, some of them twice.
func (f inFlight) txKeys() (keys [][]byte) {
	s, row, args := f.s, f.row, f.args
	switch {
	case row.Name == "exec" && s.gate.Has(gate.Multi) && !s.tx.spoiled:
		for _, q := range s.tx.queued {
			keys = append(keys, q.row.KeysOf(q.args)...)
		}
		return keys
	case row.Flags&spec.Decides != 0, s.gate.Has(gate.Multi), row.Name == "watch": // WATCH is an error
		return nil
	}
	return row.KeysOf(args)
}

// ask asks the engine for the keys, for each once. It copies them.
func (v *keyTx) ask(keep store.Store, keys [][]byte, nowNS int64) {
	v.known = make(map[string]bool, len(keys))
	for _, key := range keys {
		if !v.known[string(key)] {
			v.keys = append(v.keys, bytes.Clone(key))
			v.known[string(key)] = true
		}
	}
	v.tx = keep.Open(v.keys, store.OpenOptions{Leases: v.row.Flags&spec.OfLease != 0, NowNS: nowNS}, v)
}

// Wake is called by the engine when it has done what it was asked for.
func (v *keyTx) Wake() {
	v.answered.Store(true)
	v.endGone()
	v.tr.Wake()
}

// proceed goes on with a key transaction as far as the engine has answered.
func (v *keyTx) proceed(s *Session) {
	startNS := s.srv.Clock()
	for v.answered.Swap(false) {
		if v.step(s) {
			s.scratch.stats.TookNS(s.scratch.slice.ReadClock() - startNS)
			return
		}
	}
	s.scratch.stats.TookNS(s.scratch.slice.ReadClock() - startNS)
	s.waits = v
}

// step goes on after an answer of the engine, and reports whether that was the last.
func (v *keyTx) step(s *Session) (done bool) {
	mark := len(s.call.Out)
	switch {
	case v.tx.Err() != nil:
		v.fail(s, v.tx.Err())
	case v.ran && !v.tx.Conflict():
		s.call.Out = append(s.call.Out, v.reply...)
	case v.tries == door.MostTries:
		v.fail(s, door.ErrConflicts)
	case v.ranNS > int64(store.CommitWithin):
		v.fail(s, errLong)
	default:
		v.tries++
		v.run(s)
		v.ending, s.end = max(v.ending, s.end), open // a session that ends itself stays until what it did is stored
		if !v.tx.Commit(v) {
			v.ran, v.reply = true, append(v.reply[:0], s.call.Out[mark:]...)
			s.call.Out = s.call.Out[:mark]
			return false
		}
		if err := v.tx.Err(); err != nil {
			s.call.Out = s.call.Out[:mark]
			v.fail(s, err)
		}
	}
	s.end = max(s.end, v.ending)
	v.end()
	v.account(s, mark)
	return true
}

// end gives back what a key transaction holds. Nothing of it is under way.
func (v *keyTx) end() {
	if v.tx != nil {
		v.tx.Close()
	}
	v.held.Let(v.bytes)
}

// refuse answers a key transaction that does not begin.
func (v *keyTx) refuse(s *Session, err error) {
	mark := len(s.call.Out)
	v.fail(s, err)
	v.end()
	v.account(s, mark)
}

// run runs the handler on the view. What it changes of its session is as at the first time.
func (v *keyTx) run(s *Session) {
	s.tx, s.gate = v.before.tx, v.before.gate
	(*host)(s).SetRESP3(v.before.resp3)
	v.effects = v.effects[:0]
	before := s.scratch.decider.Decided
	s.scratch.decider.Decided = decisions.Batch{}
	s.scratch.keyTx, s.nowNS = v, v.tx.TimeNS()
	startNS := s.srv.Clock()
	inFlight{s, v.row, v.args}.runRow()
	v.ranNS += s.srv.Clock() - startNS
	s.scratch.keyTx, s.nowNS = nil, s.srv.Clock()
	v.decided, s.scratch.decider.Decided = s.scratch.decider.Decided, before
	v.passedOn, s.scratch.passedOn = s.scratch.passedOn, false
}

// onlyOnce runs the nth command of a transaction when that runs first. Later it replies as then.
func (v *keyTx) onlyOnce(s *Session, nth int, run func()) {
	if o, ran := v.operated[nth]; ran {
		s.call.Out = append(s.call.Out, o.reply...)
		v.effects = append(v.effects, o.effects...)
		s.checkRights()
		return
	}
	if v.operated == nil {
		v.operated = map[int]operation{}
	}
	mark, effects := len(s.call.Out), len(v.effects)
	run()
	v.operated[nth] = operation{bytes.Clone(s.call.Out[mark:]), slices.Clone(v.effects[effects:])}
}

// runRow runs a row's handler. Where its key transaction has a key of which celld knows nothing but that it is there, it is an error to ask
// for its state.
func (f inFlight) runRow() {
	s, row, args := f.s, f.row, f.args
	v := s.scratch.keyTx
	if v == nil || !row.ReadsState() {
		f.invoke()
		return
	}
	for _, key := range row.KeysOf(args) {
		if _, foreign := v.tx.Foreign(key); foreign {
			s.call.Error(errWrongType)
			return
		}
	}
	f.invoke()
}

// fail answers a key transaction whose keys could not be read or stored. None of its effects happens.
func (v *keyTx) fail(s *Session, err error) {
	if !v.ran { // nothing was to be stored yet
		err = door.NotSent(err)
	}
	v.effects, v.decided, v.passedOn = nil, decisions.Batch{}, false
	s.gate = v.before.gate
	(*host)(s).SetRESP3(v.before.resp3)
	if v.row.Name == "exec" {
		s.endTx()
	}
	s.call.Fail(err)
}

// account accounts for a key transaction that has ended. Its time is that from the command's arrival on.
func (v *keyTx) account(s *Session, mark int) {
	s.scratch.decider.Decided.AddAll(&v.decided, s.scratch.lane)
	for _, effect := range v.effects {
		effect()
	}
	inFlight{s, v.row, v.args}.timed(s.srv.Clock()-v.startNS, true)
	s.scratch.passedOn = v.passedOn
	inFlight{s, v.row, v.args}.replied(mark)
}

// once calls effect at the end of the key transaction that runs, if its outcome is stored. Without a key transaction it calls it now.
func (c *scratch) once(effect func()) {
	if v := c.keyTx; v != nil && len(v.effects) < mostEffects {
		v.effects = append(v.effects, effect)
		return
	}
	effect()
}

// ready and the next ones make it what a session waits for.
func (v *keyTx) ready() bool { return v.answered.Load() }

func (v *keyTx) resume(s *Session) {
	mark := len(s.call.Out)
	s.scratch.mark = mark
	if v.proceed(s); s.waits == nil {
		inFlight{s, v.row, v.args}.called(mark)
	}
}

func (v *keyTx) leave(*Session) {
	v.gone.Store(true)
	if v.answered.Load() {
		v.endGone()
	}
}

func (v *keyTx) abandons() bool { return false }

// endGone ends a key transaction whose session has gone. Its changes are stored, or they are not.
func (v *keyTx) endGone() {
	if v.gone.CompareAndSwap(true, false) {
		v.end()
	}
}

// notInside is the text of the error of a command that can be called neither in MULTI nor in a script, as it waits; "" for any other.
func (srv *Service) notInside(row *command.Row) string {
	if !row.Overall || srv.Port.InProcess() {
		return ""
	}
	return formatError(errScanInside, strings.ToUpper(row.FullName()))
}

// undeclared is the text of the error of a script's command on keys that its key transaction does not have; "" for any other.
func (f inFlight) undeclared() string {
	s, row, args := f.s, f.row, f.args
	if s.srv.Port.InProcess() {
		return ""
	}
	v := s.scratch.keyTx
	for _, key := range row.KeysOf(args) {
		if v == nil || !v.known[string(key)] {
			return formatError(errUndeclared, argument.ShortText(key))
		}
	}
	return ""
}
