package remote

import (
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// seen is what keys held when a change was stored. The next change of the key is decided by that, in place of reading the key first: a
// celld that is alone with its keys needs one round trip and not two. Where the engine has something else, it is a conflict as any.
type seen struct {
	mu   sync.Mutex
	keys *simplelru.LRU[string, sight]
}

type sight struct {
	content
	nowNS  int64 // the engine's time has reached it
	wrong  int   // how many changes in a row found that the key held something else
	unused int   // so many changes are to read the key
}

// mostUnused is how many changes read the key between two that do not, where others change it, too. After the first wrong one it is 1, and
// doubles with each.
const mostUnused = 64

// keysSeen of mostSeen bytes are 16 MB.
const (
	keysSeen = 1 << 14
	mostSeen = 1 << 10
)

func (s *seen) init() { s.keys, _ = simplelru.NewLRU[string, sight](keysSeen, nil) }

// note notes what a key holds after a change, and what became of the guess.
func (s *seen) note(key string, c content, nowNS int64, g guess) {
	size := len(key) + len(c.text)
	for _, f := range c.fields {
		size += len(f.name) + len(f.text)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if size > mostSeen || c.foreign {
		s.keys.Remove(key)
		return
	}
	last, _ := s.keys.Get(key)
	switch {
	case g == guessedRight:
		last.wrong = 0
	case g == guessedWrong:
		last.wrong++
		last.unused = min(1<<min(last.wrong-1, 10), mostUnused)
	case last.unused > 0:
		last.unused--
	}
	last.content, last.nowNS = c, nowNS
	s.keys.Add(key, last)
}

func (s *seen) of(key string) (sight, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last, ok := s.keys.Get(key)
	return last, ok && last.unused == 0
}

// guess is whether a view was loaded by what its key held last.
type guess uint8

const (
	notGuessed guess = iota
	guessed
	guessedRight
	guessedWrong
)

// guess loads a view of one key by what it held last, and reports whether it has.
func (v *View) guess() bool {
	if len(v.keys) != 1 {
		return false
	}
	k := &v.keys[0]
	last, ok := v.store.seen.of(k.name)
	if !ok {
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
