package connection

import (
	"fmt"
	"strings"
	"testing"

	"celld/internal/celldtest"
	"celld/resp/acl"
	"celld/resp/client"
	"celld/resp/command"
	"celld/resp/command/calltest"
	"celld/store"
	"celld/store/memory"
)

var (
	text = fmt.Sprintf
	bulk = celldtest.BulkOf
)

// world is a host with users and clients.
type world struct {
	*calltest.Host
	t       *testing.T
	users   *acl.Users
	clients client.List
	left    *store.TakeRequest
	why     error
}

func (w *world) Leave(r *store.TakeRequest, why error) bool {
	w.left, w.why = r, why
	return true
}

func newWorld(t *testing.T) *world {
	w := &world{t: t}
	w.Host = calltest.New(memory.Options{}, Rows(func() Server { return Server{w.users, &w.clients, w, "7.0.0"} })...)
	w.users = acl.NewUsers(acl.NewTable(nil, nil))
	w.connect()
	return w
}

func (w *world) connect() *calltest.Own { return w.Connect(&w.clients, w.users) }

func (w *world) wants(pairs ...string) { w.t.Helper(); w.Wants(w.t, pairs...) }

func TestShort(t *testing.T) {
	w := newWorld(t)
	w.wants("PING", "+PONG\r\n", "PING a", "$1\r\na\r\n", "PING a b", text(command.ErrArity, "ping"), "ECHO b", "$1\r\nb\r\n",
		"SELECT 0", "+OK\r\n", "SELECT 1", command.ErrDBIndex, "SELECT x", command.ErrNotInteger)
	if w.wants("QUIT", "+OK\r\n"); !w.Own.Closed {
		t.Error("QUIT does not close")
	}
	if w.wants("RESET", "+RESET\r\n"); w.Own.Resets != 1 {
		t.Error("RESET does not reset")
	}
}

// A call from within the process has no connection to ask about.
func TestWithoutConnection(t *testing.T) {
	w := newWorld(t)
	w.Own = nil
	for _, call := range []string{"QUIT", "RESET", "AUTH p", "HELLO", "CLIENT ID", "CLIENT INFO", "CLIENT KILL a", "CLIENT GETNAME", "CLIENT SETNAME a", "CLIENT SETINFO LIB-VER 1", "CLIENT NO-EVICT on",
		"CLIENT NO-TOUCH on", "CLIENT REPLY on", "CLIENT TRACKING on", "CLIENT CACHING yes", "CLIENT TRACKINGINFO", "CLIENT GETREDIR"} {
		w.wants(call, command.ErrNoConnection)
	}
	w.wants("PING", "+PONG\r\n", "CLIENT UNBLOCK 1", ":0\r\n", "CLIENT LIST TYPE pubsub", "$0\r\n\r\n")
}

func TestAuth(t *testing.T) {
	w := newWorld(t)
	w.wants("AUTH x", command.ErrNoPassword, "AUTH default x", "+OK\r\n", "AUTH a b c", command.ErrSyntax)
	w.users.SetPassword("secret")
	if err := w.users.Set("app", []string{"on", ">word"}); err != nil {
		t.Fatal(err)
	}
	w.wants("AUTH secretx", command.ErrWrongPass, "AUTH app secret", command.ErrWrongPass, "AUTH secret", "+OK\r\n", "AUTH app word", "+OK\r\n")
	if got := w.Own.Seen.User.Load().Name(); got != "app" {
		t.Errorf("it is %s", got)
	}
}

