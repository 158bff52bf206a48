package session

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"

	"celld/cell"
	"celld/resp/acl"
	"celld/resp/client"
	"celld/resp/command"
	"celld/resp/command/decide"
	"celld/resp/gate"
	"celld/store"
	"celld/store/waiting"
)

// Caller is who asks without a connection of RESP.
type Caller struct {
	Addr    string // for MONITOR and logs
	Trusted bool   // it may do everything; else it is the user default, like a client that has not authenticated
}

// MisreadError is the error of a call that is not well formed.
type MisreadError struct {
	CallError
	Ask   int // which of several
	Limit int // which of its limits is wrong by itself; -1: none
}

func (e *MisreadError) Unwrap() error { return &e.CallError }

// Take decides takes one after the other, as a client's pipeline. If one is not well formed, it decides none: the error is a *MisreadError.
// answer is called for each, in their order, with the request or with its error, a *CallError. Any other error ends all: it is a *CallError
// too, or that of ctx. When ctx ends, who waits leaves the line, and what was granted meanwhile flows back. Any goroutine may call it.
func (srv *Service) Take(ctx context.Context, from Caller, asks []decide.Ask, answer func(r *store.TakeRequest, err error)) error {
	if refused := srv.refuseWithin(from, srv.rowOf(&asks[0])); refused != nil { // who learns nothing of policies
		return refused
	}
	c := srv.scratches.get(&srv.deciding)
	c.stats.Begin(srv.Clock())
	version := srv.Store.PoliciesVersion()
	requests, err := srv.read(c, asks)
	for len(requests) > 0 && err == nil {
		n := srv.together(from, asks, requests)
		if srv.Store.PoliciesVersion() != version { // a policy may have changed while one before waited
			n = 1
			r, _, text := c.decider.Read(&asks[0])
			if requests[0] = r; text != "" {
				answer(nil, srv.failed(c, &asks[0], text, nil))
				requests, asks = requests[1:], asks[1:]
				continue
			}
		}
		some, refused := requests[:n], (*CallError)(nil)
		refused, err = srv.decide(ctx, c, from, srv.rowOf(&asks[0]), some, func() {
			c.decider.CountTaken(some, srv.limiter == store.Limiter(srv.Store))
		})
		for i := range some {
			switch r := &some[i]; {
			case err != nil:
			case refused != nil:
				answer(nil, refused)
			case r.Err != nil:
				answer(nil, srv.failed(c, &asks[i], storeError(r.Err), r.Err))
			default:
				c.stats.Count(srv.rowOf(&asks[i]), 1, c.lane)
				answer(r, nil)
			}
		}
		srv.finish(c)
		requests, asks = requests[n:], asks[n:]
	}
	srv.finish(c)
	srv.giveUp(c, err)
	return err
}

// rowOf is the row of the command that asks the same.
func (srv *Service) rowOf(a *decide.Ask) *command.Row { return srv.Commands.Find([]byte(a.Command())) }

// together is how many of the first requests are decided at once: those of one command that neither wait nor hold leases. Of a user who may
// not do everything it is one, as each may be refused by itself.
func (srv *Service) together(from Caller, asks []decide.Ask, requests []store.TakeRequest) (n int) {
	if !from.Trusted && !srv.Users.Default.Rights().MayAll() {
		return 1
	}
	same := func(i int) bool { return requests[i].Terms == nil && asks[i].Command() == asks[0].Command() }
	for n = 1; same(0) && n < min(store.MaxTakes, len(requests)) && same(n); n++ { //nolint:revive // it counts
	}
	return n
}

// giveUp gives a scratch back, unless a panic has left it half done.
func (srv *Service) giveUp(c *scratch, err error) {
	if !errors.Is(err, ErrPanicked) {
		srv.scratches.put(c)
	}
}

// read makes requests.
func (srv *Service) read(c *scratch, asks []decide.Ask) ([]store.TakeRequest, error) {
	requests := make([]store.TakeRequest, len(asks))
	for i := range asks {
		r, wrong, text := c.decider.Read(&asks[i])
		if text != "" {
			return nil, &MisreadError{*srv.failed(c, &asks[i], text, nil), i, wrong}
		}
		requests[i] = r
	}
	return requests, nil
}

