package resp

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"celld/resp/acl"
	"celld/resp/command"
	"celld/store"
)

// client is what other goroutines may see of a session: CLIENT LIST and KILL, MONITOR, the idle timeout. Its fields never
// change, are atomic, or are guarded by mu.
type client struct {
	id        int64
	addr      string // "127.0.0.1:4711", or the socket's path and ":0"
	localAddr string
	fd        int32 // -1 where its transport has none
	unix      bool
	loopback  bool
	bornNS    int64

	lastNS      atomic.Int64 // when bytes last arrived or left
	lastCommand atomic.Pointer[command.Row]
	user        atomic.Pointer[acl.User]
	queryBytes  atomic.Int64 // of an unfinished command
	txBytes     atomic.Int64
	unsent      atomic.Int64 // reply bytes that the peer had not taken when its transport last looked
	boundBytes  atomic.Int64 // of the leases that end with it
	txLen       atomic.Int32 // queued commands, -1 outside of MULTI
	resp3       atomic.Bool
	watching    atomic.Int32
	tracking    atomic.Uint32
	monitor     atomic.Bool
	noEvict     atomic.Bool
	noTouch     atomic.Bool
	killed      atomic.Bool
	waits       atomic.Pointer[store.TakeRequest] // with WAIT, whose time has not come

	mu         sync.Mutex
	name       string
	libName    string
	libVersion string

	pushMu sync.Mutex
	pushed []byte // output from elsewhere, on its way
}

func (c *client) command() string {
	if row := c.lastCommand.Load(); row != nil {
		return row.FullName()
	}
	return "NULL"
}

// line is the client's line in CLIENT LIST, with Redis's fields. Fields without a meaning here are 0.
func (c *client) line(nowNS int64) string {
	c.mu.Lock()
	name, libName, libVersion := c.name, c.libName, c.libVersion
	c.mu.Unlock()
	unsent, query := c.unsentBytes(), c.queryBytes.Load()
	protocol := 2
	if c.resp3.Load() {
		protocol = 3
	}
	return fmt.Sprintf("id=%d addr=%s laddr=%s fd=%d name=%s age=%d idle=%d flags=%s db=0 sub=0 psub=0 ssub=0 multi=%d "+
		"qbuf=%d qbuf-free=0 argv-mem=0 multi-mem=%d rbs=0 rbp=0 obl=0 oll=0 omem=%d tot-mem=%d events=r cmd=%s user=%s "+
		"redir=%d resp=%d lib-name=%s lib-ver=%s",
		c.id, c.addr, c.localAddr, c.fd, name, (nowNS-c.bornNS)/1e9, max(0, nowNS-c.lastNS.Load())/1e9, c.flags(), c.txLen.Load(),
		query, c.txBytes.Load(), unsent, c.bytes(), c.command(), c.user.Load().Name(),
		c.redirection(), protocol, libName, libVersion)
}

// sessionBytes is the size of a session without its buffers, for tot-mem.
const sessionBytes = 1024

// waitBytes is what a session that waits holds beside that.
const waitBytes = 2048

// bytes is the memory of a client, in bytes.
func (c *client) bytes() int64 {
	n := c.queryBytes.Load() + c.txBytes.Load() + c.boundBytes.Load() + c.unsentBytes() + sessionBytes
	if c.waits.Load() != nil {
		n += waitBytes
	}
	return n
}

// unsentBytes is how many bytes of replies a client has not read.
func (c *client) unsentBytes() int64 {
	c.pushMu.Lock()
	defer c.pushMu.Unlock()
	return int64(len(c.pushed)) + c.unsent.Load()
}

func (c *client) flags() string {
	var b strings.Builder
	for _, f := range []struct {
		set    bool
		letter byte
	}{
		{c.monitor.Load(), 'O'}, {c.txLen.Load() >= 0, 'x'}, {c.waits.Load() != nil, 'b'}, {c.trackingMode() != 0, 't'}, {c.unix, 'U'},
		{c.noEvict.Load(), 'e'}, {c.noTouch.Load(), 'T'},
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
