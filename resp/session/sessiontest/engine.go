package sessiontest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"celld/cell"
	"celld/resp/glob"
	"celld/store"
	"celld/store/memory"
	"celld/store/policy"
)

// Engine is an engine that has its keys in a store. Where it does not answer at once, it does when a test has it.
type Engine struct {
	*memory.Store
	Now func() int64

	mu      sync.Mutex
	Later   bool
	Waits   []func()
	Refuse  func(commit bool) error // of each view
	Opened  [][]string              // the keys of each view
	Closed  int                     // views
	Known   store.Facts
	Unknown error // of PoliciesUnknown
	Drained func(context.Context) bool
	Begin   func() (end func()) // of ChangeAlone
}

// do does something now or when a test says so.
func (e *Engine) do(what func()) {
	e.mu.Lock()
	if e.Later {
		e.Waits = append(e.Waits, what)
		what = func() {}
	}
	e.mu.Unlock()
	what()
}

// Answer does what is due for longest.
func (e *Engine) Answer() {
	e.mu.Lock()
	next := e.Waits[0]
	e.Waits = e.Waits[1:]
	e.mu.Unlock()
	next()
}

func (e *Engine) Due() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.Waits)
}

func (e *Engine) Drain(ctx context.Context) (drained func() bool) {
	return func() bool { return e.Drained == nil || e.Drained(ctx) }
}

func (e *Engine) Facts() store.Facts {
	f := e.Known
	f.MaxWaiting = cmp.Or(f.MaxWaiting, 64<<20)
	return f
}
func (e *Engine) PoliciesUnknown() error { return e.Unknown }

func (e *Engine) InProcess() bool { return false }
func (e *Engine) Away() error     { return e.Known.Away }

func (e *Engine) Open(keys [][]byte, _ store.OpenOptions, w store.Waker) store.Tx {
	v := &fakeView{Store: memory.New(memory.Options{Shards: 1, Policies: e.Set}), e: e, keys: slices.Clone(keys)}
	var names []string
	for _, key := range keys {
		names = append(names, string(key))
	}
	e.Opened = append(e.Opened, names)
	e.do(func() {
		if e.Refuse != nil {
			v.err = e.Refuse(false)
		}
		v.read()
		w.Wake()
	})
	return v
}

// fakeView is a view of a Engine.
type fakeView struct {
	*memory.Store
	e        *Engine
	keys     [][]byte
	texts    []string // what was read
	nowNS    int64
	err      error
	conflict bool
}

func (v *fakeView) read() {
	v.nowNS = v.e.Now()
	v.Store.Flush()
	v.texts = nil
	for _, key := range v.keys {
		text, value := contentOf(v.e.Store, key, v.nowNS)
		v.texts = append(v.texts, text)
		if text != "" {
			Put(v.Store, key, value, v.nowNS)
		}
	}
}

// contentOf is what a store has under a key, as a text and as a Value of its own.
func contentOf(of *memory.Store, key []byte, nowNS int64) (text string, copied store.Value) {
	_ = of.Update(key, store.Access{NowNS: nowNS, NoTouch: true}, func(is store.Value, ok bool) (store.Value, bool) {
		if !ok {
			return is, false
		}
		copied, text = is, fmt.Sprint(is.TAT, " ", is.Count, " ", is.ExpiryNS)
		if is.HoldsLimits {
			var limits store.Limits
			for i := range *is.Limits {
				l := &(*is.Limits)[i]
				state := string(l.Limit.AppendState(nil, &l.State))
				text += "\n" + string(l.AppendName(nil)) + " " + state
				one := *l
				_, one.State, _ = cell.ParseState(state)
				limits = append(limits, one)
			}
			copied.Limits = &limits
		}
		return is, false
	})
	return text, copied
}

func Put(to *memory.Store, key []byte, value store.Value, nowNS int64) {
	_ = to.Update(key, store.Access{NowNS: nowNS}, func(store.Value, bool) (store.Value, bool) { return value, true })
}