// failed is the error of an ask, which it counts.
func (srv *Service) failed(c *scratch, a *decide.Ask, text string, cause error) *CallError {
	row := srv.rowOf(a)
	c.stats.Count(row, 1, c.lane)
	srv.countError(row, []byte("-"+text))
	return &CallError{text, cause}
}

// Decide decides requests that came by another protocol than RESP, 1 to store.MaxTakes of them, in their order. They are counted, written
// to the disk and refused as a client's, and shown to monitors. It returns when all are decided, and are on the disk where replies wait for
// that. verdict is called for each that counts, and says what its caller will be told. The error is a *CallError: then nothing is known of
// any request. That of a single request is its Err. Any goroutine may call it.
func (srv *Service) Decide(requests []store.TakeRequest, verdict func(i int) decide.Verdict) (err error) {
	c := srv.scratches.get(&srv.deciding)
	row := srv.Commands.Find([]byte(takeName))
	refused, err := srv.decide(context.Background(), c, Caller{Addr: "inside", Trusted: true}, row, requests, func() {
		c.decider.Count(requests, verdict)
	})
	srv.giveUp(c, err)
	if refused != nil {
		return refused
	}
	return err
}

// decide decides requests of a caller by a command, and has count count them. Nothing is decided where they are refused. After any other
// error nothing is known of them.
func (srv *Service) decide(ctx context.Context, c *scratch, from Caller, row *command.Row, requests []store.TakeRequest, count func()) (
	refused *CallError, err error,
) {
	err = errPanicked // which a panic leaves
	defer srv.Survive("call of another protocol")
	var answered woken // nil: the store in the process answers at once
	if srv.space != nil || requests[0].Terms != nil {
		answered = make(woken, 1)
	}
	if srv.Synchronous {
		srv.Persist.Begin()
	}
	decided, refused := srv.ask(c, from, row, answered, requests)
	var gone error
	if refused == nil && !decided {
		sinceNS := srv.Clock()
		gone = srv.await(ctx, requests, answered)
		c.stats.TookNS(srv.Clock() - sinceNS)
	}
	if refused == nil && gone == nil {
		count()
	}
	err = gone
	switch {
	case !srv.Synchronous:
	case refused == nil && slices.ContainsFunc(requests, func(r store.TakeRequest) bool { return r.Mode != cell.Peek }):
		err = cmp.Or(err, srv.commit())
	default: // calls that only look do not wait for the disk
		srv.Persist.Leave()
	}
	c.decider.Decided.Settle(c.lane, err)
	if err != nil && err != gone {
		err = &CallError{formatError(ErrMisconf, err), err}
	}
	return refused, err
}

// Waits reports that calls from within the process may wait, for an engine or the disk.
func (srv *Service) Waits() bool { return srv.space != nil || srv.Synchronous }

// ask asks for requests while no transaction or script runs alone. If they are not decided yet, w is woken when they are.
func (srv *Service) ask(c *scratch, from Caller, row *command.Row, w store.Waker, requests []store.TakeRequest) (
	decided bool, refused *CallError,
) {
	lane := srv.Execution.Lane(c.lane)
	lane.RLock()
	defer lane.RUnlock()
	a := store.Access{NowNS: srv.Clock(), Lane: c.lane}
	c.stats.Begin(a.NowNS)
	if refused = srv.refuseWithin(from, row); refused == nil && !from.Trusted {
		refused = srv.forbidKeys(from, row, requests, &a)
	}
	if refused != nil {
		return false, refused
	}
	if srv.Gate.Has(gate.Monitored) {
		for i := range requests {
			srv.tellMonitors(client.MonitorLine(srv.Store.WallNS(a.NowNS), from.Addr, slices.All(wordsOf(&requests[i]))))
		}
	}
	return srv.limiter.TakeBatch(requests, a, w), nil
}

// Forbid returns why a caller may not run a command, whatever its keys, and logs that; or nil.
func (srv *Service) Forbid(from Caller, row *command.Row) *CallError {
	switch {
	case from.Trusted:
	case !srv.Users.Open():
		return &CallError{Text: errNoAuth}
	case !srv.Users.Default.Rights().MayRun(row.ACL, nil):
		srv.noteRefused(from, row, acl.DeniedCommand, row.FullName())
		return &CallError{Text: formatError(errNoPermCommand, row.FullName())}
	}
	return nil
}

