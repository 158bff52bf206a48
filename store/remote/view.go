package remote

import (
	"errors"
	"slices"
	"strconv"
	"sync"
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

	store    *Store
	keys     []viewKey
	places   map[string]int // of keys, by name, where there are more than fewKeys; else nil
	deadline time.Time      // of the engine's answers. What the handler takes does not count
	given    time.Time      // when the handler was given the view
	conflict bool
	missing  []string // keys that must be read, too
	guessed  guess
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

// policyField is the name of the field of a policy's state: see cutEpoch.
func policyField(p *policy.Policy, epoch uint64) string {
	if epoch == 0 {
		return "@" + p.Name
	}
	return "@" + p.Name + " " + strconv.FormatUint(epoch, 10)
}

// Open reads keys, and then wakes w, from any goroutine. Keys are as clients name them, without the prefix.
func (s *Store) Open(keys [][]byte, w store.Waker) *View {
	v := s.newView(s.deadline())
	for _, key := range keys {
		v.add(s.options.Prefix + string(key))
	}
	v.open(v.give(w))
	return v
}

// give wakes a handler.
func (v *View) give(w store.Waker) func() {
	return func() {
		v.given = time.Now()
		w.Wake()
	}
}

// newView returns a view without keys.
func (s *Store) newView(deadline time.Time) *View {
	return &View{store: s, deadline: deadline}
}

// fewKeys are looked through one by one, which is as quick as a map for up to 32. To add and find 1,000 takes 0.9 ms of an event loop with the
// map, and took 4.3 ms one by one.
const fewKeys = 32

func (v *View) find(name string) *viewKey {
	if v.places != nil {
		if i, ok := v.places[name]; ok {
			return &v.keys[i]
		}
		return nil
	}
	for i := range v.keys {
		if v.keys[i].name == name {
			return &v.keys[i]
		}
	}
	return nil
}

// add has a key read by open.
func (v *View) add(name string) {
	if v.find(name) != nil {
		return
	}
	v.keys = append(v.keys, viewKey{name: name, key: []byte(name[len(v.store.options.Prefix):])})
	switch n := len(v.keys); {
	case v.places != nil:
		v.places[name] = n - 1
	case n > fewKeys:
		v.places = make(map[string]int)
		for i := range v.keys {
			v.places[v.keys[i].name] = i
		}
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
		v.Err = v.onTime(time.Now().UnixNano())
		done()
		return
	}
	names := v.engineKeys()
	if v.Err = v.store.link.OneSlot(names); v.Err != nil {
		done()
		return
	}
	v.ask(openScript, nil, done)
}

func (v *View) onTime(nowNS int64) error {
	if v.NowNS = nowNS; v.store.options.Time != nil {
		v.NowNS = v.store.options.Time()
	}
	return nil
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
	v.table = v.store.tables.take(v.store)
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
	v.store.tables.pool.Put(v.table)
	v.table = nil
}

// Foreign returns the type of a key that holds what celld does not write, by its name in TYPE. Such a key is there for EXISTS, TTL,
// EXPIRE and DEL; all that asks for its state is to be answered with WRONGTYPE. Commit refuses other changes of it.
func (v *View) Foreign(key []byte) (kind string, foreign bool) {
	v.Table()
	if k := v.find(v.store.options.Prefix + string(key)); k != nil && k.read.foreign {
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
	v.store.stats.Changes.Add(1)
	v.Table()
	args, changed, err := v.script()
	if v.Err = err; err != nil || !changed && !v.turn.taken && v.guessed != guessed {
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

// tables are of views that are closed, to be used again.
type tables struct{ pool sync.Pool }

func (t *tables) take(s *Store) *table {
	if table, ok := t.pool.Get().(*table); ok {
		return table
	}
	return s.newTable()
}

// mostKeys is how many keys a view has room for.
const mostKeys = 1 << 16
