package resp

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

// errorStats counts error replies by their first word, such as ERR or WRONGTYPE. A new word replaces the map, so known words are
// counted without a lock.
type errorStats struct {
	adding sync.Mutex
	words  atomic.Pointer[map[string]*atomic.Int64]
}

// count counts an error reply, which begins with '-'.
func (st *errorStats) count(reply []byte) {
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

func (st *errorStats) add(word string) {
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

func (st *errorStats) read() map[string]*atomic.Int64 {
	if words := st.words.Load(); words != nil {
		return *words
	}
	return map[string]*atomic.Int64{}
}

// declare declares INFO's section Errorstats.
func (st *errorStats) declare(l *metrics.List) {
	words := st.read()
	for _, word := range slices.Sorted(maps.Keys(words)) {
		l.Field("errorstat_"+word, fmt.Sprintf("count=%d", words[word].Load()))
	}
}

func (st *errorStats) reset() {
	st.adding.Lock()
	defer st.adding.Unlock()
	st.words.Store(nil)
}
