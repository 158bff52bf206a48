package resp

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// clientList is the connections of clients.
type clientList struct {
	mu       sync.Mutex
	admitted int64              // connections, at most maxclients
	sessions map[int64]*Session // open ones, by id
	lastID   int64

	monitors  monitorList
	watching  atomic.Int64 // of them have WATCH on: INFO would take 2 ms to look at 10,000
	tracking  atomic.Int64 // of them track keys
	lastLocal atomic.Pointer[string]

	scratches scratchPool // of all sessions
	inside    callers     // which make calls from within the process
}

// admit makes room for a connection, and returns its id; 0: there are most.
func (l *clientList) admit(most int64) (id int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.admitted >= most {
		return 0
	}
	l.admitted++
	l.lastID++
	return l.lastID
}

// open makes a session visible to others.
func (l *clientList) open(s *Session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sessions[s.client.id] = s
}

func (l *clientList) forget(s *Session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.admitted--
	delete(l.sessions, s.client.id)
}

// change counts one that was in a state, or was not, and now is, or is not.
func change(count *atomic.Int64, was, is bool) {
	switch {
	case is && !was:
		count.Add(1)
	case was && !is:
		count.Add(-1)
	}
}

// noteWatching notes how many keys the connection watches.
func (s *Session) noteWatching(keys int) {
	change(&s.srv.clients.watching, s.client.watching.Swap(int32(keys)) != 0, keys != 0)
}

// all returns the sessions that are open now, in no order.
func (l *clientList) all() []*Session {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.AppendSeq(make([]*Session, 0, len(l.sessions)), maps.Values(l.sessions))
}

// byAge returns the sessions, the oldest first.
func (l *clientList) byAge() []*Session {
	sessions := l.all()
	slices.SortFunc(sessions, func(a, b *Session) int { return cmp.Compare(a.client.id, b.client.id) })
	return sessions
}

// get returns the session with this id, or nil.
func (l *clientList) get(id int64) *Session {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sessions[id]
}

func (l *clientList) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.sessions)
}

// intern returns one shared copy of a local address, as most connections have the same.
func (l *clientList) intern(text string) string {
	if last := l.lastLocal.Load(); last != nil && *last == text {
		return *last
	}
	l.lastLocal.Store(&text)
	return text
}

// bytes is the memory of all clients.
func (l *clientList) bytes() (n int64) {
	for _, s := range l.all() {
		n += s.client.bytes()
	}
	return n
}
