package remote

import (
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"celld/cell"
)

// known has what keys held lately: to tell those in use from those that are not, and to deny again what was denied without asking.
// Its owner locks it.
type known struct {
	tats *simplelru.LRU[string, knownTAT] // nil: none
}

// knownTAT is the TAT of a key as the engine had it.
type knownTAT struct {
	field  string      // of a limit; "" for a TAT
	params cell.Params // of a limit: under others, what was used of it is carried over
	tatNS  uint64
	got    time.Time // before it was asked for
	denied bool      // a call was denied with it
}

// keysKnown is how many keys are known at least, also where no denials are: without any, a call on a key in use costs the engine
// a SET NX GET beside its script.
const keysKnown = 1 << 14

// denialLasts is for how long a key is denied without asking: others may have given back meanwhile.
const denialLasts = time.Second

func (k *known) init(keys int) { k.tats, _ = simplelru.NewLRU[string, knownTAT](max(keys, 1), nil) }

// note notes what a key holds, asked for after sent. A TAT of 0 forgets the key.
func (k *known) note(key, field string, params cell.Params, tatNS uint64, sent time.Time, denied bool) {
	if tatNS == 0 {
		k.tats.Remove(key)
		return
	}
	k.tats.Add(key, knownTAT{field, params, tatNS, sent, denied})
}

func (k *known) forget(key string) { k.tats.Remove(key) }

// tat returns the TAT that a key is known to hold, 0 for none. That of a limit is none.
func (k *known) tat(key string) uint64 {
	if t, ok := k.tats.Get(key); ok && t.field == "" {
		return t.tatNS
	}
	return 0
}

// inUse reports whether the engine is known to have a key at nowNS.
func (k *known) inUse(key string, nowNS int64) bool {
	t, ok := k.tats.Get(key)
	return ok && t.tatNS+uint64(linger) > uint64(nowNS)
}

// denied returns the TAT with which a call was denied a second ago or less.
func (k *known) denied(key, field string, params cell.Params) (tatNS uint64, ok bool) {
	t, ok := k.tats.Get(key)
	return t.tatNS, ok && t.denied && t.field == field && t.params == params && time.Since(t.got) < denialLasts
}