func TestHello(t *testing.T) {
	w := newWorld(t)
	hello := func(header string, proto int) string {
		return header + bulk("server") + bulk("redis") + bulk("version") + bulk("7.0.0") + bulk("proto") + text(":%d\r\n", proto) + bulk("id") + ":1\r\n" +
			bulk("mode") + bulk("standalone") + bulk("role") + bulk("master") + bulk("modules") + "*1\r\n" + map[int]string{2: "*8", 3: "%4"}[proto] + "\r\n" + bulk("name") + bulk("redis-cell") + bulk("ver") + ":500\r\n" + bulk("path") + bulk("") + bulk("args") + "*0\r\n"
	}
	w.wants("HELLO", hello("*14\r\n", 2), "HELLO 3", hello("%7\r\n", 3), "HELLO", hello("%7\r\n", 3), "HELLO 2", hello("*14\r\n", 2))
	w.wants("HELLO x", command.ErrProtoNotInt, "HELLO 1", command.ErrNoProto, "HELLO 4", command.ErrNoProto, "HELLO 3 SETNAME", text(command.ErrHelloOption, "SETNAME"),
		"HELLO 3 AUTH default", text(command.ErrHelloOption, "AUTH"), "HELLO 3 no", text(command.ErrHelloOption, "no"), "HELLO 3 SETNAME \x01", command.ErrClientName)
	w.users.SetPassword("secret")
	w.Own.Locked = true
	w.wants("HELLO 3 SETNAME n", command.ErrHelloNoAuth, "HELLO 3 AUTH default x", command.ErrWrongPass, "CLIENT GETNAME", "$-1\r\n",
		"HELLO 2 setname n auth default secret", hello("*14\r\n", 2), "CLIENT GETNAME", bulk("n"), "HELLO 2", hello("*14\r\n", 2), "CLIENT GETNAME", bulk("n"))
	w.Do("HELLO", "2", "SETNAME", "")
	w.wants("CLIENT GETNAME", "$-1\r\n")
}

func TestNames(t *testing.T) {
	w := newWorld(t)
	name := strings.Repeat("!", 511) + "~"
	w.wants("CLIENT SETNAME "+name, "+OK\r\n", "CLIENT SETNAME "+name+"y", text(command.ErrClientNameLong, 512), "CLIENT GETNAME", bulk(name), "CLIENT SETNAME a\x7f", command.ErrClientName,
		"CLIENT SETINFO lib-name "+name, "+OK\r\n", "CLIENT SETINFO LIB-VER 1.2", "+OK\r\n", "CLIENT SETINFO LIB-VER 1\x01", text(command.ErrClientLibInfo, "lib-ver"),
		"CLIENT SETINFO Lib-Name "+name+"y", text(command.ErrClientLibLong, "lib-name", 512), "CLIENT SETINFO x y", text(command.ErrClientOption, "x"))
	w.Do("CLIENT", "SETNAME", "a b")
	if got := w.Own.Seen.Names(); got != (client.Names{Name: name, LibName: name, LibVersion: "1.2"}) {
		t.Errorf("%+v", got)
	}
	w.wants("CLIENT ID", ":1\r\n", "CLIENT INFO", bulk(w.Own.Seen.Line(w.NowNS)+"\n"))
}

func TestModes(t *testing.T) {
	w := newWorld(t)
	own := w.Own
	w.wants("CLIENT NO-EVICT on", "+OK\r\n", "CLIENT NO-TOUCH ON", "+OK\r\n", "CLIENT NO-TOUCH x", command.ErrSyntax)
	if !own.Seen.NoEvict.Load() || !own.Seen.NoTouch.Load() {
		t.Error("they are off")
	}
	w.wants("CLIENT NO-EVICT off", "+OK\r\n", "CLIENT NO-TOUCH Off", "+OK\r\n", "CLIENT REPLY off", "", "CLIENT REPLY skip", "", "CLIENT REPLY x", command.ErrSyntax)
	if own.Seen.NoEvict.Load() || own.Seen.NoTouch.Load() || !own.Silent || own.Skips != 1 {
		t.Errorf("%+v", own)
	}
	if w.wants("CLIENT REPLY on", "+OK\r\n"); own.Silent {
		t.Error("it gets no replies")
	}
}