func (v *fakeView) Keys() store.Keys { return v.Store }
func (v *fakeView) TimeNS() int64    { return v.nowNS }
func (v *fakeView) Err() error       { return v.err }
func (v *fakeView) Conflict() bool   { return v.conflict }
func (v *fakeView) Close()           { v.e.Closed++ }

// Foreign: what a test has named so is nothing of celld's.
func (v *fakeView) Foreign(key []byte) (kind string, foreign bool) {
	return "list", strings.HasPrefix(string(key), "foreign")
}

func (v *fakeView) Commit(w store.Waker) bool {
	var texts []string
	var values []store.Value
	for _, key := range v.keys {
		text, value := contentOf(v.Store, key, v.nowNS)
		texts, values = append(texts, text), append(values, value)
	}
	if slices.Equal(texts, v.texts) {
		return true
	}
	v.e.do(func() {
		defer w.Wake()
		if v.e.Refuse != nil {
			if v.err = v.e.Refuse(true); v.err != nil {
				return
			}
		}
		v.conflict = false
		for i, key := range v.keys {
			text, _ := contentOf(v.e.Store, key, v.e.Now())
			v.conflict = v.conflict || text != v.texts[i]
		}
		if v.conflict {
			v.read()
			return
		}
		for i, key := range v.keys {
			switch {
			case texts[i] == v.texts[i]:
			case texts[i] == "":
				v.e.Delete(key, v.nowNS)
			default:
				Put(v.e.Store, key, values[i], v.nowNS)
			}
		}
	})
	return false
}

func (e *Engine) SetPolicy(name string, limits []cell.Limit, o policy.Options, done func(bool, error)) {
	e.do(func() { done(e.Store.SetPolicy(name, limits, o)) })
}

func (e *Engine) DeletePolicy(name string, done func(bool, error)) {
	e.do(func() { done(e.Store.DeletePolicy(name), nil) })
}

func (e *Engine) PutRule(r policy.Rule, _ int64, done func(bool, error)) {
	e.do(func() { done(e.Store.PutRule(r, e.Now())) })
}

func (e *Engine) DeleteRule(r policy.Rule, _ int64, done func(bool, error)) {
	e.do(func() { done(e.Store.DeleteRule(r, e.Now()), nil) })
}

func (e *Engine) EndPolicies(nowNS int64) { e.Store.EndPolicies(nowNS) }

func (e *Engine) AwaitPolicies() {}

func (e *Engine) ChangeAlone(begin func() (end func())) { e.Begin = begin }

func (e *Engine) KeepPolicies(list []*policy.Policy, only func(name string) bool) (refused int, err error) {
	return memory.Port{Store: e.Store}.KeepPolicies(list, only)
}

func (e *Engine) KeepRules(list []policy.Rule, only func(name string) bool) (refused int, err error) {
	return memory.Port{Store: e.Store}.KeepRules(list, only)
}

func (e *Engine) Scan(_ context.Context, o store.ScanOptions, done func(uint64, []string, error)) {
	e.do(func() {
		var keys []string
		pattern, _ := glob.Compile([]byte(o.Pattern), false)
		next := e.Store.Scan(o.Cursor, int(o.Count), e.Now(), func(key string, st store.Value) {
			if pattern.Match([]byte(key)) && (o.Type == "" || o.Type == st.Type()) {
				keys = append(keys, key)
			}
		})
		done(next, keys, nil)
	})
}

func (e *Engine) Keys(ctx context.Context, pattern string, _ int, done func([]string, error)) {
	e.Scan(ctx, store.ScanOptions{Pattern: pattern, Count: 1 << 30}, func(_ uint64, keys []string, err error) { done(keys, err) })
}

func (e *Engine) Size(_ context.Context, done func(int64, error)) {
	e.do(func() { done(int64(e.Len(e.Now())), nil) })
}

func (e *Engine) RandomKey(_ context.Context, done func(string, bool, error)) {
	e.do(func() {
		key, ok := e.Random(e.Now())
		done(key, ok, nil)
	})
}

func (e *Engine) Flush(done func(error)) {
	e.do(func() {
		e.Store.Flush()
		done(nil)
	})
}
