package remote

import (
	"hash/maphash"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"celld/cell"
	"celld/store/remote/view"
)

// tats are the TATs that keys had when the engine last answered about them. Others may have changed a key since, so one is a guess, which
// the engine checks before it stores anything. It saves, in µs of the engine's CPU for a call:
//
//	what                                                  of                              with    without
//	a call is denied again without asking                 100 keys at 100 × their rate     0.8       13.3
//	celld decides, the script only compares: see expect   1,000 keys in use                6.0       11.1
//
// A key without one may be a new one: see setNew.
type tats struct {
	seed   maphash.Seed
	shards [tatShards]*lru.Cache[string, lastTAT]
}

type lastTAT struct {
	tatNS  uint64
	field  string      // of a limit; "" for CL.THROTTLE's
	params cell.Params // of a limit: under others, what was used of it is carried over
	got    time.Time   // before it was asked for
	denied bool        // a call was denied with it
}

const (
	tatShards = 64

	// tatsKept are kept at least, also where no denials are to be: without any, a call on a key in use costs the engine a SET NX GET
	// beside its script.
	tatsKept = 1 << 14

	// denialLasts is for how long a key is denied without asking: others may have given back meanwhile.
	denialLasts = time.Second
)

func (t *tats) init(denials int) {
	t.seed = maphash.MakeSeed()
	for i := range t.shards {
		t.shards[i], _ = lru.New[string, lastTAT](max(denials, tatsKept) / tatShards)
	}
}

func (t *tats) of(key string) *lru.Cache[string, lastTAT] {
	return t.shards[maphash.String(t.seed, key)%tatShards]
}

// note notes what a key has. A TAT of 0 is none.
func (t *tats) note(key string, last lastTAT) {
	if last.tatNS == 0 {
		t.forget(key)
	} else {
		t.of(key).Add(key, last)
	}
}

func (t *tats) forget(keys ...string) {
	for _, key := range keys {
		t.of(key).Remove(key)
	}
}

// tat returns the TAT that a key is known to hold, 0 for none. That of a limit is none.
func (t *tats) tat(key string) uint64 {
	if last, ok := t.of(key).Get(key); ok && last.field == "" {
		return last.tatNS
	}
	return 0
}

// inUse reports whether the engine is known to have a TAT of a key at nowNS.
func (t *tats) inUse(key string, nowNS int64) bool {
	last, ok := t.of(key).Get(key)
	return ok && last.tatNS+uint64(view.Linger) > uint64(nowNS)
}

// denied returns the TAT with which a call was denied a second ago or less.
func (t *tats) denied(key, field string, params cell.Params) (tatNS uint64, ok bool) {
	last, ok := t.of(key).Get(key)
	return last.tatNS, ok && last.denied && last.field == field && last.params == params && time.Since(last.got) < denialLasts
}
