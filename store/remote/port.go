package remote

import (
	"errors"

	"celld/store"
	"celld/store/memory"
	"celld/store/remote/ahead"
	"celld/store/remote/failure"
	"celld/store/remote/link"
	"celld/store/remote/view"
)

var _ store.Store = (*Store)(nil)

// InProcess is store.Store's, as Open.
func (s *Store) InProcess() bool { return false }

func (s *Store) Open(keys [][]byte, o store.OpenOptions, w store.Waker) store.Tx {
	return &tx{View: s.views.Open(keys, w), failure: s.failure, o: o, keys: keys, ahead: s.ahead}
}

// tx is a view. If it is for leases only, and the engine is away, it is the table of the mode local, if there is one.
type tx struct {
	*view.View
	o       store.OpenOptions
	failure *failure.Decider
	local   *localLeases
	keys    [][]byte
	ahead   *ahead.Ahead
}

func (t *tx) TimeNS() int64 { return t.NowNS }

func (t *tx) Keys() store.Keys {
	if t.local != nil {
		return t.local
	}
	t.Table()
	return t.View
}

func (t *tx) Err() error {
	if t.o.Leases && t.local == nil && errors.As(t.View.Err, new(*DownError)) {
		if table := t.failure.Local(); table != nil {
			t.local = &localLeases{table, link.Unsent(t.View.Err)}
			t.NowNS = t.o.NowNS
		}
	}
	if t.local != nil {
		return nil
	}
	return t.View.Err
}

func (t *tx) Commit(w store.Waker) (done bool) {
	return t.local != nil || t.View.Commit(dropping{w, t})
}

// dropping makes void what was taken ahead of keys that have changed.
type dropping struct {
	store.Waker
	of *tx
}

func (d dropping) Wake() {
	for _, key := range d.of.keys {
		d.of.ahead.Drop(string(key))
	}
	d.Waker.Wake()
}

func (t *tx) Foreign(key []byte) (kind string, foreign bool) {
	if t.Err() != nil || t.local != nil { // nothing was read, or nothing of the engine counts
		return "", false
	}
	return t.View.Foreign(key)
}

// localLeases are those that the table of the mode local has granted. A lease that is not among them may be on the engine, which is away.
type localLeases struct {
	*memory.Store
	away error
}

func (l *localLeases) Renew(key []byte, id, ns int64, a store.Access) (bool, error) {
	return l.orAway(l.Store.Renew(key, id, ns, a))
}

func (l *localLeases) Release(key []byte, id int64, a store.Access) (bool, error) {
	return l.orAway(l.Store.Release(key, id, a))
}

func (l *localLeases) Settle(key []byte, id, n int64, a store.Access, of ...store.NamedCost) (bool, error) {
	return l.orAway(l.Store.Settle(key, id, n, a, of...))
}

// orAway adds the error of the engine to an answer that found no lease.
func (l *localLeases) orAway(found bool, err error) (bool, error) {
	if !found && err == nil {
		err = l.away
	}
	return found, err
}
