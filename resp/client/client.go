package client

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"

	"celld/resp/acl"
	"celld/resp/transport"
	"celld/store"
)

// Client is what other goroutines may see of a connection. Its fields never change once others see it, are atomic, or are guarded by
// pushMu.
type Client struct {
	ID        int64  // 0: it is no connection, but makes calls within the process
	Addr      string // "127.0.0.1:4711", or the socket's path and ":0"
	LocalAddr string
	FD        int32 // -1 where its transport has none
	Unix      bool
	BornNS    int64
	Conn      transport.Conn // others may call its Close and Wake

	LastNS      atomic.Int64 // when bytes last arrived or left
	LastCommand atomic.Pointer[acl.Command]
	User        atomic.Pointer[acl.User]
	Certified   *acl.User    // whom a certificate has named; changes only while the execution lock is held
	QueryBytes  atomic.Int64 // of an unfinished command
	TxBytes     atomic.Int64
	Unsent      atomic.Int64 // reply bytes that the peer had not taken when its transport last looked
	BoundBytes  atomic.Int64 // of the leases that end with it
	TxLen       atomic.Int32 // queued commands, -1 outside of MULTI
	RESP3       atomic.Bool
	NoEvict     atomic.Bool
	NoTouch     atomic.Bool
	Killed      atomic.Bool
	Waits       atomic.Pointer[store.TakeRequest] // with WAIT, whose time has not come

	watching atomic.Int32
	tracking atomic.Uint32
	monitor  atomic.Bool
	names    atomic.Pointer[Names] // nil: none is set

	pushMu sync.Mutex
	pushed []byte // output from elsewhere, on its way
}

// From begins a client that comes from one address to another. At a unix socket, both are the path of the listener, and port 0.
func (c *Client) From(remote, local net.Addr, nowNS int64) {
	c.Begin(AddrText(remote), AddrText(local), nowNS)
	if _, c.Unix = local.(*net.UnixAddr); c.Unix {
		c.LocalAddr += ":0"
		c.Addr = c.LocalAddr
	}
}

// Begin is From for addresses as CLIENT LIST shows them.
func (c *Client) Begin(addr, localAddr string, nowNS int64) {
	c.Addr, c.LocalAddr, c.FD, c.BornNS = addr, localAddr, -1, nowNS
	c.LastNS.Store(nowNS)
	c.TxLen.Store(-1)
}

// AddrText is an address, or nothing for none.
func AddrText(a net.Addr) string {
	if a == nil {
		return ""
	}
	return a.String()
}

// Command is the full name of the last command.
func (c *Client) Command() string {
	if last := c.LastCommand.Load(); last != nil {
		return last.Name
	}
	return "NULL"
}

// Names are what a client says of itself.
type Names struct{ Name, LibName, LibVersion string }

// Names are the client's.
func (c *Client) Names() Names {
	if n := c.names.Load(); n != nil {
		return *n
	}
	return Names{}
}

// SetNames sets them.
func (c *Client) SetNames(n Names) { c.names.Store(&n) }

// Line is the client's line in CLIENT LIST, with Redis's fields. Fields without a meaning here are 0.
func (c *Client) Line(nowNS int64) string {
	n, protocol := c.Names(), 2
	if c.RESP3.Load() {
		protocol = 3
	}
	return fmt.Sprintf("id=%d addr=%s laddr=%s fd=%d name=%s age=%d idle=%d flags=%s db=0 sub=0 psub=0 ssub=0 multi=%d "+
		"qbuf=%d qbuf-free=0 argv-mem=0 multi-mem=%d rbs=0 rbp=0 obl=0 oll=0 omem=%d tot-mem=%d events=r cmd=%s user=%s "+
		"redir=%d resp=%d lib-name=%s lib-ver=%s",
		c.ID, c.Addr, c.LocalAddr, c.FD, n.Name, c.AgeS(nowNS), max(0, nowNS-c.LastNS.Load())/1e9, c.flags(), c.TxLen.Load(),
		c.QueryBytes.Load(), c.TxBytes.Load(), c.unsentBytes(), c.Bytes(), c.Command(), c.User.Load().Name(),
		c.Redirection(), protocol, n.LibName, n.LibVersion)
}

