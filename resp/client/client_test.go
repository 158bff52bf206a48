package client

import (
	"net"
	"slices"
	"testing"
	"unsafe"

	"celld/resp/acl"
	"celld/resp/transport"
	"celld/store"
)

// fakeConn counts what is done to a connection.
type fakeConn struct {
	transport.Conn
	closes, wakes int
	now           bool
}

func (f *fakeConn) Close(now bool) { f.closes, f.now = f.closes+1, now }
func (f *fakeConn) Wake()          { f.wakes++ }

const bornNS = 1_790_000_000e9

var tcp = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 4711}

// open returns a client that others see, whose user is another than everybody's.
func open(t *testing.T, l *List) (*Client, *fakeConn) {
	t.Helper()
	c, f := &Client{}, &fakeConn{}
	c.From(tcp, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 6379}, bornNS)
	c.User.Store(acl.NewUsers(acl.NewTable(nil, nil)).Default)
	if !l.Admit(c, 100) {
		t.Fatal("there is no room")
	}
	l.Open(c, f, 7)
	return c, f
}

func TestLine(t *testing.T) {
	var l List
	c, _ := open(t, &l)
	if got, want := c.Line(bornNS), "id=1 addr=127.0.0.1:4711 laddr=127.0.0.1:6379 fd=7 name= age=0 idle=0 flags=N db=0 sub=0 psub=0 ssub=0 multi=-1 qbuf=0 qbuf-free=0 argv-mem=0 multi-mem=0 "+
		"rbs=0 rbp=0 obl=0 oll=0 omem=0 tot-mem=1024 events=r cmd=NULL user=default redir=-1 resp=2 lib-name= lib-ver="; got != want {
		t.Errorf("a new one:\n got %s\nwant %s", got, want)
	}
	c.LastNS.Store(bornNS + 3e9)
	c.LastCommand.Store(&acl.Command{Name: "client|id"})
	c.SetNames(Names{"n", "lib", "1.2"})
	for _, count := range []struct {
		of interface{ Store(int64) }
		n  int64
	}{{&c.QueryBytes, 1}, {&c.TxBytes, 20}, {&c.BoundBytes, 300}, {&c.Unsent, 4000}} {
		count.of.Store(count.n)
	}
	c.TxLen.Store(0)
	for _, flag := range []interface{ Store(bool) }{&c.RESP3, &c.NoEvict, &c.NoTouch} {
		flag.Store(true)
	}
	c.Unix = true
	c.Waits.Store(&store.TakeRequest{})
	l.SetTracking(c, Tracks)
	l.SetMonitor(c, true)
	c.Push([]byte("12345"), 100)
	want := "id=1 addr=127.0.0.1:4711 laddr=127.0.0.1:6379 fd=7 name=n age=5 idle=2 flags=OxbtUeT db=0 sub=0 psub=0 ssub=0 multi=0 qbuf=1 qbuf-free=0 argv-mem=0 multi-mem=20 " +
		"rbs=0 rbp=0 obl=0 oll=0 omem=4005 tot-mem=7398 events=r cmd=client|id user=default redir=0 resp=3 lib-name=lib lib-ver=1.2"
	if got := c.Line(bornNS + 5e9); got != want {
		t.Errorf("a busy one:\n got %s\nwant %s", got, want)
	}
	if got := c.Buffers(); got != 4021 {
		t.Errorf("%d bytes of buffers", got)
	}
	if c.LastNS.Store(bornNS + 9e9); c.Line(bornNS+5e9) == "" || c.AgeS(bornNS+1_999_999_999) != 1 {
		t.Error("age")
	}
}

// A unix socket's address is the path of the listener, and port 0.
func TestAddresses(t *testing.T) {
	var c Client
	c.From(&net.UnixAddr{Net: "unix"}, &net.UnixAddr{Name: "/run/celld.sock", Net: "unix"}, bornNS)
	if !c.Unix || c.Addr != "/run/celld.sock:0" || c.LocalAddr != c.Addr || c.MonitorAddr() != "unix:/run/celld.sock:0" || c.FD != -1 {
		t.Errorf("%s, %s, %s, %d", c.Addr, c.LocalAddr, c.MonitorAddr(), c.FD)
	}
	var other Client
	other.From(tcp, nil, bornNS)
	if other.Unix || other.MonitorAddr() != "127.0.0.1:4711" || other.LocalAddr != "" || other.LastNS.Load() != bornNS ||
		other.TxLen.Load() != -1 {
		t.Errorf("%+v", &other)
	}
}

