package storetest

import (
	"slices"
	"sync"

	"celld/store"
)

// Later is a Limiter that answers later, by what another decides. Its zero value, except for Of, keeps all batches until Answer.
type Later struct {
	Of store.Limiter // it must answer at once

	mu    sync.Mutex
	told  func()
	asked []asked
}

// asked is a batch that has not been answered.
type asked struct {
	throttles []store.Request
	takes     []store.TakeRequest
	counts    []store.CountRequest
	keys      [][]byte // of all calls, in their order
	access    store.Access
	waker     store.Waker
}

func (l *Later) ThrottleBatch(reqs []store.Request, a store.Access, w store.Waker) bool {
	one := asked{throttles: reqs, access: a, waker: w}
	for i := range reqs {
		one.keys = append(one.keys, slices.Clone(reqs[i].Key))
	}
	l.ask(one)
	return false
}

func (l *Later) TakeBatch(reqs []store.TakeRequest, a store.Access, w store.Waker) bool {
	one := asked{takes: reqs, access: a, waker: w}
	for i := range reqs {
		for j := range reqs[i].Calls {
			one.keys = append(one.keys, slices.Clone(reqs[i].Calls[j].Key))
		}
	}
	l.ask(one)
	return false
}

func (l *Later) CountBatch(reqs []store.CountRequest, a store.Access, w store.Waker) bool {
	one := asked{counts: reqs, access: a, waker: w}
	for i := range reqs {
		one.keys = append(one.keys, slices.Clone(reqs[i].Key))
	}
	l.ask(one)
	return false
}

func (l *Later) ask(one asked) {
	l.mu.Lock()
	l.asked = append(l.asked, one)
	told := l.told
	l.mu.Unlock()
	if told != nil {
		told()
	}
}

// Tell calls f for each batch, before the method that brings it returns and in its goroutine; f may call Answer. nil: nobody is told.
func (l *Later) Tell(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.told = f
}

// Waiting is how many batches have not been answered.
func (l *Later) Waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.asked)
}

// Answer answers the batch that stands at a place among those that wait, and wakes its caller.
func (l *Later) Answer(at int) {
	l.mu.Lock()
	one := l.asked[at]
	l.asked = slices.Delete(l.asked, at, at+1)
	l.mu.Unlock()
	keys := one.keys
	for i := range one.throttles {
		one.throttles[i].Key, keys = keys[0], keys[1:]
	}
	for i := range one.takes {
		for j := range one.takes[i].Calls {
			one.takes[i].Calls[j].Key, keys = keys[0], keys[1:]
		}
	}
	for i := range one.counts {
		one.counts[i].Key, keys = keys[0], keys[1:]
	}
	switch {
	case one.takes != nil:
		l.Of.TakeBatch(one.takes, one.access, nil)
	case one.counts != nil:
		l.Of.CountBatch(one.counts, one.access, nil)
	default:
		l.Of.ThrottleBatch(one.throttles, one.access, nil)
	}
	one.waker.Wake()
}
