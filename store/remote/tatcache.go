package remote

import (
	"hash/maphash"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"celld/cell"
	"celld/store/remote/ahead"
	"celld/store/remote/view"
)

// tatCache is the version cache of buckets: it keeps the TATs that keys held when the engine last answered. Others may have changed a key
// since, so the engine checks a cached TAT before it stores anything. The cache saves, in µs of the engine's CPU for a call:
//
//	what                                                  of                              with    without
//	a call is denied again without a request              100 keys at 100 × their rate     0.8       13.3
//	celld decides, the script only compares: see expect   1,000 keys in use                6.0       11.1
//
// A key without a cached TAT may be new: see setNew.
type tatCache struct {
	seed   maphash.Seed
	shards [tatCacheShards]*lru.Cache[string, cachedTAT]
}

type cachedTAT struct {
	tatNS  uint64       // of a window: when it ends
	used   uint64       // of a window
	field  string       // of a limit; "" for CL.THROTTLE's
	params cell.Params  // of a limit: under others, what was used of it is carried over
	got    time.Time    // before it was asked for
	denied bool         // a call was denied with it, or there is a pause
	pause  *ahead.Pause // nil: there is none
}

const (
	tatCacheShards = 64

	// tatCacheSize is how many are kept at least, also if no denials are to be cached: without any, a call on a key in use costs the engine
	// a SET NX GET beside its script.
	tatCacheSize = 1 << 14

	// denialLasts is how long a key is denied without a request at most: others may have given something back meanwhile.
	denialLasts = time.Second
)

func (t *tatCache) init(denials int) {
	t.seed = maphash.MakeSeed()
	for i := range t.shards {
		t.shards[i], _ = lru.New[string, cachedTAT](max(denials, tatCacheSize) / tatCacheShards)
	}
}

func (t *tatCache) of(key string) *lru.Cache[string, cachedTAT] {
	return t.shards[maphash.String(t.seed, key)%tatCacheShards]
}

// note notes what a key has. A TAT of 0 is none.
func (t *tatCache) note(key string, last cachedTAT) {
	if last.tatNS == 0 {
		t.forget(key)
	} else {
		t.of(key).Add(key, last)
	}
}

func (t *tatCache) forget(keys ...string) {
	for _, key := range keys {
		t.of(key).Remove(key)
	}
}

// tat returns the cached TAT of a key; 0 for none, and for one of a limit.
func (t *tatCache) tat(key string) uint64 {
	if last, ok := t.of(key).Get(key); ok && last.field == "" {
		return last.tatNS
	}
	return 0
}

// last returns what is cached of a key.
func (t *tatCache) last(key, field string) (last cachedTAT, known bool) {
	last, ok := t.of(key).Get(key)
	return last, ok && last.field == field
}

// is reports whether a key that holds a TAT at nowNS has the cached one: nobody else has changed it since.
func (c *cachedTAT) is(tatNS uint64, nowNS int64) bool {
	return max(c.tatNS, uint64(nowNS)) == max(tatNS, uint64(nowNS))
}

// inUse reports whether the engine is known to hold a TAT of a key at nowNS.
func (t *tatCache) inUse(key string, nowNS int64) bool {
	last, ok := t.of(key).Get(key)
	return ok && last.tatNS+uint64(view.Linger) > uint64(nowNS)
}

// denied returns what is cached of a key since a call was denied lately.
func (t *tatCache) denied(key, field string, params cell.Params, lately time.Duration) (last cachedTAT, ok bool) {
	last, ok = t.of(key).Get(key)
	return last, ok && last.denied && last.field == field && last.params == params && time.Since(last.got) < lately
}
