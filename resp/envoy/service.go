package envoy

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"celld/cell"
	"celld/resp/door"
	"celld/resp/envoy/domains"
	"celld/resp/envoy/grpc"
	"celld/resp/envoy/message"
	"celld/store"
	"celld/store/policy"
)

// service decides on requests.
type service struct {
	limits  Limits
	options Options
	set     atomic.Pointer[domains.Set] // nil: none was ever good
	stats   *statistics
	now     func() time.Time

	panicked func(cause any, where string, about ...any) // see door.Door.Panic
}

// ask answers a request. The error is a grpc.Error.
func (s *service) ask(q *message.Request) (*message.Response, error) {
	set := s.set.Load()
	switch {
	case q.Domain == "":
		return nil, s.refuse("rate limit domain must not be empty")
	case len(q.Descriptors) == 0:
		return nil, s.refuse("rate limit descriptor list must not be empty")
	case set == nil:
		s.stats.serviceErrors.Add(1)
		return nil, grpc.Errorf(grpc.FailedPrecondition, "no rate limit configuration loaded: the log says why")
	}
	a := answers.Get().(*answer)
	defer a.end()
	a.service, a.Request = s, q
	if err := a.find(set); err != nil {
		return nil, err
	}
	if err := a.decide(); err != nil {
		s.stats.storeErrors.Add(1)
		return nil, err
	}
	return a.response(), nil
}

// refuse counts a request that is wrong.
func (s *service) refuse(text string) error {
	s.stats.serviceErrors.Add(1)
	return grpc.Errorf(grpc.InvalidArgument, "%s", text)
}

// answer is a request on its way.
type answer struct {
	*service
	*message.Request
	asked    []asked // for each descriptor
	requests []store.TakeRequest
	of       []int // whose each request is: a place in asked, or group
	keys     []byte

	// Room for the usual request, of a descriptor or two.
	firstAsked    [2]asked
	firstRequests [2]store.TakeRequest
	firstOf       [2]int
	firstCalls    [2]store.Call
	firstKeys     [160]byte
}

// answers are used again: so a call allocates 0.5 KB and not 1.8.
var answers = sync.Pool{New: func() any { return &answer{} }}

// end lets another request use it.
func (a *answer) end() {
	*a = answer{}
	answers.Put(a)
}

// group is the owner of a request that takes several limits together.
const group = -1

// asked is a descriptor, and what holds for it.
type asked struct {
	domains.Match // of which the Limit is nil where none holds
	unlimited     bool
	hits          int64
	negative      bool // they are given back
	key           []byte
	counter       cell.Limit // by which its calls are counted; the zero value: another limit decides
	seen          *policy.Seen

	request     int // its place in requests; none: it is not asked
	call, calls int // its first call there, and how many it has

	shown     *message.Limit // the limit that decided
	over      bool
	after     uint64 // the hits that count, with its own
	remaining uint64
	reset     int64 // seconds
}

const none = -1

// find finds the limits.
func (a *answer) find(set *domains.Set) error {
	if a.asked = a.firstAsked[:]; len(a.Descriptors) > len(a.asked) {
		a.asked = make([]asked, len(a.Descriptors))
	}
	a.asked = a.asked[:len(a.Descriptors)]
	known := set.Has(a.Domain)
	var replaced []string
	for i := range a.Descriptors {
		d, it := &a.Descriptors[i], &a.asked[i]
		it.hits, it.negative, it.request = hitsOf(a.Request, d), d.Negative, none
		switch {
		case !known:
			a.stats.unknownDomain(a.Domain)
		case d.Limit != nil && d.Limit.Unit.Period() == 0:
			return a.refuse(fmt.Sprintf("descriptor %d: the unit %v of its limit is not known: expected SECOND, MINUTE, HOUR, DAY, WEEK, "+
				"MONTH or YEAR", i+1, d.Limit.Unit))
		case d.Limit != nil:
			it.Limit, it.Series = &domains.Limit{Limit: *d.Limit}, domains.SeriesOf(a.Domain, d.Entries)
		default:
			it.Match, _ = set.Find(a.Domain, d.Entries)
		}
		if it.Limit == nil {
			continue
		}
		replaced = append(replaced, it.Replaces...)
		if it.Unlimited {
			it.unlimited, it.Limit = true, nil
		}
	}
	for i := range a.asked {
		if it := &a.asked[i]; it.Limit != nil && it.Name != "" && slices.Contains(replaced, it.Name) {
			it.Limit = nil
		}
	}
	return nil
}

