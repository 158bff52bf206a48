package door

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"celld/cell"
	"celld/resp/client"
	"celld/resp/command"
	"celld/resp/command/decide"
	"celld/resp/command/spec"
	"celld/resp/gate"
	"celld/store"
	"celld/store/waiting"
)

// question is what a caller asks by its values.
type question interface {
	row() *command.Row                     // of the command that does the same
	words(yield func(words [][]byte) bool) // of that command, or of several, for monitors
	keys(yield func(key []byte) bool)
	changes() bool // something, for which its answer waits for the disk
	waits() bool   // it may be answered later, though the store is in the process

	ask(a store.Access, w store.Waker) (answered bool)
	await(w woken) error // returns when it is answered, where ask has returned false. After an error nothing is known of it
}

// woken is told when the limiter has answered.
type woken chan struct{}

func (w woken) Wake() { w <- struct{}{} }

// decide asks a caller's question, and has count count the answer. Nothing is asked where the caller is refused. After any other error
// nothing is known of it.
func (d *Door) decide(c *desk, from Caller, q question, count func()) (refused *CallError, err error) {
	err = errPanicked // which a panic leaves
	defer d.Survive("call of another protocol")
	var answered woken // nil: the store in the process answers at once
	if !d.Port.InProcess() || q.waits() {
		answered = make(woken, 1)
	}
	r := round{d: d}
	r.begin()
	defer r.leave() // if a panic leaves it open: others would wait for its end
	decided, refused := d.ask(c, from, q, answered)
	var gone error
	if refused == nil && !decided {
		sinceNS := d.Clock()
		r.leave() // no write begins while a round lasts, and no round while a write waits
		gone = q.await(answered)
		r.begin()
		c.stats.TookNS(d.Clock() - sinceNS)
	}
	if refused == nil && gone == nil {
		count()
	}
	err = gone
	if refused == nil && q.changes() { // calls that only look do not wait for the disk
		err = cmp.Or(err, r.commit())
	} else {
		r.leave()
	}
	c.decider.Decided.Settle(c.lane, err)
	if err != nil && err != gone {
		err = Misconf(err)
	}
	return refused, err
}

// round is a round of decisions, where replies wait for the disk; otherwise it does nothing.
type round struct {
	d    *Door
	open bool
}

func (r *round) begin() {
	if r.open = r.d.Synchronous; r.open {
		r.d.Persist.Begin()
	}
}

// leave ends it without waiting for the disk, unless it has ended.
func (r *round) leave() {
	if r.open {
		r.d.Persist.Leave()
	}
	r.open = false
}

// commit ends it when its changes are on the disk.
func (r *round) commit() error {
	if !r.open {
		return nil
	}
	r.open = false
	return r.d.Commit()
}

// ask asks while no transaction or script runs alone. If there is no answer yet, w is woken when there is.
func (d *Door) ask(c *desk, from Caller, q question, w store.Waker) (answered bool, refused *CallError) {
	lane := d.Execution.Lane(c.lane)
	lane.RLock()
	defer lane.RUnlock()
	a := store.Access{NowNS: d.Clock(), Lane: c.lane}
	c.stats.Begin(a.NowNS)
	if refused = d.refuse(from, q.row(), q.keys); refused != nil {
		return false, refused
	}
	if rights := d.Users.Default.Rights(); !from.Trusted && !rights.MayAll() {
		a.May = rights.OnKey()
	}
	if d.Gate.Has(gate.Monitored) {
		for words := range q.words {
			d.TellMonitors(client.MonitorLine(d.Store.WallNS(a.NowNS), from.Addr, slices.All(words)))
		}
	}
	return q.ask(a, w), nil
}

// takes are one or several requests to the limiter.
type takes struct {
	d        *Door
	ctx      context.Context
	of       *command.Row
	requests []store.TakeRequest
}

func (t *takes) row() *command.Row { return t.of }
func (t *takes) waits() bool       { return t.requests[0].Terms != nil }

