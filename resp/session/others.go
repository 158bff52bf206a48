package session

import (
	"slices"
	"strconv"

	"celld/cell"
	"celld/resp/client"
	"celld/resp/command/decide"
	"celld/resp/gate"
	"celld/store"
)

// Decide decides requests that came by another protocol than RESP, 1 to store.MaxTakes of them, in their order. They are counted, written
// to the disk and refused as a client's, and shown to monitors. It returns when all are decided, and are on the disk where replies wait for
// that. verdict is called for each that counts, and says what its caller will be told. The error is a *CallError: then nothing is known of
// any request. That of a single request is its Err. Any goroutine may call it.
func (srv *Service) Decide(requests []store.TakeRequest, verdict func(i int) decide.Verdict) (err error) {
	err = &CallError{errInternal, ErrPanicked} // which a panic leaves
	defer srv.Survive("call of another protocol")
	c, answered := srv.scratches.get(&srv.deciding), make(woken, 1)
	if srv.Synchronous {
		srv.Persist.Begin()
	}
	decided, refused := srv.askOthers(c, answered, requests)
	if refused == nil {
		if !decided {
			<-answered
		}
		c.decider.Count(requests, verdict)
	}
	err = nil
	switch {
	case !srv.Synchronous:
	case refused == nil && slices.ContainsFunc(requests, func(r store.TakeRequest) bool { return r.Mode != cell.Peek }):
		err = srv.commit()
	default: // calls that only look do not wait for the disk
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

// Waits reports that calls from within the process may wait, for an engine or the disk.
func (srv *Service) Waits() bool { return srv.space != nil || srv.Synchronous }

// askOthers asks for requests while no transaction or script runs alone. If they are not decided yet, w is woken when they are.
func (srv *Service) askOthers(c *scratch, w store.Waker, requests []store.TakeRequest) (decided bool, refused *CallError) {
	lane := srv.Execution.Lane(c.lane)
	lane.RLock()
	defer lane.RUnlock()
	if refused = srv.refuseWithin(srv.Commands.Find([]byte(takeName))); refused != nil {
		return false, refused
	}
	nowNS := srv.Clock()
	if srv.Gate.Has(gate.Monitored) {
		for i := range requests {
			srv.tellMonitors(client.MonitorLine(srv.Store.WallNS(nowNS), "inside", slices.All(wordsOf(&requests[i]))))
		}
	}
	return srv.limiter.TakeBatch(requests, store.Access{NowNS: nowNS, Lane: c.lane}, w), nil
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
	switch r.Mode {
	case cell.Peek:
		add("PEEK")
	case cell.Force:
		add("FORCE")
	}
	return words
}
