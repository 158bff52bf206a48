package store

// Limiter decides on calls, in batches. A Store is one. It answers at once, but for a Take that waits; another may keep its states
// elsewhere, and answer later.
//
// Both methods decide on the requests in their order, as that many single calls would, and set Decision and Err, or Taken and
// Err, of each. There are 1 to MaxTakes requests. storetest has what is asked of every Limiter.
type Limiter interface {
	// ThrottleBatch returns true when it has decided. When it returns false, it has copied the keys, which may change from
	// then on, and keeps reqs: it sets their answers later and then calls w.Wake, once, from any goroutine. That may be before
	// it returns. Until then the caller must not touch reqs.
	ThrottleBatch(reqs []Request, a Access, w Waker) bool

	// TakeBatch is the same for limits, each a Take. It keeps the Calls of the requests, too.
	TakeBatch(reqs []TakeRequest, a Access, w Waker) bool
}

// Waker is told that a Limiter has answered. Wake must not block, as the Limiter may hold locks.
type Waker interface{ Wake() }