func TestList(t *testing.T) {
	w := newWorld(t)
	first := w.Own
	second := w.connect()
	lines := func(all ...*calltest.Own) string {
		list := ""
		for _, o := range all {
			list += o.Seen.Line(w.NowNS) + "\n"
		}
		return bulk(list)
	}
	w.wants("CLIENT LIST", lines(first, second), "CLIENT LIST ID 2 9", lines(second), "CLIENT LIST type Normal", lines(first, second), "CLIENT LIST TYPE slave", "$0\r\n\r\n", "CLIENT LIST TYPE master", "$0\r\n\r\n",
		"CLIENT LIST TYPE x", text(command.ErrClientType, "x"), "CLIENT LIST ID x", command.ErrClientID, "CLIENT LIST ID", command.ErrSyntax, "CLIENT LIST x y", command.ErrSyntax, "CLIENT LIST TYPE normal ID", command.ErrSyntax)
	for range 498 {
		w.connect()
	}
	if got := w.Do("CLIENT", "LIST"); strings.Count(got, "\n") != 500+2 {
		t.Errorf("%d lines", strings.Count(got, "\n"))
	}
	if w.Most = 1000; w.Do("CLIENT", "LIST") != "" || w.Do("CLIENT", "LIST", "ID", "1") == "" {
		t.Error("the list is over the output limit")
	}
}

func TestKill(t *testing.T) {
	w := newWorld(t)
	other := w.Own
	own := w.connect()
	w.wants("CLIENT KILL ID 1 ID 2", ":0\r\n", "CLIENT KILL ID 2", ":0\r\n", "CLIENT KILL x", command.ErrNoSuchClient, "CLIENT KILL TYPE pubsub", ":0\r\n", "CLIENT KILL ADDR x SKIPME no", ":0\r\n",
		"CLIENT KILL LADDR x SKIPME no", ":0\r\n", "CLIENT KILL USER default LADDR x", ":0\r\n", "CLIENT KILL MAXAGE 1", ":0\r\n",
		"CLIENT KILL ID 0", command.ErrClientIDRange, "CLIENT KILL ID x", command.ErrClientIDRange, "CLIENT KILL MAXAGE 0", command.ErrNotInteger, "CLIENT KILL MAXAGE x", command.ErrNotInteger,
		"CLIENT KILL TYPE x", text(command.ErrClientType, "x"), "CLIENT KILL USER x", text(command.ErrClientUser, "x"), "CLIENT KILL SKIPME x", command.ErrSyntax, "CLIENT KILL x y", command.ErrSyntax,
		"CLIENT KILL ID x ADDR", command.ErrSyntax)
	for _, empty := range [][]string{{""}, {"ADDR", ""}, {"LADDR", "", "SKIPME", "no"}} { // no client has an empty text
		if got := w.Do(append([]string{"CLIENT", "KILL"}, empty...)...); got != ":0\r\n" && got != "-"+command.ErrNoSuchClient+"\r\n" {
			t.Errorf("%q: %q", empty, got)
		}
	}
	if err := w.users.Set("app", []string{"on"}); err != nil || other.Killed || own.Closed {
		t.Fatal(err, other.Killed, own.Closed)
	}
	w.wants("CLIENT KILL USER app SKIPME no", ":0\r\n")
	w.NowNS += 2e9
	w.wants("CLIENT KILL MAXAGE 3 SKIPME no", ":0\r\n")
	for _, call := range []string{"ID 1", "ADDR 127.0.0.1:4711", "LADDR 127.0.0.1:6379", "type NORMAL", "USER default", "MAXAGE 2", "SKIPME no SKIPME yes"} {
		other.Killed = false
		if w.wants("CLIENT KILL "+call, ":1\r\n"); !other.Killed || own.Closed {
			t.Errorf("%s: the other is killed: %v, its own closed: %v", call, other.Killed, own.Closed)
		}
	}
	if w.wants("CLIENT KILL SKIPME no", ":2\r\n"); !own.Closed {
		t.Error("SKIPME no")
	}
	own.Closed = false
	if w.wants("CLIENT KILL 127.0.0.1:4711", "+OK\r\n"); !own.Closed || own.Killed {
		t.Error("the old form kills its own, too, after the reply")
	}
}

