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

// ErrUndeclared reports a view in which a key was made that it had not been asked to read.
var ErrUndeclared = errors.New("a key was written that was not declared")

// View is some keys of the engine in a table of their own. Handlers change it as they change the table in memory.
type View struct {
	*table       // from Table until Commit
	NowNS  int64 // the engine's time when the keys were read
	Err    error // after Wake: nothing was read, or stored

	views    *Views
	keys     []viewKey
	places   map[string]int // of keys, by name
	deadline time.Time      // of the engine's answers. What the handler takes does not count
	given    time.Time      // when the handler was given the view
	conflict bool
	missing  []string // keys that must be read, too
	guessed  bool     // it was not read: see guess
	turn     turn
	marks    marks    // of the IDs that it gives
	freed    []string // keys of which something is given back by what is being stored
}

// viewKey is a key of a view.
type viewKey struct {
	name    string // on the engine
	key     []byte // as clients name it
	read    content
	want    content           // what is being stored
	left    []field           // which stay as they are
	leftEnd int64             // Unix ms; when they have nothing left to remember
	epochs  map[string]uint64 // of policies: those that others have begun already
	shown   bool              // the table had the key when it was read
}

// PolicyField is the name of the field of a policy's state: see cutEpoch.
func PolicyField(p *policy.Policy, epoch uint64) string {
	if epoch == 0 {
		return "@" + p.Name
	}
	return "@" + p.Name + " " + strconv.FormatUint(epoch, 10)
}

// give wakes a handler.
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

// miss notes keys without which nothing can be decided, if the view does not have them. Commit reads them.
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

// open reads the keys, and then calls done. What was in the table is gone.
func (v *View) open(done func()) {
	if len(v.keys) == 0 {
		v.readAt(time.Now().UnixNano())
		done()
		return
	}
	names := v.engineKeys()
	if v.Err = v.views.Link.OneSlot(names); v.Err != nil {
		done()
		return
	}
	v.ask(openScript, nil, done)
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

// Table is the view's table. It is filled when it is first asked for, and given up by Commit: a table takes 66 KB, and what was read of
// a key that waits for its answer some 100 bytes.
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

// giveUp empties the table, for another view. To remove its keys takes 1 µs; Flush takes 30 µs, and another table 45 µs, as they make
// all of it anew.
func (v *View) giveUp() {
	if v.table == nil {
		return
	}
	for i := range v.keys {
		v.Delete(v.keys[i].key, v.NowNS)
	}
	if v.Len(v.NowNS) > 0 { // a handler has made others
		v.Flush()
	}
	v.first, v.last = 0, 0
	v.views.tables.Put(v.table)
	v.table = nil
}

// Foreign returns the type of a key that holds what celld does not write, by its name in TYPE. Such a key is there for EXISTS, TTL,
// EXPIRE and DEL; all that asks for its state is to be answered with WRONGTYPE. Commit refuses other changes of it.
func (v *View) Foreign(key []byte) (kind string, foreign bool) {
	v.Table()
	if k := v.find(v.views.Prefix + string(key)); k != nil && k.read.foreign {
		return k.read.kind, true
	}
	return "", false
}

// Commit stores what has changed in a view, if what the engine has is still what was read. It returns true where nothing has changed,
// or v.Err says why nothing can be stored. Else w is woken when that is done: then Conflict says whether it must be done again.
//
// Where a handler took longer than Held, the keys may have changed without a trace, and a key that was not there is a conflict each time.
func (v *View) Commit(w store.Waker) bool {
	v.deadline = v.deadline.Add(time.Since(v.given))
	return v.commit(v.give(w))
}

func (v *View) commit(done func()) bool {
	if v.conflict = len(v.missing) > 0; v.conflict {
		v.addAll(v.missing)
		v.missing = nil
		v.giveUp()
		v.open(done)
		return false
	}
	v.views.Counts.Changes.Add(1)
	v.Table()
	args, changed, err := v.script()
	if v.Err = err; err != nil || !changed && !v.turn.taken && !v.guessed {
		return true
	}
	v.giveUp()
	v.ask(commitScript, args, done)
	return false
}

// Conflict reports that the engine had something else by the time of Commit, and nothing was stored. The view has been read anew.
func (v *View) Conflict() bool { return v.conflict && v.Err == nil }

// Close gives up the view, which must not be used afterwards.
func (v *View) Close() {
	v.leaveTurns()
	v.giveUp()
}
