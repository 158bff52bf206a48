package remote

import (
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"celld/cell"
)

// versions are what keys held when the engine last answered about them. Others may have changed a key since, so a version is a guess, which
// the engine checks before it stores anything. It saves, in µs of the engine's CPU for a call:
//
//	what                                                  of                              with    without
//	a call is denied again without asking                 100 keys at 100 × their rate     0.8       13.3
//	celld decides, the script only compares: see expect   1,000 keys in use                6.0       11.1
//	a change is stored without reading the key: see guess 1,000 keys with algo=window       14         23
//
// A key without a version may be a new one: see setNew. The owner locks it.
type versions struct {
	keys  *simplelru.LRU[string, version]
	bytes int // of all contents
}

// version is a TAT, or what a change has stored.
type version struct {
	tatNS  uint64
	field  string      // of a limit; "" for a TAT
	params cell.Params // of a limit: under others, what was used of it is carried over
	got    time.Time   // before it was asked for
	denied bool        // a call was denied with it

	stored *storedContent // nil: it is a TAT
}

type storedContent struct {
	content
	nowNS  int64 // the engine's time has reached it
	wrong  int   // how many changes in a row found that the key held something else
	unused int   // so many changes are to read the key
}

const (
	// versionsKept are kept at least, also where no denials are to be: without any, a call on a key in use costs the engine a SET NX GET
	// beside its script.
	versionsKept = 1 << 14

	mostContent  = 1 << 10 // bytes of one
	mostContents = 1 << 24 // bytes of all

	// denialLasts is for how long a key is denied without asking: others may have given back meanwhile.
	denialLasts = time.Second

	// mostUnused is how many changes read the key between two that do not, where others change it, too. After the first wrong one it is 1,
	// and doubles with each.
	mostUnused = 64
)

func (s *versions) init(keys int) {
	s.keys, _ = simplelru.NewLRU(max(keys, 1), func(_ string, v version) {
		if v.stored != nil {
			s.bytes -= v.stored.size()
		}
	})
}

// noteTAT notes the TAT that a key holds, asked for after sent. 0 forgets the key.
func (s *versions) noteTAT(key, field string, params cell.Params, tatNS uint64, sent time.Time, denied bool) {
	if v, ok := s.keys.Peek(key); tatNS == 0 || ok && v.stored != nil {
		s.keys.Remove(key)
	}
	if tatNS != 0 {
		s.keys.Add(key, version{tatNS: tatNS, field: field, params: params, got: sent, denied: denied})
	}
}

// noteContent notes what a key holds after a change, and what became of the guess.
func (s *versions) noteContent(key string, c content, nowNS int64, g guess) {
	next := &storedContent{content: c, nowNS: nowNS}
	if last, _ := s.keys.Peek(key); last.stored != nil {
		next.wrong, next.unused = last.stored.wrong, last.stored.unused
	}
	s.keys.Remove(key)
	size := c.size()
	if len(key)+size > mostContent || c.foreign {
		return
	}
	switch {
	case g == guessedRight:
		next.wrong = 0
	case g == guessedWrong:
		next.wrong++
		next.unused = min(1<<min(next.wrong-1, 10), mostUnused)
	case next.unused > 0:
		next.unused--
	}
	s.keys.Add(key, version{stored: next})
	for s.bytes += size; s.bytes > mostContents/queueShards; {
		s.keys.RemoveOldest()
	}
}

// forget forgets all of a key, and forgetTAT what calls of a bucket go by: a change may follow.
func (s *versions) forget(key string) { s.keys.Remove(key) }

func (s *versions) forgetTAT(key string) {
	if v, ok := s.keys.Peek(key); ok && v.stored == nil {
		s.keys.Remove(key)
	}
}

// tat returns the TAT that a key is known to hold, 0 for none. That of a limit is none.
func (s *versions) tat(key string) uint64 {
	if v, ok := s.keys.Get(key); ok && v.field == "" {
		return v.tatNS
	}
	return 0
}

// inUse reports whether the engine is known to have a TAT of a key at nowNS.
func (s *versions) inUse(key string, nowNS int64) bool {
	v, ok := s.keys.Get(key)
	return ok && v.tatNS+uint64(linger) > uint64(nowNS)
}

// denied returns the TAT with which a call was denied a second ago or less.
func (s *versions) denied(key, field string, params cell.Params) (tatNS uint64, ok bool) {
	v, ok := s.keys.Get(key)
	return v.tatNS, ok && v.denied && v.field == field && v.params == params && time.Since(v.got) < denialLasts
}

// stored returns what the last change has stored, if the next is to be decided by that, else nil.
func (s *versions) stored(key string) *storedContent {
	if v, _ := s.keys.Get(key); v.stored != nil && v.stored.unused == 0 {
		return v.stored
	}
	return nil
}

func (c *content) size() int {
	size := len(c.text)
	for _, f := range c.fields {
		size += len(f.name) + len(f.text)
	}
	return size
}

// guess is whether a view was loaded by the version of its key.
type guess uint8

const (
	notGuessed guess = iota
	guessed
	guessedRight
	guessedWrong
)

// guess loads a view of one key by what it held last, and reports whether it has. Where the engine has something else, it is a conflict as
// any.
func (v *View) guess() bool {
	if len(v.keys) != 1 {
		return false
	}
	k := &v.keys[0]
	sh := v.store.queues.shardOf(k.name)
	sh.mu.Lock()
	last := sh.versions.stored(k.name)
	sh.mu.Unlock()
	if last == nil {
		return false
	}
	now, ok := v.store.link.Clock(k.name).Lower()
	if !ok {
		return false
	}
	v.NowNS, v.guessed = max(now, last.nowNS), guessed
	k.read = last.content
	return true
}