func TestAdmit(t *testing.T) {
	var l List
	a, _ := open(t, &l)
	var b, c Client
	if !l.Admit(&b, 2) || l.Admit(&c, 2) || c.ID != 0 || b.ID != 2 {
		t.Errorf("ids %d and %d", b.ID, c.ID)
	}
	if l.Count() != 1 || l.Get(1) != a || l.Get(2) != nil { // b is not open
		t.Errorf("%d are open", l.Count())
	}
	if l.Forget(&b); !l.Admit(&c, 2) || c.ID != 3 {
		t.Errorf("id %d", c.ID)
	}
	l.Open(&c, nil, -1)
	if got := l.ByAge(); len(got) != 2 || got[0] != a || got[1] != &c {
		t.Errorf("%v", got)
	}
	if l.Forget(a); l.Count() != 1 || l.Get(1) != nil || l.Get(3) != &c {
		t.Error("the wrong one is gone")
	}
}

// Equal local addresses are one text.
func TestLocalAddressIsShared(t *testing.T) {
	var l List
	local := func(text string) *byte {
		c := &Client{LocalAddr: string([]byte(text))}
		l.Admit(c, 9)
		if c.LocalAddr != text {
			t.Fatalf("%q", c.LocalAddr)
		}
		return unsafe.StringData(c.LocalAddr)
	}
	if a, b, c := local("10.0.0.1:1"), local("10.0.0.1:1"), local("10.0.0.1:2"); a != b || a == c {
		t.Error("each has its own")
	}
}

func TestCounts(t *testing.T) {
	var l List
	var told []bool
	l.OnMonitors = func(some bool) { told = append(told, some) }
	a, _ := open(t, &l)
	b, _ := open(t, &l)
	for range 2 {
		l.SetWatching(a, 3)
		l.SetTracking(a, Tracks|OptsIn)
		l.SetMonitor(a, true)
	}
	l.SetWatching(b, 1)
	l.SetTracking(b, Tracks)
	l.SetMonitor(b, true)
	if l.Watching() != 2 || l.Tracking() != 2 || len(l.Monitors()) != 2 || a.Tracking() != Tracks|OptsIn || a.Redirection() != 0 {
		t.Errorf("%d watch, %d track, %d monitors", l.Watching(), l.Tracking(), len(l.Monitors()))
	}
	l.SetWatching(a, 0)
	l.SetTracking(a, 0)
	l.SetMonitor(a, false)
	if l.Watching() != 1 || l.Tracking() != 1 || !slices.Equal(l.Monitors(), []*Client{b}) || a.Redirection() != -1 {
		t.Errorf("%d watch, %d track", l.Watching(), l.Tracking())
	}
	l.Forget(b)
	if l.Forget(a); l.Watching() != 0 || l.Tracking() != 0 || len(l.Monitors()) != 0 {
		t.Errorf("%d watch, %d track, %d monitors", l.Watching(), l.Tracking(), len(l.Monitors()))
	}
	if want := []bool{true, true, true, false}; !slices.Equal(told, want) {
		t.Errorf("told %v", told)
	}
}

func TestKill(t *testing.T) {
	var l List
	a, fa := open(t, &l)
	_, fb := open(t, &l)
	all := func(*Client) bool { return true }
	if n, own := l.Kill(a, func(c *Client) bool { return c == a }); n != 1 || !own || fa.closes+fb.closes != 0 || a.Killed.Load() {
		t.Errorf("itself: %d, %v, %d closes", n, own, fa.closes+fb.closes)
	}
	if n, own := l.Kill(a, all); n != 2 || !own || fa.closes != 0 || fb.closes != 1 || !fb.now {
		t.Errorf("all: %d, %v", n, own)
	}
	if n, own := l.Kill(nil, func(*Client) bool { return false }); n != 0 || own {
		t.Errorf("none: %d, %v", n, own)
	}
	if n, own := l.Kill(nil, all); n != 2 || own || fa.closes != 1 || !a.Killed.Load() {
		t.Errorf("from elsewhere: %d, %v", n, own)
	}
}