// refuseWithin returns what Forbid does, or why the server does not run a command now; or nil.
func (srv *Service) refuseWithin(from Caller, row *command.Row) (refused *CallError) {
	text, refusal := srv.closed(row), srv.Persist.Refusal()
	switch refused = srv.Forbid(from, row); {
	case refused != nil:
	case text == errBusy:
		refused = &CallError{text, ErrScriptBusy}
	case text != "":
		refused = &CallError{Text: text}
	case refusal != nil:
		refused = &CallError{formatError(ErrMisconf, refusal), refusal}
	default:
		return nil
	}
	srv.Stats.Rejected(row, refused.Text)
	return refused
}

// forbidKeys returns the error of requests for keys to which the user default has no right, or nil. It gives an access that user's rights.
func (srv *Service) forbidKeys(from Caller, row *command.Row, requests []store.TakeRequest, a *store.Access) *CallError {
	rights := srv.Users.Default.Rights()
	if rights.MayAll() {
		return nil
	}
	a.May = rights.OnKey()
	for i := range requests {
		for j := range requests[i].Calls {
			if key := requests[i].Calls[j].Key; !rights.MayTouch(key, row.AccessTo(0, nil)) {
				srv.noteRefused(from, row, acl.DeniedKey, string(key))
				srv.Stats.Rejected(row, errNoPermKey)
				return &CallError{Text: errNoPermKey}
			}
		}
	}
	return nil
}

// noteRefused logs what the user default may not do.
func (srv *Service) noteRefused(from Caller, row *command.Row, reason acl.Reason, object string) {
	c := &client.Client{Addr: from.Addr}
	c.User.Store(srv.Users.Default)
	srv.logDenial(c, acl.Entry{Reason: reason, Context: "toplevel", Object: object, Username: acl.DefaultName, AtNS: srv.Clock()})
	srv.logOf(c, refusedCommand, "command", row.FullName(), "reason", "the user may not use this "+string(reason))
}

// await returns when requests are decided. If ctx ends before, the one that waits has left, and the error is that of ctx.
func (srv *Service) await(ctx context.Context, requests []store.TakeRequest, answered woken) error {
	r := &requests[0]
	if r.Terms == nil || r.Terms.Mode != store.Wait {
		<-answered
		return nil
	}
	sinceNS := srv.Clock()
	srv.within.add(r)
	defer srv.within.remove(r)
	if srv.Stopping.refusing.Load() { // its look at those who wait may have been before
		srv.Port.Leave(r, store.ErrRefused)
	}
	select {
	case <-answered:
		if r.Err == nil && !r.Taken.Limited {
			srv.Stats.Waits.Note(max(0, srv.Clock()-sinceNS))
		}
		return nil
	case <-ctx.Done():
	}
	srv.Port.Leave(r, ctx.Err())
	if <-answered; waiting.GivesBack(r) {
		srv.Later.GiveBack(func() { waiting.GiveBack(r, true, srv.Port, store.Access{NowNS: srv.Clock()}) })
	}
	return ctx.Err()
}

// wordsOf are the words of the command that does what a request does.
func wordsOf(r *store.TakeRequest) (words [][]byte) {
	add := func(list ...string) {
		for _, word := range list {
			words = append(words, []byte(word))
		}
	}
	var pairs, costs []string // of a key and a limit
	for i := range r.Calls {
		c := &r.Calls[i]
		limit := c.Limit.String()
		if c.Policy != nil {
			if c.Policy != c.Policy.Policy.Limits[0] { // which stands for all of them
				continue
			}
			limit = "@" + c.Policy.Policy.Name
		}
		pairs, costs = append(pairs, string(c.Key), limit), append(costs, strconv.FormatInt(c.CostOf(r.Cost), 10))
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
	if one := slices.Compact(slices.Clone(costs)); len(one) == 1 {
		costs = one
	}
	add(costs...) // no command has one for each pair
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
