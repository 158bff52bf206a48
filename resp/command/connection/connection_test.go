package connection

import (
	"fmt"
	"strings"
	"testing"

	"celld/internal/celldtest"
	"celld/resp/acl"
	"celld/resp/client"
	"celld/resp/command"
	"celld/resp/command/argument"
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
		"SELECT 0", "+OK\r\n", "SELECT 1", argument.ErrDBIndex, "SELECT x", argument.ErrNotInteger)
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
	for _, call := range []string{"QUIT", "RESET", "AUTH p", "HELLO", "CLIENT ID", "CLIENT INFO", "CLIENT KILL a", "CLIENT GETNAME",
		"CLIENT SETNAME a", "CLIENT SETINFO LIB-VER 1", "CLIENT NO-EVICT on",
		"CLIENT NO-TOUCH on", "CLIENT REPLY on", "CLIENT TRACKING on", "CLIENT CACHING yes", "CLIENT TRACKINGINFO", "CLIENT GETREDIR"} {
		w.wants(call, command.ErrNoConnection)
	}
	w.wants("PING", "+PONG\r\n", "CLIENT UNBLOCK 1", ":0\r\n", "CLIENT LIST TYPE pubsub", "$0\r\n\r\n")
}

func TestAuth(t *testing.T) {
	w := newWorld(t)
	w.wants("AUTH x", ErrNoPassword, "AUTH default x", "+OK\r\n", "AUTH a b c", argument.ErrSyntax)
	w.users.SetPassword("secret")
	if err := w.users.Set("app", []string{"on", ">word"}); err != nil {
		t.Fatal(err)
	}
	w.wants("AUTH secretx", ErrWrongPass, "AUTH app secret", ErrWrongPass, "AUTH secret", "+OK\r\n", "AUTH app word", "+OK\r\n")
	if got := w.Own.Seen.User.Load().Name(); got != "app" {
		t.Errorf("it is %s", got)
	}
}

func TestHello(t *testing.T) {
	w := newWorld(t)
	hello := func(header string, proto int) string {
		return header + bulk("server") + bulk("redis") + bulk("version") + bulk("7.0.0") + bulk("proto") + text(":%d\r\n", proto) +
			bulk("id") + ":1\r\n" +
			bulk("mode") + bulk("standalone") + bulk("role") + bulk("master") + bulk("modules") + "*1\r\n" +
			map[int]string{2: "*8", 3: "%4"}[proto] + "\r\n" + bulk("name") + bulk("redis-cell") + bulk("ver") + ":500\r\n" + bulk("path") +
			bulk("") + bulk("args") + "*0\r\n"
	}
	w.wants("HELLO", hello("*14\r\n", 2), "HELLO 3", hello("%7\r\n", 3), "HELLO", hello("%7\r\n", 3), "HELLO 2", hello("*14\r\n", 2))
	w.wants("HELLO x", errProtoNotInt, "HELLO 1", errNoProto, "HELLO 4", errNoProto, "HELLO 3 SETNAME", text(ErrHelloOption, "SETNAME"),
		"HELLO 3 AUTH default", text(ErrHelloOption, "AUTH"), "HELLO 3 no", text(ErrHelloOption, "no"),
		"HELLO 3 SETNAME \x01", ErrClientName)
	w.users.SetPassword("secret")
	w.Own.Locked = true
	w.wants("HELLO 3 SETNAME n", ErrHelloNoAuth, "HELLO 3 AUTH default x", ErrWrongPass, "CLIENT GETNAME", "$-1\r\n",
		"HELLO 2 setname n auth default secret", hello("*14\r\n", 2), "CLIENT GETNAME", bulk("n"), "HELLO 2", hello("*14\r\n", 2),
		"CLIENT GETNAME", bulk("n"))
	w.Do("HELLO", "2", "SETNAME", "")
	w.wants("CLIENT GETNAME", "$-1\r\n")
}

