package store

import (
	"slices"

	"celld/cell"
	"celld/store/policy"
)

// Limiter decides on calls, in batches. One that keeps its states in the process answers at once, except for a Take that waits; another
// answers later.
//
// All methods decide on the requests in their order, as that many single calls would, and set what is marked as out in each.
// There are 1 to MaxTakes requests. Package storetest tests Limiters.
type Limiter interface {
	// ThrottleBatch returns true when it has decided. If it returns false, it has copied the keys, which may change from then on. It keeps
	// reqs, sets their answers later, and then calls w.Wake once, from any goroutine, maybe before it returns. Until then the caller must
	// not touch reqs.
	ThrottleBatch(reqs []Request, a Access, w Waker) bool

	// TakeBatch is the same for limits, each a Take. It keeps the Calls of the requests, too.
	TakeBatch(reqs []TakeRequest, a Access, w Waker) bool

	// CountBatch is the same for INCR and its kin.
	CountBatch(reqs []CountRequest, a Access, w Waker) bool
}

// Waker is told that a Limiter has answered. Wake must not block, as the Limiter may hold locks.
type Waker interface{ Wake() }

const (
	MaxTakes  = 64  // requests in a batch, at most
	MaxLimits = 128 // limits under a key, at most
)

// Request is one call of a batch.
type Request struct {
	Key      []byte
	Bucket   cell.Bucket
	Quantity int64
	Decision cell.Decision // out
	Err      error         // out
	Hash     uint64        // out, of the key
}

// Call is one limit of a Take.
type Call struct {
	Key      []byte
	Limit    *cell.Limit
	Policy   *policy.Limit // nil: a literal
	Own      bool          // it takes its own Cost, and not that of the Take
	Cost     int64         // with Own: 0..cell.MaxCost. What takes 0 from its limit is never denied by it
	Seen     *policy.Seen  // what rules see beside the key; nil: nothing
	Decision cell.Decision // out: what this limit says by itself
	Ruled    bool          // out: a rule has decided, or nobody has; the call has taken nothing
}

// CallOf is a call of a policy's limit.
func CallOf(key []byte, l *policy.Limit) Call { return Call{Key: key, Limit: &l.Limit, Policy: l} }

// CostOf is what a call takes of a Take with this Cost.
func (c *Call) CostOf(cost int64) int64 {
	if c.Own {
		return c.Cost
	}
	return cost
}

// Rule returns the rule that decides on a call in place of its limit; nil: the limit decides.
func (c *Call) Rule(s *policy.Set, nowNS int64) *policy.Rule { return s.Rule(c.Key, c.Seen, nowNS) }

// PolicyID is the ID of the policy's limit; 0: a literal.
func (c *Call) PolicyID() uint32 {
	if c.Policy == nil {
		return 0
	}
	return c.Policy.ID
}

// Answer sets the decision of a call on which no store has decided. It has taken nothing.
func (c *Call) Answer(d cell.Decision) { c.Decision, c.Ruled = d, true }

// TakeOptions say what the calls of a Take do.
type TakeOptions struct {
	Cost int64     // 0..cell.MaxCost; 0 only looks, where no call has a Cost of its own
	Mode cell.Mode // cell.Take, Peek or Force
	UpTo bool      // with cell.Take: take what all allow, 1 at least and Cost at most
	Look bool      // with a Cost below 0: a rule decides first, and the Decision says what is left

	Terms *Terms // how it waits and what it holds; nil: it does neither
}

// Taken is the answer of all calls of a Take.
type Taken struct {
	Limited      bool
	Granted      int64
	Binding      int    // the call with the longest wait, or else with the least share left
	RetryAfterNS uint64 // the longest, or cell.Never
	ResetAfterNS uint64 // the longest
}

// Takes reports a request that takes where it is granted. Any other only looks, or gives back.
func (r *TakeRequest) Takes() bool {
	return r.Mode != cell.Peek && (r.Cost > 0 || r.Cost == 0 && slices.ContainsFunc(r.Calls, func(c Call) bool { return c.Own }))
}

// TakeRequest is one Take of a batch.
//
// A Cost below 0 gives back to each call's limit, as Give does. The Decisions are set only with Look, and Granted is minus the most that a
// limit took back.
type TakeRequest struct {
	Calls []Call
	TakeOptions
	Taken Taken  // out
	Err   error  // out
	Hash  uint64 // out, of the first key, for the table of denied keys
}
