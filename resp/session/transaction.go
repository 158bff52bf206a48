package session

import (
	"cmp"

	"celld/resp/acl"
	"celld/resp/command"
	"celld/resp/command/spec"
	"celld/resp/gate"
	"celld/store/memory"
)

// transaction is the state of MULTI and WATCH of one session.
type transaction struct {
	spoiled bool // a command could not be queued, so EXEC will refuse
	running bool // EXEC or a script is running commands
	queued  []queuedCommand
	watches []*memory.Watch
	bytes   int // held by queued commands and watched keys, counted against the query buffer limit
}

// lostRights is what a transaction is told of rights that its user has lost since the command was queued.
var lostRights = map[acl.Reason]string{
	acl.DeniedCommand: "no permission to execute the command or subcommand",
	acl.DeniedKey:     "no permission to touch the specified keys",
}

type queuedCommand struct {
	row    *command.Row
	args   [][]byte
	rights *acl.Rights // which allow it
}

// queuedBytes and watchBytes are the memory of a queued argument and of a watched key, without their own bytes.
const (
	queuedBytes = 64
	watchBytes  = 256
)

// transactionRows are the commands that begin and end transactions.
func transactionRows() []*command.Row {
	return []*command.Row{
		{Name: "multi", Arity: 1, Flags: spec.AllowBusy | spec.Loading | spec.Fast | spec.Immediate | spec.NoScript, Summary: "Starts a transaction.", Since: "1.2.0", Group: "transactions", Run: multi},
		{Name: "exec", Arity: 1, Flags: spec.Loading | spec.Immediate | spec.SkipSlowlog | spec.NoScript, Summary: "Executes all commands in a transaction.", Since: "1.2.0", Group: "transactions", Cost: "Depends on commands in the transaction", Run: exec},
		{Name: "discard", Arity: 1, Flags: spec.AllowBusy | spec.Loading | spec.Fast | spec.Immediate | spec.NoScript, Summary: "Discards a transaction.", Since: "2.0.0", Group: "transactions", Run: discard},
		{Name: "watch", Arity: -2, Flags: spec.AllowBusy | spec.Loading | spec.Fast | spec.Immediate | spec.NoScript, Keys: spec.AllKeys, Access: spec.Looks, Usage: "key ...", Summary: "Makes the next EXEC depend on keys that do not change.", Since: "2.2.0", Group: "transactions", Cost: "O(1) for every key", Run: watch},
		{Name: "unwatch", Arity: 1, Flags: spec.AllowBusy | spec.Loading | spec.Fast | spec.NoScript, Summary: "Forgets about watched keys.", Since: "2.2.0", Group: "transactions", Run: unwatch},
	}
}

// discard forgets the queue and ends the watches.
func (tx *transaction) discard() {
	for _, w := range tx.watches {
		w.Stop()
	}
	*tx = transaction{}
}

// endTx forgets the transaction, also for CLIENT LIST.
func (s *Session) endTx() {
	s.gate.Set(gate.Multi, false)
	s.tx.discard()
	s.client.TxLen.Store(-1)
	s.client.TxBytes.Store(0)
	s.srv.Clients.SetWatching(&s.client, 0)
}

// queue keeps a command for EXEC. It copies the arguments, because they lie in the connection's buffer.
func (tx *transaction) queue(s *Session, row *command.Row, args [][]byte) {
	if text := s.srv.notInside(row); row.Flags&spec.NoMulti != 0 || text != "" {
		text = cmp.Or(text, errNotInMulti)
		s.tx.spoiled = s.gate.Has(gate.Multi)
		s.reject(row, text)
		return
	}
	for _, arg := range args {
		tx.bytes += len(arg) + queuedBytes
	}
	if tx.isTooLong(s) {
		return
	}
	tx.queued = append(tx.queued, queuedCommand{row, copied(args), s.client.User.Load().Rights()})
	s.client.TxLen.Store(int32(len(tx.queued)))
	s.call.Status("QUEUED")
}

// isTooLong ends a connection whose queue and watches exceed the query buffer limit. Every queued command calls it, because one
// batch can queue much more than the limit.
func (tx *transaction) isTooLong(s *Session) bool {
	if tx.bytes <= int(s.srv.Config.QueryBufferLimit.Get()) {
		return false
	}
	s.srv.Log.WarnLimited("transaction is over the query buffer limit, closed", "client", s.client.Addr, "bytes", tx.bytes)
	s.srv.Stats.QueryLimitCloses.Add(1)
	s.end = atOnce
	return true
}