func TestUnblock(t *testing.T) {
	w := newWorld(t)
	w.wants("CLIENT UNBLOCK 1", ":0\r\n", "CLIENT UNBLOCK 9", ":0\r\n", "CLIENT UNBLOCK x", command.ErrNotInteger, "CLIENT UNBLOCK 1 x", command.ErrUnblockReason, "CLIENT UNBLOCK 1 ERROR x", text(command.ErrUnblockArgs, "UNBLOCK"))
	r := &store.TakeRequest{}
	w.Own.Seen.Waits.Store(r)
	for call, why := range map[string]error{"CLIENT UNBLOCK 1": store.ErrRefused, "CLIENT UNBLOCK 1 TIMEOUT": store.ErrRefused, "CLIENT UNBLOCK 1 error": store.ErrUnblocked} {
		if w.wants(call, ":1\r\n"); w.left != r || w.why != why {
			t.Errorf("%s: %v", call, w.why)
		}
	}
}

func TestTracking(t *testing.T) {
	w := newWorld(t)
	shown := func(redirect int, flags ...string) string {
		list := ""
		for _, flag := range flags {
			list += bulk(flag)
		}
		return "*6\r\n" + bulk("flags") + text("*%d\r\n", len(flags)) + list + bulk("redirect") + text(":%d\r\n", redirect) + bulk("prefixes") + "*0\r\n"
	}
	w.wants("CLIENT TRACKINGINFO", shown(-1, "off"), "CLIENT GETREDIR", ":-1\r\n", "CLIENT CACHING yes", command.ErrCachingOff,
		"CLIENT TRACKING on", "+OK\r\n", "CLIENT TRACKINGINFO", shown(0, "on"), "CLIENT CACHING yes", command.ErrCachingYes, "CLIENT CACHING no", command.ErrCachingNo, "CLIENT CACHING x", command.ErrSyntax,
		"CLIENT TRACKING ON optin", "+OK\r\n", "CLIENT TRACKINGINFO", shown(0, "on", "optin"), "CLIENT GETREDIR", ":0\r\n", "CLIENT CACHING YES", "+OK\r\n", "CLIENT TRACKINGINFO", shown(0, "on", "optin", "caching-yes"),
		"CLIENT TRACKING ON", "+OK\r\n")
	if !w.Own.Cached || w.clients.Tracking() != 1 {
		t.Error("CACHING ends with tracking only")
	}
	if w.wants("CLIENT TRACKING OFF", "+OK\r\n"); w.Own.Cached || w.clients.Tracking() != 0 {
		t.Error("tracking goes on")
	}
}

// BCAST and REDIRECT cannot be kept, and OPTOUT and NOLOOP are not there, so they are refused, and the connection tracks as before.
func TestTrackingRefused(t *testing.T) {
	w := newWorld(t)
	w.wants("CLIENT TRACKING ON BCAST", command.ErrTrackingNoBcast, "CLIENT TRACKING ON BCAST PREFIX a PREFIX b", command.ErrTrackingNoBcast, "CLIENT TRACKING ON OPTOUT", command.ErrSyntax,
		"CLIENT TRACKING ON NOLOOP", command.ErrSyntax, "CLIENT TRACKING ON PREFIX", command.ErrSyntax, "CLIENT TRACKING ON PREFIX a", command.ErrTrackingPrefix, "CLIENT TRACKING ON BCAST OPTIN", command.ErrTrackingBcastOpt,
		"CLIENT TRACKING ON REDIRECT 1", command.ErrTrackingNoRedirect, "CLIENT TRACKING ON REDIRECT 1 REDIRECT 1", command.ErrTrackingRedirects, "CLIENT TRACKING ON REDIRECT x", command.ErrNotInteger,
		"CLIENT TRACKING ON REDIRECT 9", command.ErrTrackingNoClient, "CLIENT TRACKING OFF x", command.ErrSyntax, "CLIENT TRACKING x", command.ErrSyntax, "CLIENT TRACKING x REDIRECT 9", command.ErrTrackingNoClient,
		"CLIENT TRACKING OFF BCAST", "+OK\r\n", "CLIENT GETREDIR", ":-1\r\n", "CLIENT TRACKING ON OPTIN", "+OK\r\n", "CLIENT TRACKING ON BCAST", command.ErrTrackingBcastSwitch, "CLIENT GETREDIR", ":0\r\n")
	if w.Own.Seen.Tracking() != client.Tracks|client.OptsIn {
		t.Error("it tracks in another way")
	}
}
