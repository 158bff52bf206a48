package client

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"celld/resp/acl"
	"celld/resp/transport"
)

// List is the connections of clients. The zero value is ready.
type List struct {
	OnMonitors func(some bool) // is told when there are monitors, and when there are no more; nil: nobody is

	mu       sync.Mutex
	admitted int64             // connections, at most maxclients
	clients  map[int64]*Client // open ones, by id
	lastID   int64
	monitors map[*Client]struct{}

	local string // one copy of the local address that most connections have

	watching atomic.Int64 // of them have WATCH on: INFO would take 2 ms to look at 10,000
	tracking atomic.Int64 // of them track keys
}

// Admit makes room for a connection, and gives it its id. It returns false where there are most.
func (l *List) Admit(c *Client, most int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.admitted >= most {
		return false
	}
	l.admitted++
	l.lastID++
	if c.ID = l.lastID; c.LocalAddr != l.local {
		l.local = c.LocalAddr
	}
	c.LocalAddr = l.local
	return true
}

// Open makes a client visible to others. fd is its connection's file descriptor, or -1.
func (l *List) Open(c *Client, conn transport.Conn, fd int) {
	c.Conn, c.FD = conn, int32(fd)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.clients == nil {
		l.clients = map[int64]*Client{}
	}
	l.clients[c.ID] = c
}

// Forget removes a client whose connection is gone.
func (l *List) Forget(c *Client) {
	l.SetWatching(c, 0)
	l.SetTracking(c, 0)
	l.SetMonitor(c, false)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.admitted--
	delete(l.clients, c.ID)
}

// All returns the clients that are open now, in no order.
func (l *List) All() []*Client {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.AppendSeq(make([]*Client, 0, len(l.clients)), maps.Values(l.clients))
}

// ByAge returns the clients, the oldest first.
func (l *List) ByAge() []*Client {
	return slices.SortedFunc(slices.Values(l.All()), func(a, b *Client) int { return cmp.Compare(a.ID, b.ID) })
}

// Get returns the client with this id, or nil.
func (l *List) Get(id int64) *Client {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.clients[id]
}

// Count returns how many are open.
func (l *List) Count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.clients)
}

// Bytes is the memory of all clients.
func (l *List) Bytes() (n int64) {
	for _, c := range l.All() {
		n += c.Bytes()
	}
	return n
}

// Kill ends the connections of the clients that match, and returns how many do. It leaves the caller, if that matches, to end after
// its reply: own says so. caller may be nil.
func (l *List) Kill(caller *Client, matches func(*Client) bool) (matching int64, own bool) {
	for _, c := range l.All() {
		switch {
		case !matches(c):
			continue
		case c == caller:
			own = true
		default:
			c.Kill()
		}
		matching++
	}
	return matching, own
}

// Of matches the clients that have one of some users.
func Of(users []*acl.User) func(*Client) bool {
	set := map[*acl.User]bool{}
	for _, u := range users {
		set[u] = true
	}
	return func(c *Client) bool { return set[c.User.Load()] }
}

// CertifiedAs matches the clients that a certificate has authenticated as a user, whom they still have.
func CertifiedAs(u *acl.User) func(*Client) bool {
	return func(c *Client) bool { return c.Certified == u && c.User.Load() == u }
}

// SetWatching notes how many keys a client watches.
func (l *List) SetWatching(c *Client, keys int) {
	change(&l.watching, c.watching.Swap(int32(keys)) != 0, keys != 0)
}

// SetTracking changes how a client tracks.
func (l *List) SetTracking(c *Client, t Tracking) {
	change(&l.tracking, c.tracking.Swap(uint32(t)) != 0, t != 0)
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

// Watching returns how many clients watch keys.
func (l *List) Watching() int64 { return l.watching.Load() }

// Tracking returns how many clients track keys.
func (l *List) Tracking() int64 { return l.tracking.Load() }