func multi(c *command.Call) {
	s := sessionOf(c)
	if s.gate.Has(gate.Multi) {
		s.call.Error(errNested)
		return
	}
	s.gate.Set(gate.Multi, true)
	s.client.TxLen.Store(0)
	s.call.OK()
}

// exec runs the queue. No other connection's command runs in between.
func exec(c *command.Call) {
	s := sessionOf(c)
	if !s.gate.Has(gate.Multi) {
		s.call.Error(errExecNoMulti)
		return
	}
	tx := s.tx
	s.gate.Set(gate.Multi, false)
	s.tx = transaction{watches: tx.watches} // no defer stops them: after a panic, their locks may be held
	s.client.TxLen.Store(-1)
	s.srv.Clients.SetWatching(&s.client, 0)
	tx.run(s)
	s.tx.discard()
}

// run runs the queue and replies.
func (tx *transaction) run(s *Session) {
	if tx.spoiled {
		s.call.Error(errExecAbort)
		return
	}
	s.alone(func() {
		for _, w := range tx.watches {
			if w.Changed(s.nowNS) {
				s.call.NullArray()
				return
			}
		}
		s.call.Array(len(tx.queued))
		defer func() { s.tx.running = false }()
		var read [][]byte // keys to announce as changed, after the whole reply
		for i, q := range tx.queued {
			s.tx.running = true // UNWATCH and RESET clear it
			if v := s.scratch.keyTx; v != nil && q.row.Flags&spec.Admin != 0 {
				v.onlyOnce(s, i, func() { q.run(s) })
			} else {
				q.run(s)
			}
			if s.end != open || s.overOutput(len(s.call.Out)) {
				return
			}
			if s.gate.Tracked(s.client.Tracking(), q.row) {
				read = append(read, q.row.KeysOf(q.args)...)
			}
		}
		s.call.Invalidate(read)
	})
}

// run runs the command, if its user still may.
func (q *queuedCommand) run(s *Session) {
	f := inFlight{s, q.row, q.args}
	if s.client.User.Load().Rights() != q.rights {
		if reason := f.forbid(); reason != "" {
			s.reject(nil, formatError(errNoPermExec, lostRights[reason]))
			return
		}
	}
	f.perform()
}

// alone calls do while no other connection's command runs. It releases the batch's shared hold of the execution lock and takes the
// lock alone. EXEC and scripts have the lock already, so inside them it only calls do.
func (s *Session) alone(do func()) {
	if s.tx.running {
		do()
		return
	}
	lock, lane := s.srv.Execution, s.srv.Execution.Lane(s.scratch.lane)
	lane.RUnlock()
	if !lock.TryLock() {
		lock.Lock()
		if s.scratch.keyTx == nil {
			s.nowNS = s.srv.Clock() // others may have decided at a later time
			s.call.NowNS = s.nowNS
		}
	}
	defer func() {
		lock.Unlock()
		lane.RLock()
	}()
	s.checkRights()
	if s.srv.Gate.Has(gate.Busy) { // a script became busy while this waited
		s.call.Error(errBusy)
		return
	}
	do()
}

func discard(c *command.Call) {
	s := sessionOf(c)
	if !s.gate.Has(gate.Multi) {
		s.call.Error(errDiscardNoMulti)
		return
	}
	s.endTx()
	s.call.OK()
}

func watch(c *command.Call) {
	s := sessionOf(c)
	if s.gate.Has(gate.Multi) {
		s.call.Error(errWatchInMulti)
		return
	}
	if !s.srv.Port.InProcess() {
		s.call.Error(errWatchEngine)
		return
	}
	s.call.EachKey(func(_ *command.Call, key []byte) bool {
		if s.tx.bytes += len(key) + watchBytes; s.end != open || s.tx.isTooLong(s) {
			return false
		}
		s.tx.watches = append(s.tx.watches, s.srv.Store.Watch(key, s.nowNS))
		return true
	}, func(*command.Call, int64) {
		s.srv.Clients.SetWatching(&s.client, len(s.tx.watches))
		s.call.OK()
	})
}

func unwatch(c *command.Call) {
	s := sessionOf(c)
	if !s.gate.Has(gate.Multi) { // EXEC has ended the watches already
		s.endTx()
	}
	s.call.OK()
}
