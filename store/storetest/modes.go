package storetest

import "celld/store"

// Modes notes how the calls with terms were to wait that pass to a limiter.
type Modes struct {
	store.Limiter
	Seen []store.WaitMode
}

func (m *Modes) TakeBatch(reqs []store.TakeRequest, a store.Access, w store.Waker) bool {
	for i := range reqs {
		if t := reqs[i].Terms; t != nil {
			m.Seen = append(m.Seen, t.Mode)
		}
	}
	return m.Limiter.TakeBatch(reqs, a, w)
}
