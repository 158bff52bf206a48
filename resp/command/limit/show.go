package limit

import (
	"cmp"
	"errors"
	"slices"

	"celld/cell"
	"celld/resp/command"
	"celld/store"
	"celld/store/policy"
)

// shown is what CL.SHOW tells of a limit.
type shown struct {
	limit     cell.Limit
	policy    *policy.Limit // nil: a literal
	next      cell.Decision // on a call of cost 1
	used      int64
	blockedNS uint64
	leases    int
	waiting   int64
	ahead     int64 // units that this process holds
}

// asideBytes is how many bytes of limits take longer than a millisecond to go through.
const asideBytes = 128 << 10

// show is CL.SHOW key. A goroutine looks at a key of many calls or leases.
func (f family) show(c *command.Call) {
	keys, a, host := c.Keys(), c.Access(), c.Host
	if bytes, _ := keys.KeyBytes(c.Args[1], a.NowNS); bytes < asideBytes || !c.MayOffload() {
		f.look(keys, c.Args[1], a)(c)
		return
	}
	c.Offload(true, func(args [][]byte) command.Work {
		return func() (reply func(*command.Call)) {
			host.Shared(a, func() { reply = f.look(keys, args[1], a) })
			return reply
		}
	})
}

// Shown is what CL.SHOW tells of a limit or of a string: what it is, by names.
type Shown []Fact

// Fact is a number, a text, or nil: nothing.
type Fact struct {
	Name  string
	Value any // int64, string or nil
}

// look looks at a key, and returns what replies.
func (f family) look(keys command.Keys, key []byte, a store.Access) (reply func(*command.Call)) {
	list, err := Look(f.server().Store, keys, key, a)
	if err != nil {
		return func(c *command.Call) { c.Fail(err) }
	}
	return func(c *command.Call) {
		c.Array(len(list))
		for _, one := range list {
			c.Map(len(one))
			for _, fact := range one {
				c.String(fact.Name)
				switch v := fact.Value.(type) {
				case int64:
					c.Int(v)
				case string:
					c.String(v)
				default:
					c.Null()
				}
			}
		}
	}
}

// Look is CL.SHOW: all limits of a key, in the order of policies and periods. A string is one.
func Look(s store.Store, keys store.Keys, key []byte, a store.Access) (all []Shown, err error) {
	var list []shown
	wallNS := keys.WallNS(a.NowNS)
	_, err = keys.Limits(key, a, func(l *store.LimitState) { list = addShown(list, l, wallNS) })
	if errors.Is(err, store.ErrWrongType) {
		if v, isString := keys.Get(key, a); isString {
			return []Shown{stringFacts(v, wallNS)}, nil
		}
	}
	slices.SortFunc(list, func(a, b shown) int { return a.compare(&b) })
	for i := range list {
		l := &list[i]
		c := &store.Call{Key: key, Limit: &l.limit, Policy: l.policy}
		l.waiting, l.ahead = s.WaitingFor(c), s.AheadOf(c)
		all = append(all, l.facts())
	}
	return all, err
}

// addShown adds a limit to those of a key. The leases of a companion count for the limit beside it, which may be as good as new and so not
// be there.
func addShown(list []shown, l *store.LimitState, nowNS int64) []shown {
	limit := l.Limit
	limit.Leases = false // a companion has the shape of the limit beside it
	at := slices.IndexFunc(list, func(s shown) bool {
		return s.policy == l.Policy && (s.policy != nil || s.limit.Shape == limit.Shape)
	})
	if at < 0 {
		at = len(list)
		list = append(list, shown{limit: limit, policy: l.Policy})
		if l.Policy != nil {
			list[at].limit = l.Policy.Limit
		}
		list[at].decide(&limit, cell.State{}, nowNS)
	}
	if !l.Limit.Leases {
		if l.Policy == nil {
			list[at].limit = limit // a companion keeps the limit of its latest lease
		}
		list[at].decide(&limit, l.State, nowNS)
	}
	if l.Limit.HoldsLeases() {
		list[at].leases = l.State.Leases().Count(nowNS)
	}
	return list
}

// decide says what is left by a state that the limit old has left, which the policy may have replaced by now.
func (s *shown) decide(old *cell.Limit, st cell.State, nowNS int64) {
	s.limit.Carry(&st, old, nowNS, nowNS)
	if s.blockedNS = max(st.BlockedNS, uint64(nowNS)) - uint64(nowNS); s.policy != nil {
		s.blockedNS = min(s.blockedNS, uint64(s.limit.BlockNS)) // as the policy's limit says now
	}
	s.used = s.limit.Used(&st, nowNS)
	st.BlockedNS = uint64(nowNS) + s.blockedNS
	s.next = s.limit.Decide(&st, nowNS, 1, cell.Peek)
}

// name is that of the policy; "": a literal.
func (s *shown) name() string {
	if s.policy == nil {
		return ""
	}
	return s.policy.Policy.Name
}

// compare orders limits by policy, period and name. An engine has them in any order.
func (s *shown) compare(with *shown) int {
	return cmp.Or(cmp.Compare(s.name(), with.name()), cmp.Compare(s.limit.PeriodNS, with.limit.PeriodNS),
		cmp.Compare(s.limit.Code(), with.limit.Code()), cmp.Compare(s.limit.Name.String(), with.limit.Name.String()))
}

func (s *shown) facts() Shown {
	name, next := any(s.name()), uint64(0)
	if s.policy == nil {
		name = nil
	}
	if s.next.Limited {
		next = s.next.RetryAfterNS
	}
	facts := Shown{{"limit", s.limit.String()}, {"policy", name}, {"capacity", s.next.Limit}, {"used", s.used},
		{"remaining", s.next.Remaining}, {"full_in_ms", wholeMS(s.next.ResetAfterNS)}, {"next_in_ms", wholeMS(next)},
		{"waiting", s.waiting}, {"leases", int64(s.leases)}, {"blocked_ms", wholeMS(s.blockedNS)}}
	if s.ahead > 0 { // on an engine
		facts = append(facts, Fact{"ahead", s.ahead})
	}
	return facts
}

// stringFacts tells of a string. A TAT is written as GET answers it: Lua's numbers cannot hold it.
func stringFacts(v store.Value, nowNS int64) Shown {
	if v.IsCount() {
		return Shown{{"count", v.Count}}
	}
	return Shown{{"tat", string(v.AppendInteger(nil))}, {"full_in_ms", wholeMS(v.TAT - min(v.TAT, uint64(nowNS)))}}
}

// wholeMS rounds up, so that who waits this long has waited enough.
func wholeMS(ns uint64) int64 { return int64(ns/1e6) + int64(cmp.Compare(ns%1e6, 0)) }