func (t *takes) changes() bool {
	return slices.ContainsFunc(t.requests, func(r store.TakeRequest) bool { return r.Mode != cell.Peek })
}

func (t *takes) keys(yield func(key []byte) bool) {
	for i := range t.requests {
		for j := range t.requests[i].Calls {
			if !yield(t.requests[i].Calls[j].Key) {
				return
			}
		}
	}
}

func (t *takes) words(yield func(words [][]byte) bool) {
	for i := range t.requests {
		if !yield(wordsOf(&t.requests[i])) {
			return
		}
	}
}

func (t *takes) ask(a store.Access, w store.Waker) bool {
	for i := range t.requests {
		t.d.EndWait(t.requests[i].Terms)
	}
	return t.d.Limiter.TakeBatch(t.requests, a, w)
}

// await returns when all are decided. If ctx ends before, the one that waits has left, and the error is that of ctx.
func (t *takes) await(answered woken) error {
	d, r := t.d, &t.requests[0]
	if r.Terms == nil || r.Terms.Mode != store.Wait {
		<-answered
		return nil
	}
	sinceNS := d.Clock()
	d.within.add(r)
	defer d.within.remove(r)
	if d.Refusing.Load() { // its look at those who wait may have been before
		d.Port.Leave(r, store.ErrRefused)
	}
	select {
	case <-answered:
		if r.Err == nil && !r.Taken.Limited {
			d.Stats.Waits.Note(max(0, d.Clock()-sinceNS))
		}
		return nil
	case <-t.ctx.Done():
	}
	d.Port.Leave(r, t.ctx.Err())
	if <-answered; waiting.GivesBack(r) {
		d.Later.GiveBack(func() { waiting.GiveBack(r, true, d.Port, store.Access{NowNS: d.Clock()}) })
	}
	return t.ctx.Err()
}

// throttle is a CL.THROTTLE.
type throttle struct {
	d        *Door
	of       *command.Row
	key      []byte
	numbers  [4]int64
	requests [1]store.Request
	text     string // of what is wrong with the numbers; "": nothing
}

func (t *throttle) row() *command.Row                { return t.of }
func (t *throttle) waits() bool                      { return false }
func (t *throttle) changes() bool                    { return true }
func (t *throttle) keys(yield func(key []byte) bool) { yield(t.key) }
func (t *throttle) words(yield func(words [][]byte) bool) {
	var numbers []string
	for _, n := range t.numbers {
		numbers = append(numbers, strconv.FormatInt(n, 10))
	}
	yield(commandOf(t.of, t.key, numbers))
}

func (t *throttle) ask(a store.Access, w store.Waker) bool {
	t.requests[0], t.text = decide.ReadThrottle(t.key, t.numbers)
	return t.text != "" || t.d.Limiter.ThrottleBatch(t.requests[:], a, w)
}

func (t *throttle) await(answered woken) error {
	<-answered
	return nil
}

// ViewBytes is what a view of an engine's keys takes, most of it for its table.
const ViewBytes = 48 << 10

// MostTries is how often what changes an engine's keys is tried. Each conflict means that another's change was stored, so that this many
// are no accident.
const MostTries = 100

// ErrConflicts is the error after them.
var ErrConflicts = &store.DownError{Cause: "others change the keys all the time"}

// keyed is what a command does with a key. An engine reads the key first, and stores it then. A session does the same by its keyTx, which
// must not block; this blocks its caller's goroutine, and is a fifth of that.
type keyed struct {
	d    *Door
	of   *command.Row
	key  []byte
	args []string
	do   func(keys store.Keys, a store.Access) (text string, err error)
	text string
	err  error

	a  store.Access
	tx store.Tx
}

func (k *keyed) row() *command.Row                     { return k.of }
func (k *keyed) waits() bool                           { return false }
func (k *keyed) changes() bool                         { return k.of.Flags&spec.Write != 0 }
func (k *keyed) keys(yield func(key []byte) bool)      { yield(k.key) }
func (k *keyed) words(yield func(words [][]byte) bool) { yield(commandOf(k.of, k.key, k.args)) }

