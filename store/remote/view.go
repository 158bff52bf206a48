package remote

import (
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"celld/store"
	"celld/store/policy"
)

// ErrCrossSlot reports keys of one request that a Cluster keeps in several places.
var ErrCrossSlot = errors.New("Keys in request don't hash to the same slot; use a hash tag such as {user1}")

// View is some keys of the engine in a table of their own. Handlers change it as they change the table in memory.
type View struct {
	*store.Store
	NowNS int64 // the engine's time when the keys were read
	Err   error // after Wake: nothing was read, or stored

	store    *Store
	keys     []viewKey
	deadline time.Time
	conflict bool
	missing  []string // keys that must be read, too
	lastID   uint64   // of leases, when the keys were read
}

// viewKey is a key of a view.
type viewKey struct {
	name    string // on the engine
	key     []byte // as clients name it
	read    content
	left    []field // which stay as they are
	leftEnd int64   // Unix ms; when they have nothing left to remember
	shown   bool    // the table had the key when it was read
}

// policyField is the name of the field of a policy's state: see cutEpoch.
func (s *Store) policyField(p *policy.Policy) string {
	epoch := s.epochOf(p)
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
	v.open(w.Wake)
	return v
}

// newView returns a view without keys.
func (s *Store) newView(deadline time.Time) *View {
	return &View{store: s, deadline: deadline, Store: s.tables.take(s)}
}

func (v *View) find(name string) *viewKey {
	for i := range v.keys {
		if v.keys[i].name == name {
			return &v.keys[i]
		}
	}
	return nil
}

