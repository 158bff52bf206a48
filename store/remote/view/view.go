package view

import (
	"errors"
	"slices"
	"strconv"
	"time"

	"celld/store"
	"celld/store/memory"
	"celld/store/policy"
)

// ErrUndeclared reports a view in which a key was made that was not opened.
var ErrUndeclared = errors.New("a key was written that was not declared")

// View holds some keys of the engine in a table of their own. Handlers change it as they change the table in memory.
type View struct {
	*table       // from Table until Commit
	NowNS  int64 // the engine's time when the keys were read
	Err    error // after Wake: nothing was read, or stored

	views    *Views
	keys     []viewKey
	places   map[string]int // of keys, by name
	deadline time.Time      // of the engine's answers. The handler's time does not count
	given    time.Time      // when the handler was given the view
	state    state
	missing  []string // keys that must be read, too
	ticket   ticket
	marks    marks    // of the IDs that it gives
	freed    []string // keys to which the change that is being stored gives something back
}

// state says where a view has its keys from. A view that fails has an Err.
//
//	open ───────▶ read ─────┬─ decide ─ commit ─▶ stored
//	loadCached ─▶ cached ───┤      │       │ the engine has something else, or others go first
//	              conflict ─┘      ▼       ▼
//	                 ▲    it lacks a key   │
//	                 └───── read anew ◀────┘
type state uint8

const (
	stateRead     state = iota // from the engine
	stateCached                // from the cache: see loadCached
	stateConflict              // from the engine, and what was decided before is void
	stateStored                // from the change
)

// viewKey is a key of a view.
type viewKey struct {
	name    string // on the engine
	key     []byte // as clients name it
	read    content
	want    content           // what is being stored
	left    []field           // fields that stay as they are
	leftEnd int64             // Unix ms; when they have nothing left to remember
	epochs  map[string]uint64 // of limits of policies, by their names: those that others have begun already
	shown   bool              // the table had the key when it was read
	deleted bool              // the engine's key goes, even if nothing is shown of it
}

// PolicyField is the name of the field of the state of a policy's limit: see cutEpoch.
func PolicyField(l *policy.Limit, epoch uint64) string {
	name := l.AppendName(nil)
	if epoch != 0 {
		name = strconv.AppendUint(append(name, ' '), epoch, 10)
	}
	return string(name)
}

// give returns a function that wakes a handler, and notes when.
func (v *View) give(w store.Waker) func() {
	return func() {
		v.given = time.Now()
		w.Wake()
	}
}

func (v *View) find(name string) *viewKey {
	if i, ok := v.places[name]; ok {
		return &v.keys[i]
	}
	return nil
}

// add names a key that open reads.
func (v *View) add(name string) {
	if v.find(name) == nil {
		v.places[name] = len(v.keys)
		v.keys = append(v.keys, viewKey{name: name, key: []byte(name[len(v.views.Prefix):])})
	}
}

func (v *View) addAll(names []string) {
	for _, name := range names {
		v.add(name)
	}
}

// miss notes keys that are needed to decide, if the view lacks them. Commit reads them.
func (v *View) miss(names []string) {
	for _, name := range names {
		if v.find(name) == nil {
			v.missing = append(v.missing, name)
		}
	}
}

func (v *View) foreignAmong(names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		k := v.find(name)
		return k != nil && k.read.foreign
	})
}

// open reads the keys, and then calls done. The view must have no table.
func (v *View) open(done func()) {
	if len(v.keys) == 0 {
		v.readAt(time.Now().UnixNano())
		done()
		return
	}
	names := v.engineKeys()
	if v.Err = v.views.Link.CheckHashSlot(names); v.Err != nil {
		done()
		return
	}
	v.send(openScript, nil, done)
}

// At is an Access at the view's time.
func (v *View) At(a store.Access) store.Access {
	a.NowNS = v.NowNS
	return a
}

// readAt notes the engine's time.
func (v *View) readAt(nowNS int64) {
	if v.NowNS = nowNS; v.views.Time != nil {
		v.NowNS = v.views.Time()
	}
}

func (v *View) engineKeys() []string {
	names := make([]string, len(v.keys))
	for i := range v.keys {
		names[i] = v.keys[i].name
	}
	return names
}

// Table is the view's table. The first call fills it, and Commit gives it up: a table takes 45 KB, and what was read of a key some 100
// bytes, while the view waits for its answer.
func (v *View) Table() *memory.Store {
	if v.table != nil {
		return v.Store
	}
	v.table = v.views.table()
	for i := range v.keys {
		v.keys[i].put(v)
	}
	return v.Store
}

// giveUp empties the table, for another view. Removing its keys takes 1 µs. Flush takes 30 µs, and a new table 45 µs, as they make all of
// it anew.
func (v *View) giveUp() {
	if v.table == nil {
		return
	}
	for i := range v.keys {
		v.Store.Delete(v.keys[i].key, v.NowNS)
	}
	if v.Len(v.NowNS) > 0 { // a handler has made others
		v.Flush()
	}
	v.first, v.last = 0, 0
	v.views.tables.Put(v.table)
	v.table = nil
}

// Delete is store.Keys's. It also removes what the engine has though callers do not see it: what is over, and limits of policies that are
// gone.
func (v *View) Delete(key []byte, nowNS int64) bool {
	if k := v.find(v.views.Prefix + string(key)); k != nil {
		k.deleted = true
	}
	return v.Store.Delete(key, nowNS)
}

// Foreign returns the type of a key that celld has not written, by its name in TYPE. EXISTS, TTL, EXPIRE and DEL see such a key. Handlers
// that need its state must answer WRONGTYPE. Commit refuses other changes of it.
func (v *View) Foreign(key []byte) (kind string, foreign bool) {
	v.Table()
	if k := v.find(v.views.Prefix + string(key)); k != nil && k.read.foreign {
		return k.read.kind, true
	}
	return "", false
}

// Commit stores what has changed in a view, if the engine still holds what was read. It returns true if nothing has changed, or v.Err says
// why nothing can be stored. Otherwise it wakes w when that is done: then Conflict says whether the change must be repeated.
//
// If a handler took longer than CommitWithin, the keys may have changed without a trace, and a key that was not there is a conflict each
// time.
func (v *View) Commit(w store.Waker) bool {
	v.deadline = v.deadline.Add(time.Since(v.given))
	return v.commit(v.give(w))
}

func (v *View) commit(done func()) bool {
	if len(v.missing) > 0 {
		v.addAll(v.missing)
		v.missing, v.state = nil, stateConflict
		v.giveUp()
		v.open(done)
		return false
	}
	v.views.Counts.Changes.Add(1)
	v.Table()
	args, changed, err := v.script()
	if v.Err = err; err != nil || !changed && v.ticket.place == 0 && v.state != stateCached {
		v.state = stateRead // and no conflict any more
		return true
	}
	v.giveUp()
	v.send(commitScript, args, done)
	return false
}

// Conflict reports that the engine held something else by the time of Commit, and nothing was stored. The view has been read anew.
func (v *View) Conflict() bool { return v.state == stateConflict && v.Err == nil }

// Close gives up the view, which must not be used afterwards.
func (v *View) Close() {
	v.giveUpTicket()
	v.giveUp()
}
