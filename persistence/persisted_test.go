package persistence_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"celld/cell"
	"celld/persistence"
	"celld/resp/wire"
	"celld/store"
	"celld/store/memory"

	"pgregory.net/rapid"
)

// asFilesHold is a state with its expiry as a file holds it: in whole ms, and not after its TAT.
func asFilesHold(st store.Value) store.Value {
	if st.ExpiryNS > 0 {
		st.ExpiryNS = (st.ExpiryNS + 999_999) / 1e6 * 1e6
		if !st.IsCount() && st.TAT <= uint64(st.ExpiryNS) {
			st.ExpiryNS = store.AtTAT
		}
	}
	return st
}

// drawPersisted draws a change that may leave a TAT without an expiry, or move it. The same can be done to several stores.
func drawPersisted(t *rapid.T, nowNS int64) (name string, change func(*memory.Store)) {
	key := []byte(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "key"))
	other := []byte(rapid.SampledFrom([]string{"d", "e", "f"}).Draw(t, "other"))
	if rapid.Bool().Draw(t, "back") {
		key, other = other, key
	}
	near := rapid.OneOf(rapid.Int64Range(-3*second, 3*second), rapid.Int64Range(-3_000_000, 3_000_000),
		rapid.Int64Range(-3, 3)).Draw(t, "near")
	text := rapid.SampledFrom([]string{"5", "-7", fmt.Sprint(math.MaxInt64), fmt.Sprint(uint64(math.MaxUint64)), ""}).Draw(t, "text")
	if text == "" || rapid.Bool().Draw(t, "is near") {
		text = fmt.Sprint(nowNS + near)
	}
	set, _ := store.ParseInteger([]byte(text), nowNS)
	set.ExpiryNS = store.NoExpiry
	by := rapid.SampledFrom([]int64{nowNS + near, near}).Draw(t, "by")
	a := store.Access{NowNS: nowNS}
	update := func(fn func(st store.Value, ok bool) (store.Value, bool)) func(*memory.Store) {
		return func(s *memory.Store) { _ = s.Update(key, a, fn) }
	}
	changes := map[string]func(*memory.Store){
		"throttle": func(s *memory.Store) {
			limit, _ := cell.NewBucket(3, 1, 1)
			_, _ = s.Throttle(key, limit, 1, a)
		},
		"take": func(s *memory.Store) {
			limit, _ := cell.ParseLimit("3/2s")
			_, _ = s.Take([]store.Call{{Key: key, Limit: &limit}}, store.TakeOptions{Cost: 1}, a)
		},
		"set": update(func(store.Value, bool) (store.Value, bool) { return set, true }),
		"count": func(s *memory.Store) {
			by := store.Count{Counter: cell.Unbounded(by), Expire: store.NeverExpire}
			s.CountBatch([]store.CountRequest{{Key: key, Count: by}}, a, nil)
		},
		"persist": update(func(st store.Value, ok bool) (store.Value, bool) { st.ExpiryNS = store.NoExpiry; return st, ok }),
		"expire": update(func(st store.Value, ok bool) (store.Value, bool) {
			st.ExpiryNS = (nowNS + second) / 1e6 * 1e6
			return st, ok && (st.IsCount() || st.TAT > uint64(st.ExpiryNS))
		}),
		"delete": func(s *memory.Store) { s.Delete(key, nowNS) },
		"rename": func(s *memory.Store) { _, _ = s.Rename(key, other, a) },
		"copy":   func(s *memory.Store) { _, _ = s.Copy(key, other, true, a) },
	}
	name = rapid.SampledFrom(slices.Sorted(maps.Keys(changes))).Draw(t, "change")
	return fmt.Sprintf("%d %s %s %s %s %d", nowNS-t0, name, key, other, text, by), changes[name]
}

// A store that is restarted over and over holds the keys of one that never was, whatever passes meanwhile.
func TestKeysEndOverRestarts(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(*persistence.Options){"snapshot": snapshots, "append-only": appendOnly, "always": always,
		"rewritten": appendOnly} {
		t.Run(name, func(tt *testing.T) {
			rapid.Check(tt, func(t *rapid.T) {
				w, _ := inMemory(tt, set)
				w.mustOpen()
				model := &world{t: tt, now: w.now, store: memory.New(memory.Options{})}
				pass := func() {
					w.pass(rapid.OneOf(rapid.Int64Range(0, 4*second), rapid.Int64Range(0, 3_000_000)).Draw(t, "ns"))
					model.now = w.now
				}
				var history []string
				for range rapid.IntRange(1, 5).Draw(t, "restarts") {
					for range rapid.IntRange(1, 6).Draw(t, "changes") {
						text, change := drawPersisted(t, w.now)
						history = append(history, text)
						change(w.store)
						change(model.store)
						if rapid.Bool().Draw(t, "passes") {
							pass()
						}
						if rapid.Bool().Draw(t, "writes") {
							w.mustWrite()
							model.now = w.now
						}
					}
					if name == "rewritten" {
						w.settle()
						if err := w.m.Rewrite(); err != nil {
							t.Fatal(err)
						}
						w.settle()
					}
					if err := w.close(); err != nil {
						t.Fatal(err)
					}
					pass()
					history = append(history, fmt.Sprintf("%d restart", w.now-t0))
					w.mustOpen()
					is, want := w.states(), model.states()
					for _, all := range []map[string]store.Value{is, want} {
						for key, st := range all {
							all[key] = asFilesHold(st)
						}
					}
					if !maps.Equal(is, want) {
						t.Fatalf("%q\nthe store has %v\nwant          %v", history, is, want)
					}
				}
				w.m.Stop()
			})
		})
	}
}

// A file of a celld that gave such keys no expiry is written anew at the start: the next one may be after the TAT.
func TestAFileWithoutExpiriesOfTATs(t *testing.T) {
	w, files := inMemory(t, appendOnly)
	files.put(w.path("appendonly.aof"), wire.AppendCommand(nil, "SET", "a", fmt.Sprint(t0+9*second)))
	persisted := map[string]store.Value{"a": {TAT: uint64(t0 + 9*second), ExpiryNS: store.NoExpiry}}
	w.mustOpen().expect(persisted)
	w.reopen().expect(persisted)
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	w.pass(9 * second)
	w.mustOpen().expect(map[string]store.Value{})
	w.m.Stop()
}
