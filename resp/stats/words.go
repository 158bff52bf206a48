package stats

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"celld/resp/metrics"
)

// Redis's limits for INFO errorstats. Scripts can answer with new words: beyond the limit, these count together.
const (
	mostErrorWords = 128
	mostErrorWord  = 32 // bytes, with the '-'; a longer word counts as ERR
	errorOverflow  = "ERRORSTATS_OVERFLOW"
)

// ErrorWords counts error replies by their first word, such as ERR or WRONGTYPE. A new word replaces the map, so known words are
// counted without a lock.
type ErrorWords struct {
	adding sync.Mutex
	words  atomic.Pointer[map[string]*atomic.Int64]
}

// Count counts an error reply, which begins with '-'.
func (st *ErrorWords) Count(reply []byte) {
	word := errorWord(reply)
	if words := st.words.Load(); words != nil {
		if n := (*words)[string(word)]; n != nil {
			n.Add(1)
			return
		}
	}
	st.add(string(word))
}

func errorWord(reply []byte) []byte {
	end := bytes.IndexByte(reply[:min(len(reply), mostErrorWord)], ' ')
	if end < 0 {
		return []byte("ERR")
	}
	return reply[1:end]
}

func (st *ErrorWords) add(word string) {
	st.adding.Lock()
	defer st.adding.Unlock()
	words := maps.Clone(st.read())
	if words[word] == nil && len(words) >= mostErrorWords {
		word = errorOverflow
	}
	if words[word] == nil {
		words[word] = &atomic.Int64{}
	}
	words[word].Add(1)
	st.words.Store(&words)
}

func (st *ErrorWords) read() map[string]*atomic.Int64 {
	if words := st.words.Load(); words != nil {
		return *words
	}
	return map[string]*atomic.Int64{}
}

// Declare declares INFO's section Errorstats.
func (st *ErrorWords) Declare(l *metrics.List) {
	words := st.read()
	for _, word := range slices.Sorted(maps.Keys(words)) {
		l.Field("errorstat_"+word, fmt.Sprintf("count=%d", words[word].Load()))
	}
}

// Reset forgets all words.
func (st *ErrorWords) Reset() {
	st.adding.Lock()
	defer st.adding.Unlock()
	st.words.Store(nil)
}