func TestNames(t *testing.T) {
	w := newWorld(t)
	name := strings.Repeat("!", 511) + "~"
	w.wants("CLIENT SETNAME "+name, "+OK\r\n", "CLIENT SETNAME "+name+"y", text(errClientNameLong, 512), "CLIENT GETNAME", bulk(name),
		"CLIENT SETNAME a\x7f", ErrClientName, "CLIENT SETINFO lib-name "+name, "+OK\r\n", "CLIENT SETINFO LIB-VER 1.2", "+OK\r\n",
		"CLIENT SETINFO LIB-VER 1\x01", text(errClientLibInfo, "lib-ver"),
		"CLIENT SETINFO Lib-Name "+name+"y", text(errClientLibLong, "lib-name", 512), "CLIENT SETINFO x y", text(errClientOption, "x"))
	w.Do("CLIENT", "SETNAME", "a b")
	if got := w.Own.Seen.Names(); got != (client.Names{Name: name, LibName: name, LibVersion: "1.2"}) {
		t.Errorf("%+v", got)
	}
	w.wants("CLIENT ID", ":1\r\n", "CLIENT INFO", bulk(w.Own.Seen.Line(w.NowNS)+"\n"))
}

func TestModes(t *testing.T) {
	w := newWorld(t)
	own := w.Own
	w.wants("CLIENT NO-EVICT on", "+OK\r\n", "CLIENT NO-TOUCH ON", "+OK\r\n", "CLIENT NO-TOUCH x", argument.ErrSyntax)
	if !own.Seen.NoEvict.Load() || !own.Seen.NoTouch.Load() {
		t.Error("they are off")
	}
	w.wants("CLIENT NO-EVICT off", "+OK\r\n", "CLIENT NO-TOUCH Off", "+OK\r\n", "CLIENT REPLY off", "", "CLIENT REPLY skip", "",
		"CLIENT REPLY x", argument.ErrSyntax)
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
	w.wants("CLIENT LIST", lines(first, second), "CLIENT LIST ID 2 9", lines(second), "CLIENT LIST type Normal", lines(first, second),
		"CLIENT LIST TYPE slave", "$0\r\n\r\n", "CLIENT LIST TYPE master", "$0\r\n\r\n", "CLIENT LIST TYPE x", text(errClientType, "x"),
		"CLIENT LIST ID x", errClientID, "CLIENT LIST ID", argument.ErrSyntax, "CLIENT LIST x y", argument.ErrSyntax,
		"CLIENT LIST TYPE normal ID", argument.ErrSyntax)
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
	w.wants("CLIENT KILL ID 1 ID 2", ":0\r\n", "CLIENT KILL ID 2", ":0\r\n", "CLIENT KILL x", ErrNoSuchClient,
		"CLIENT KILL TYPE pubsub", ":0\r\n", "CLIENT KILL ADDR x SKIPME no", ":0\r\n", "CLIENT KILL LADDR x SKIPME no", ":0\r\n",
		"CLIENT KILL USER default LADDR x", ":0\r\n", "CLIENT KILL MAXAGE 1", ":0\r\n",
		"CLIENT KILL ID 0", errClientIDRange, "CLIENT KILL ID x", errClientIDRange, "CLIENT KILL MAXAGE 0", argument.ErrNotInteger,
		"CLIENT KILL MAXAGE x", argument.ErrNotInteger, "CLIENT KILL TYPE x", text(errClientType, "x"),
		"CLIENT KILL USER x", text(errClientUser, "x"), "CLIENT KILL SKIPME x", argument.ErrSyntax, "CLIENT KILL x y", argument.ErrSyntax,
		"CLIENT KILL ID x ADDR", argument.ErrSyntax)
	for _, empty := range [][]string{{""}, {"ADDR", ""}, {"LADDR", "", "SKIPME", "no"}} { // no client has an empty text
		if got := w.Do(append([]string{"CLIENT", "KILL"}, empty...)...); got != ":0\r\n" && got != "-"+ErrNoSuchClient+"\r\n" {
			t.Errorf("%q: %q", empty, got)
		}
	}
	if err := w.users.Set("app", []string{"on"}); err != nil || other.Killed || own.Closed {
		t.Fatal(err, other.Killed, own.Closed)
	}
	w.wants("CLIENT KILL USER app SKIPME no", ":0\r\n")
	w.NowNS += 2e9
	w.wants("CLIENT KILL MAXAGE 3 SKIPME no", ":0\r\n")
	for _, call := range []string{
		"ID 1", "ADDR 127.0.0.1:4711", "LADDR 127.0.0.1:6379", "type NORMAL", "USER default", "MAXAGE 2", "SKIPME no SKIPME yes",
	} {
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
	w.wants("CLIENT UNBLOCK 1", ":0\r\n", "CLIENT UNBLOCK 9", ":0\r\n", "CLIENT UNBLOCK x", argument.ErrNotInteger,
		"CLIENT UNBLOCK 1 x", errUnblockReason, "CLIENT UNBLOCK 1 ERROR x", text(errUnblockArgs, "UNBLOCK"))
	r := &store.TakeRequest{}
	w.Own.Seen.Waits.Store(r)
	for call, why := range map[string]error{
		"CLIENT UNBLOCK 1":         store.ErrRefused,
		"CLIENT UNBLOCK 1 TIMEOUT": store.ErrRefused,
		"CLIENT UNBLOCK 1 error":   client.ErrUnblocked,
	} {
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
		return "*6\r\n" + bulk("flags") + text("*%d\r\n", len(flags)) + list + bulk("redirect") + text(":%d\r\n", redirect) +
			bulk("prefixes") + "*0\r\n"
	}
	w.wants("CLIENT TRACKINGINFO", shown(-1, "off"), "CLIENT GETREDIR", ":-1\r\n", "CLIENT CACHING yes", errCachingOff,
		"CLIENT TRACKING on", "+OK\r\n", "CLIENT TRACKINGINFO", shown(0, "on"), "CLIENT CACHING yes", ErrCachingYes,
		"CLIENT CACHING no", errCachingNo, "CLIENT CACHING x", argument.ErrSyntax, "CLIENT TRACKING ON optin", "+OK\r\n",
		"CLIENT TRACKINGINFO", shown(0, "on", "optin"), "CLIENT GETREDIR", ":0\r\n", "CLIENT CACHING YES", "+OK\r\n",
		"CLIENT TRACKINGINFO", shown(0, "on", "optin", "caching-yes"), "CLIENT TRACKING ON", "+OK\r\n")
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
	w.wants("CLIENT TRACKING ON BCAST", errTrackingNoBcast, "CLIENT TRACKING ON BCAST PREFIX a PREFIX b", errTrackingNoBcast,
		"CLIENT TRACKING ON OPTOUT", argument.ErrSyntax, "CLIENT TRACKING ON NOLOOP", argument.ErrSyntax,
		"CLIENT TRACKING ON PREFIX", argument.ErrSyntax, "CLIENT TRACKING ON PREFIX a", errTrackingPrefix,
		"CLIENT TRACKING ON BCAST OPTIN", errTrackingBcastOpt, "CLIENT TRACKING ON REDIRECT 1", errTrackingNoRedirect,
		"CLIENT TRACKING ON REDIRECT 1 REDIRECT 1", errTrackingRedirects, "CLIENT TRACKING ON REDIRECT x", argument.ErrNotInteger,
		"CLIENT TRACKING ON REDIRECT 9", errTrackingNoClient, "CLIENT TRACKING OFF x", argument.ErrSyntax,
		"CLIENT TRACKING x", argument.ErrSyntax, "CLIENT TRACKING x REDIRECT 9", errTrackingNoClient,
		"CLIENT TRACKING OFF BCAST", "+OK\r\n", "CLIENT GETREDIR", ":-1\r\n", "CLIENT TRACKING ON OPTIN", "+OK\r\n",
		"CLIENT TRACKING ON BCAST", errTrackingBcastSwitch, "CLIENT GETREDIR", ":0\r\n")
	if w.Own.Seen.Tracking() != client.Tracks|client.OptsIn {
		t.Error("it tracks in another way")
	}
}