// hitsOf are the hits of a descriptor. More than a limit can count are as many as it can.
func hitsOf(q *message.Request, d *message.Descriptor) int64 {
	if d.Hits != nil {
		return int64(min(*d.Hits, cell.MaxCost))
	}
	return int64(max(1, q.Hits))
}

// decide asks the store, and notes what it says.
func (a *answer) decide() error {
	a.requests, a.of, a.keys = a.firstRequests[:0], a.firstOf[:0], a.firstKeys[:0]
	if a.options.AllOrNone {
		return a.decideTogether()
	}
	for i := range a.asked {
		if err := a.add(i, cell.Force); err != nil {
			return err
		}
	}
	return a.send(0, len(a.requests))
}

// add makes the request of a descriptor by itself. What is counted is counted also over the limit; an algorithm takes what passes.
func (a *answer) add(i int, mode cell.Mode) error {
	it := &a.asked[i]
	if it.Limit == nil {
		return nil
	}
	calls, err := a.callsOf(i, mode == cell.Force)
	if err != nil || len(calls) == 0 {
		return err
	}
	r := store.TakeRequest{Calls: calls, TakeOptions: store.TakeOptions{Cost: it.hits, Mode: mode}}
	switch {
	case it.hits == 0:
		r.Mode = cell.Peek
	case it.negative:
		r.Cost, r.Mode, r.Look = -it.hits, cell.Take, true
	case calls[0].Limit != &it.counter && mode == cell.Force:
		r.Mode = cell.Take
	}
	it.request, it.call, it.calls = len(a.requests), 0, len(calls)
	a.requests, a.of = append(a.requests, r), append(a.of, i)
	return nil
}

// callsOf are the calls of a descriptor. There is none where nothing passes.
func (a *answer) callsOf(i int, counted bool) ([]store.Call, error) {
	it := &a.asked[i]
	if it.key == nil {
		from := len(a.keys)
		a.keys = appendKey(a.keys, a.Domain, a.Descriptors[i].Entries, it.Shared, it.Algorithm, a.options.AllOrNone)
		it.key, it.seen = a.keys[from:len(a.keys):len(a.keys)], seenIn(a.Descriptors[i].Entries)
	}
	switch {
	case it.Policy != "":
		p := a.limits.Policy(it.Policy)
		if p == nil {
			return nil, grpc.Errorf(grpc.FailedPrecondition, "there is no policy '%s', which the configuration names", it.Policy)
		}
		calls := make([]store.Call, len(p.Limits))
		for j, l := range p.Limits {
			calls[j] = store.Call{Key: it.key, Limit: &l.Limit, Policy: l, Seen: it.seen}
		}
		return calls, nil
	case it.Decides != nil:
		return a.oneCall(i, it.Decides), nil
	case counted && it.Algorithm == "":
		it.counter = counter(&it.Limit.Limit)
		return a.oneCall(i, &it.counter), nil
	case it.Requests == 0 || it.Algorithm != "":
		return nil, nil
	}
	limit := window(&it.Limit.Limit)
	return a.oneCall(i, &limit), nil
}

// oneCall is the call of a descriptor of one limit.
func (a *answer) oneCall(i int, l *cell.Limit) []store.Call {
	c := store.Call{Key: a.asked[i].key, Limit: l, Seen: a.asked[i].seen}
	if i >= len(a.firstCalls) {
		return []store.Call{c}
	}
	a.firstCalls[i] = c
	return a.firstCalls[i : i+1 : i+1]
}

// send asks the store for the requests from a place to another, as many at once as it takes.
func (a *answer) send(from, to int) error {
	for ; from < to; from += store.MaxTakes {
		part := a.requests[from:min(from+store.MaxTakes, to)]
		err := a.limits.Decide(part, func(i int) door.Verdict {
			at := a.of[from+i]
			if at == group {
				return door.Verdict{Limited: part[i].Taken.Limited}
			}
			it := &a.asked[at]
			a.judge(it)
			return door.Verdict{Limited: it.over, Shadow: it.Shadow}
		})
		if err != nil {
			return unavailable(err)
		}
		for i := range part {
			if err := part[i].Err; err != nil && !errors.Is(err, store.ErrTooMuch) {
				return unavailable(err)
			}
		}
	}
	for i := range a.asked {
		a.judge(&a.asked[i])
	}
	return nil
}

