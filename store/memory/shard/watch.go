package shard

import "celld/store"

// Watch is an observation of one key (WATCH), from Shards.Watch until Stop.
type Watch struct {
	sh   *Shard
	hash uint64
	name string
	key  *watchedKey // nil: stopped
	puts uint64      // at the start
	live bool        // at the start
}

// Watch begins to observe a key, which need not be there. It does not touch it.
func (s *Shards) Watch(key []byte, nowNS int64) *Watch {
	hash := s.Hash(key)
	sh := s.ShardOf(hash)
	sh.Lock(nowNS)
	defer sh.Unlock()
	w := &Watch{sh: sh, hash: hash, name: string(key), live: sh.live(hash, key, nowNS)}
	w.key = sh.watched[w.name]
	if w.key == nil {
		if sh.watched == nil {
			sh.watched = make(map[string]*watchedKey)
		}
		w.key = &watchedKey{}
		sh.watched[w.name] = w.key
		sh.watches.Store(int64(len(sh.watched)))
	}
	w.key.watchers++
	w.puts = w.key.puts
	return w
}

// Changed reports whether the key was put since, or is gone though it was there: by deletion, rename, eviction, expiry or Flush. A call
// that was limited, a peek and a touch change nothing, unless the limit has changed. After Stop it returns false.
func (w *Watch) Changed(nowNS int64) bool {
	w.sh.Lock(nowNS)
	defer w.sh.Unlock()
	if w.key == nil {
		return false
	}
	live := w.sh.live(w.hash, []byte(w.name), nowNS)
	return w.key.puts != w.puts || live != w.live
}

// Stop ends the observation and frees what it takes. A second call does nothing.
func (w *Watch) Stop() {
	w.sh.Mu.Lock()
	defer w.sh.Unlock()
	if w.key == nil {
		return
	}
	if w.key.watchers--; w.key.watchers == 0 {
		delete(w.sh.watched, w.name)
		w.sh.watches.Store(int64(len(w.sh.watched)))
	}
	w.key = nil
}

func (sh *Shard) live(hash uint64, key []byte, nowNS int64) bool {
	_, e := sh.Find(hash, key, store.Access{NowNS: nowNS, NoTouch: true})
	return e != nil
}