func (k *keyed) ask(a store.Access, w store.Waker) bool {
	if k.d.Port.InProcess() {
		k.text, k.err = k.do(k.d.Keys, a)
		return true
	}
	if k.err = k.d.Held.Hold(ViewBytes); k.err != nil {
		return true
	}
	k.a = a
	k.tx = k.d.Port.Open([][]byte{k.key}, store.OpenOptions{Leases: k.of.Flags&spec.OfLease != 0, NowNS: a.NowNS}, w)
	return false
}

func (k *keyed) await(answered woken) error {
	defer k.d.Held.Let(ViewBytes)
	defer k.tx.Close()
	<-answered
	for tries := 0; ; tries++ {
		_, foreign := k.tx.Foreign(k.key)
		switch {
		case k.tx.Err() != nil && tries == 0:
			k.err = NotSent(k.tx.Err())
		case k.tx.Err() != nil:
			k.err = k.tx.Err()
		case tries > 0 && !k.tx.Conflict():
		case tries == MostTries:
			k.err = ErrConflicts
		case foreign && k.of.ReadsState():
			k.err = store.ErrWrongType
		default:
			k.a.NowNS = k.tx.TimeNS()
			if k.text, k.err = k.do(k.tx.Keys(), k.a); !k.tx.Commit(answered) {
				<-answered
				continue
			}
			k.err = cmp.Or(k.err, k.tx.Err())
		}
		return nil
	}
}

// commandOf are the words of a command of a key and what follows it.
func commandOf(row *command.Row, key []byte, more []string) (words [][]byte) {
	words = [][]byte{[]byte(strings.ToUpper(row.FullName())), key}
	for _, word := range more {
		words = append(words, []byte(word))
	}
	return words
}

// wordsOf are the words of the command that does what a request does.
func wordsOf(r *store.TakeRequest) (words [][]byte) {
	add := func(list ...string) {
		for _, word := range list {
			words = append(words, []byte(word))
		}
	}
	var pairs, costs, named []string // of a key and a limit
	for i := range r.Calls {
		c := &r.Calls[i]
		limit, cost := c.Limit.String(), strconv.FormatInt(c.CostOf(r.Cost), 10)
		hasName := c.Own && c.Limit.Name != cell.Name{}
		if name := c.Limit.Name.String(); hasName && !slices.Contains(named, name) {
			named = append(named, "COST", cost, "OF", name)
		}
		if c.Policy != nil {
			if c.Policy != c.Policy.Policy.Limits[0] { // which stands for all of them
				continue
			}
			limit = "@" + c.Policy.Policy.Name
		}
		if pairs = append(pairs, string(c.Key), limit); !hasName {
			costs = append(costs, cost)
		}
	}
	switch {
	case r.Cost < 0:
		add("CL.GIVE")
		add(pairs...)
		add(strconv.FormatInt(-r.Cost, 10))
		return words
	case len(pairs) > 2:
		add("CL.MTAKE", strconv.Itoa(len(pairs)/2))
	default:
		add(takeName)
	}
	add(pairs...)
	add("COST")
	switch one := slices.Compact(slices.Clone(costs)); {
	case len(one) == 0:
		costs = []string{strconv.FormatInt(r.Cost, 10)}
	case len(one) == 1:
		costs = one
	}
	add(costs...) // no command has one for each pair
	add(named...)
	switch {
	case r.UpTo:
		add("UPTO")
	case r.Mode == cell.Peek:
		add("PEEK")
	case r.Mode == cell.Force:
		add("FORCE")
	}
	if t := r.Terms; t != nil {
		ms := func(ns int64) string { return strconv.FormatInt(ns/1e6, 10) }
		switch t.Mode {
		case store.Reserve:
			add("RESERVE", ms(t.MaxNS))
		case store.Wait:
			add("WAIT", ms(t.MaxNS))
		}
		if t.LeaseNS > 0 {
			add("LEASE", ms(t.LeaseNS))
		}
		if t.Name != "" {
			add("ID", t.Name)
		}
	}
	return words
}