// unavailable is the status of a call that is not decided.
func unavailable(err error) error { return grpc.Errorf(grpc.Unavailable, "%v", err) }

// judge says what the store's answer means.
func (a *answer) judge(it *asked) {
	if it.Limit == nil {
		return
	}
	if it.request == none { // nothing passes
		it.shown = &it.Limit.Limit
		it.over, it.after = it.hits > 0 && !it.negative, uint64(it.hits)
		it.reset = a.resetOf(it.Unit, 0)
		return
	}
	r := &a.requests[it.request]
	c := binding(r.Calls[it.call : it.call+it.calls])
	d, limit := &c.Decision, it.show(c)
	it.reset = a.resetOf(it.shown.Unit, d.ResetAfterNS)
	switch {
	case r.Err != nil: // more than can be counted
		it.over, it.after = true, cell.MaxCost
	case c.Ruled && c.Limit == &it.counter && !d.Limited && d.Remaining < d.Limit:
		share, counted := shareOf(limit, uint64(d.Remaining))
		it.after, it.over, it.remaining = counted, counted > share && !it.negative, share-min(share, counted)
		if it.over {
			it.after = limit + uint64(it.hits)
		}
	case c.Ruled:
		it.over, it.after, it.remaining = d.Limited && !it.negative, limit+uint64(it.hits), 0
		if !d.Limited {
			it.after, it.remaining = 0, min(limit, uint64(d.Remaining))
		}
	case c.Limit == &it.counter:
		it.after = uint64(d.Limit - d.Remaining)
		it.over, it.remaining = it.after > limit && !it.negative, limit-min(limit, it.after)
	default:
		it.over, it.remaining = denies(c) && !it.negative, uint64(d.Remaining)
		it.after = limit - min(limit, it.remaining)
		if it.over {
			it.after = limit + uint64(it.hits)
		}
	}
}

// show sets the limit that decided, that of the configuration or of a policy, and returns its count.
func (it *asked) show(c *store.Call) (count uint64) {
	if c.Policy == nil {
		it.shown = &it.Limit.Limit
		return uint64(it.Requests)
	}
	count = uint64(c.Limit.Count)
	it.shown = &message.Limit{Requests: uint32(min(count, math.MaxUint32)), Name: it.Name,
		Unit: message.UnitLasting(time.Duration(c.Limit.PeriodNS))}
	return count
}

// binding is the call of a descriptor's limits that says most: one that denies, else the one with the least left. A limit of a policy that
// has shadow says nothing beside others.
func binding(calls []store.Call) *store.Call {
	best := &calls[0]
	for i := range calls {
		switch c := &calls[i]; {
		case denies(c):
			return c
		case shadowed(best) && !shadowed(c), shadowed(best) == shadowed(c) && c.Decision.Remaining < best.Decision.Remaining:
			best = c
		}
	}
	return best
}

func denies(c *store.Call) bool { return c.Decision.Limited && !shadowed(c) }

// shadowed reports a limit that never denies by its policy's word. That of a descriptor with shadow_mode is told as it is.
func shadowed(c *store.Call) bool { return c.Policy != nil && c.Limit.Shadow }

// shareOf is the part of a limit that holds where an engine is away and the process decides for a share, and what that has counted. What
// remains in the counter's share says how many shares there are, as next to nothing of it is ever counted.
func shareOf(limit, remaining uint64) (share, counted uint64) {
	if remaining == 0 {
		return 0, cell.MaxCost
	}
	shares := cell.MaxCost / remaining
	return max(limit/shares, min(limit, 1)), cell.MaxCost/shares - remaining
}

// resetOf is how many seconds there are to the end of a window; where the store does not say, by the clock.
func (a *answer) resetOf(unit message.Unit, ns uint64) int64 {
	period := int64(unit.Period() / time.Second)
	if ns > 0 || period == 0 {
		return int64((ns + 999_999_999) / 1_000_000_000)
	}
	return period - a.now().Unix()%period
}