func TestWhoHasAUser(t *testing.T) {
	var l List
	c, _ := open(t, &l)
	user, other := c.User.Load(), acl.NewUsers(acl.NewTable(nil, nil)).Default
	if !Of([]*acl.User{other, user})(c) || Of([]*acl.User{other})(c) || Of(nil)(c) || CertifiedAs(user)(c) {
		t.Error("by user")
	}
	c.Certified = user
	if !CertifiedAs(user)(c) || CertifiedAs(other)(c) {
		t.Error("by certificate")
	}
	if c.User.Store(other); CertifiedAs(user)(c) {
		t.Error("it has authenticated as another since")
	}
}

func TestIdle(t *testing.T) {
	var l List
	c, _ := open(t, &l)
	if c.Idle(bornNS+5, 5) || !c.Idle(bornNS+6, 5) {
		t.Error("idle by time")
	}
	if l.SetMonitor(c, true); c.Idle(bornNS+6, 5) {
		t.Error("a monitor is idle")
	}
}

type leaver struct {
	left *store.TakeRequest
	why  error
}

func (f *leaver) Leave(r *store.TakeRequest, why error) bool {
	f.left, f.why = r, why
	return true
}

func TestUnblock(t *testing.T) {
	var c Client
	var from leaver
	if c.Unblock(&from, store.ErrRefused) || from.why != nil {
		t.Error("it does not wait")
	}
	r := &store.TakeRequest{}
	if c.Waits.Store(r); !c.Unblock(&from, store.ErrRefused) || from.left != r || from.why != store.ErrRefused {
		t.Errorf("%+v", from)
	}
	if got := c.Bytes(); got != 1024+2048 {
		t.Errorf("who waits takes %d bytes", got)
	}
}

// Pushed bytes wait for the client, which is woken once for them, and is closed if it does not come.
func TestPush(t *testing.T) {
	var l List
	c, f := open(t, &l)
	if c.Push([]byte("early"), 9) || len(c.DrainPushed(nil)) != 0 || f.wakes != 0 {
		t.Error("it is no monitor")
	}
	l.SetMonitor(c, true)
	c.Push([]byte("ab"), 4)
	if over := c.Push([]byte("cd"), 4); over || f.wakes != 1 {
		t.Errorf("over %v, %d wakes", over, f.wakes)
	}
	if got := string(c.DrainPushed([]byte("x"))); got != "xabcd" || len(c.DrainPushed(nil)) != 0 {
		t.Errorf("%q", got)
	}
	if c.Push([]byte("ef"), 4); f.wakes != 2 {
		t.Errorf("%d wakes", f.wakes)
	}
	if over := c.Push([]byte("ghi"), 4); !over || f.closes != 1 || !f.now || f.wakes != 2 || len(c.DrainPushed(nil)) != 0 {
		t.Errorf("over %v, %d closes", over, f.closes)
	}
	c.Push([]byte("last"), 4)
	if got := string(l.SetMonitor(c, false)); got != "last" {
		t.Errorf("%q is left", got)
	}
	if len(l.SetMonitor(c, true)) != 0 || len(c.DrainPushed(nil)) != 0 {
		t.Error("it comes twice")
	}
}

func TestMonitorLine(t *testing.T) {
	args := [][]byte{[]byte("SET"), []byte("a\"\\\n\r\t\a\b \x00\x1f~\x7f\xff")}
	got := string(MonitorLine(1_790_000_000_012_345_678, "lua", slices.All(args)))
	if want := `+1790000000.012345 [0 lua] "SET" "a\"\\\n\r\t\a\b \x00\x1f~\x7f\xff"` + "\r\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := string(MonitorLine(0, "a", slices.All([][]byte(nil)))); got != "+0.000000 [0 a]\r\n" {
		t.Errorf("%q", got)
	}
}