// AgeS is how old the connection is, in seconds.
func (c *Client) AgeS(nowNS int64) int64 { return (nowNS - c.BornNS) / 1e9 }

// flags are the letters of what the client does: N is none of it.
func (c *Client) flags() string {
	var b strings.Builder
	for _, f := range []struct {
		set    bool
		letter byte
	}{
		{c.monitor.Load(), 'O'}, {c.TxLen.Load() >= 0, 'x'}, {c.Waits.Load() != nil, 'b'}, {c.Tracking() != 0, 't'}, {c.Unix, 'U'},
		{c.NoEvict.Load(), 'e'}, {c.NoTouch.Load(), 'T'},
	} {
		if f.set {
			b.WriteByte(f.letter)
		}
	}
	if b.Len() == 0 {
		return "N"
	}
	return b.String()
}

// The memory that a client takes beside its buffers, in bytes, for tot-mem.
const (
	sessionBytes = 1024
	waitBytes    = 2048 // while it waits
)

// Bytes is the memory of a client.
func (c *Client) Bytes() int64 {
	n := c.QueryBytes.Load() + c.TxBytes.Load() + c.BoundBytes.Load() + c.unsentBytes() + sessionBytes
	if c.Waits.Load() != nil {
		n += waitBytes
	}
	return n
}

// Buffers is the memory of its input, its transaction and its output.
func (c *Client) Buffers() int64 { return c.Unsent.Load() + c.QueryBytes.Load() + c.TxBytes.Load() }

// unsentBytes is how many bytes of replies a client has not read.
func (c *Client) unsentBytes() int64 {
	c.pushMu.Lock()
	defer c.pushMu.Unlock()
	return int64(len(c.pushed)) + c.Unsent.Load()
}

// Idle reports whether nothing has come or gone for longer than a time. One in MONITOR is never idle.
func (c *Client) Idle(nowNS, longerThanNS int64) bool {
	return nowNS-c.LastNS.Load() > longerThanNS && !c.monitor.Load()
}

// Kill ends the connection. Any goroutine may call it.
func (c *Client) Kill() {
	c.Killed.Store(true)
	c.Conn.Close(true)
}

// Leaver ends the wait of a call with WAIT. A store is one.
type Leaver interface {
	Leave(r *store.TakeRequest, why error) bool
}

// ErrUnblocked is what a call gets whose wait another client has ended with CLIENT UNBLOCK ERROR.
var ErrUnblocked = errors.New("unblocked")

// Unblock ends the client's wait, or returns false. store.Leases tells what why does. Any goroutine may call it.
func (c *Client) Unblock(from Leaver, why error) bool {
	r := c.Waits.Load()
	return r != nil && from.Leave(r, why)
}

// Tracking is what CLIENT TRACKING has set on a connection; 0 is off.
//
// A client that tracks keeps what it has read until the server announces that the key has changed. Redis remembers who has
// read what. celld remembers nothing: it announces a key right behind the reply to the command that has read it, as if it
// had changed then. Limits change with nearly every call, so a copy is worth little, and looking for readers would cost
// each call.
type Tracking uint32

// Bits of Tracking.
const (
	Tracks Tracking = 1 << iota
	OptsIn          // only what CLIENT CACHING says
)

// Tracking is how the connection tracks.
func (c *Client) Tracking() Tracking { return Tracking(c.tracking.Load()) }

// Redirection is the id of the client that receives the announcements: 0 for this one, -1 for none.
func (c *Client) Redirection() int64 {
	if c.Tracking() == 0 {
		return -1
	}
	return 0
}