// add has a key read by open.
func (v *View) add(name string) {
	if v.find(name) == nil {
		v.keys = append(v.keys, viewKey{name: name, key: []byte(name[len(v.store.options.Prefix):])})
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
	v.Err = nil
	names := v.engineKeys()
	if v.Err = v.store.oneSlot(names); v.Err != nil {
		done()
		return
	}
	v.store.send(&request{script: openScript, keys: names, readOnly: true, deadline: v.deadline, done: func(m rueidis.RedisMessage, err error) {
		if v.Err = err; v.Err == nil {
			v.Err = v.load(m)
		}
		done()
	}})
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

// oneSlot returns ErrCrossSlot for keys that no request can have together.
func (s *Store) oneSlot(names []string) error {
	if !s.cluster.Load() {
		return nil
	}
	for _, name := range names[1:] {
		if slotOf(name) != slotOf(names[0]) {
			return ErrCrossSlot
		}
	}
	return nil
}

// load makes the table have what a script has answered: an array of what it did, the seconds and microseconds of the engine's time,
// and an array for each key of its type, expiry and content.
func (v *View) load(m rueidis.RedisMessage) error {
	answer, err := m.ToArray()
	if err != nil {
		return err
	}
	if len(answer) != 3+len(v.keys) {
		return errAnswer
	}
	nowUS, err := timeOf(answer)
	if err != nil {
		return err
	}
	_ = v.onTime(nowUS * 1000)
	v.clear()
	v.lastID = v.LastID()
	for i := range v.keys {
		texts, err := answer[3+i].ToArray()
		if err != nil {
			return err
		}
		if err := v.keys[i].hold(texts); err != nil {
			return err
		}
		v.keys[i].put(v)
	}
	return nil
}

// timeOf is the engine's time in Unix µs.
func timeOf(answer []rueidis.RedisMessage) (int64, error) {
	seconds, err := answer[1].ToString()
	if err != nil {
		return 0, err
	}
	micros, err := answer[2].ToString()
	if err != nil {
		return 0, err
	}
	s, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return 0, errAnswer
	}
	us, err := strconv.ParseInt(micros, 10, 64)
	if err != nil {
		return 0, errAnswer
	}
	return s*1e6 + us, nil
}

// hold notes what the engine has under the key.
func (k *viewKey) hold(answer []rueidis.RedisMessage) error {
	k.read = content{kind: kindNone, expiry: noExpiry}
	c := &k.read
	for i := range answer {
		if i == 1 {
			ms, err := answer[i].AsInt64()
			if err != nil {
				return err
			}
			c.expiry = max(ms, noExpiry)
			continue
		}
		text, err := answer[i].ToString()
		switch {
		case err != nil:
			return err
		case i == 0:
			c.kind = text
		case c.kind == kindString:
			c.text = text
		case i%2 == 0:
			c.fields = append(c.fields, field{name: text})
		default:
			c.fields[len(c.fields)-1].text = text
		}
	}
	return nil
}

// clear empties the table.
func (v *View) clear() { v.Flush() }

// Foreign returns the type of a key that holds what celld does not write, by its name in TYPE. Such a key is there for EXISTS, TTL,
// EXPIRE and DEL; all that asks for its state is to be answered with WRONGTYPE. Commit refuses other changes of it.
func (v *View) Foreign(key []byte) (kind string, foreign bool) {
	if k := v.find(v.store.options.Prefix + string(key)); k != nil && k.read.foreign {
		return k.read.kind, true
	}
	return "", false
}

// Commit stores what has changed in a view, if what the engine has is still what was read. It returns true where nothing has changed,
// or v.Err says why nothing can be stored. Else w is woken when that is done: then Conflict says whether it must be done again.
func (v *View) Commit(w store.Waker) bool { return v.commit(w.Wake) }

func (v *View) commit(done func()) bool {
	if v.conflict = len(v.missing) > 0; v.conflict {
		v.addAll(v.missing)
		v.missing = nil
		v.open(done)
		return false
	}
	args, changed, err := v.script()
	if v.Err = err; err != nil || !changed {
		return true
	}
	v.store.send(&request{script: commitScript, keys: v.engineKeys(), args: args, deadline: v.deadline, done: func(m rueidis.RedisMessage, err error) {
		if v.Err = err; v.Err == nil {
			v.Err = v.committed(m)
		}
		done()
	}})
	return false
}

// committed reads the answer of the script that stores.
func (v *View) committed(m rueidis.RedisMessage) error {
	answer, err := m.ToArray()
	if err != nil {
		return err
	}
	if len(answer) == 0 {
		return errAnswer
	}
	did, err := answer[0].ToString()
	if err != nil || did == "stored" {
		v.store.forget(v.engineKeys())
		return err
	}
	if err := v.load(m); err != nil {
		return err
	}
	v.conflict = true
	return nil
}

// Conflict reports that the engine had something else by the time of Commit, and nothing was stored. The view has been read anew.
func (v *View) Conflict() bool { return v.conflict && v.Err == nil }

// Close gives up the view's table, which must not be used afterwards.
func (v *View) Close() {
	if v.Store != nil {
		v.store.tables.put(v.Store)
		v.Store = nil
	}
}

// script returns the arguments of commitScript.
func (v *View) script() (args []string, changed bool, err error) {
	fence := ""
	if last := v.LastID(); last > v.lastID && v.store.options.Time == nil {
		fence = strconv.FormatUint(last, 10)
	}
	args = append(args, fence)
	for i := range v.keys {
		k := &v.keys[i]
		want := k.now(v)
		if want.foreign && !k.read.foreign || k.read.foreign && want.kind != kindNone && !want.foreign {
			return nil, false, store.ErrWrongType
		}
		args = k.read.expect(args)
		steps := k.read.steps(&want)
		args = append(args, strconv.Itoa(len(steps)))
		for _, step := range steps {
			changed = true
			args = append(append(args, strconv.Itoa(len(step))), step...)
		}
	}
	return args, changed, nil
}

// expect appends what a key must hold for the script to store.
func (c *content) expect(args []string) []string {
	switch {
	case c.foreign:
		return append(args, "type", c.kind)
	case c.kind == kindString:
		return append(args, kindString, c.text)
	case c.kind == kindHash:
		args = append(args, kindHash, strconv.Itoa(len(c.fields)))
		for _, f := range c.fields {
			args = append(args, f.name, f.text)
		}
		return args
	}
	return append(args, kindNone)
}

// tables are of views that are closed, to be used again.
type tables struct{ pool sync.Pool }

func (t *tables) take(s *Store) *store.Store {
	if table, ok := t.pool.Get().(*store.Store); ok {
		return table
	}
	return store.New(store.Options{MaxKeys: mostKeys, Shards: 1, Policies: s.policies})
}

// mostKeys is how many keys a view has room for.
const mostKeys = 1 << 16

func (t *tables) put(table *store.Store) {
	table.Flush()
	t.pool.Put(table)
}
