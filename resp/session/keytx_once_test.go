package session

import (
	"fmt"
	"strings"
	"testing"

	"celld/resp/acl"
)

// A transaction that runs again has changed users and settings once.
func TestConflictsRepeatNoOperation(t *testing.T) {
	w, e := engineWorld(t, false)
	p := w.connect()
	p.want("ACL SETUSER app on >old +@all ~*", "+OK\r\n")
	p.want("ACL SETUSER gone", "+OK\r\n")
	e.Later = true
	p.do("MULTI")
	p.do("SET", "k", soon, "GET")
	p.do("ACL", "SETUSER", "app", "<old", ">new")
	p.do("ACL", "DELUSER", "gone")
	p.do("ACL", "SETUSER", "default", "-acl|deluser")
	p.do("ACL", "DELUSER", "app")
	p.do("EXEC")
	for i := range 3 { // each time there is another value under k
		e.Answer()
		p.Serve(nil)
		setBehind(e, "k", fmt.Sprint(1_790_000_700_000_000_000+i))
	}
	got := answerAll(e, p)
	want := "*5\r\n$19\r\n1790000700000000002\r\n+OK\r\n:1\r\n+OK\r\n-" + fmt.Sprintf(errNoPermExec, lostRights[acl.DeniedCommand]) + "\r\n"
	if got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if n := strings.Count(p.do("INFO", "commandstats"), "cmdstat_acl|deluser:calls=1,"); n != 1 {
		t.Error("the count of ACL DELUSER")
	}
}

// A transaction that ends its own connection is stored before it is answered, and then the connection ends.
func TestATransactionThatEndsItsSessionIsStored(t *testing.T) {
	w, e := engineWorld(t, false)
	e.Later = true
	p := w.connect()
	p.do("MULTI")
	p.do("SET", "k", soon)
	p.do("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "no")
	p.do("EXEC")
	if got := answerAll(e, p); got != "*2\r\n+OK\r\n:1\r\n" || !p.tr.Closed {
		t.Errorf("%q, closed: %v", got, p.tr.Closed)
	}
	other := w.connect()
	other.do("GET", "k")
	if got := answerAll(e, other); got != "$19\r\n"+soon+"\r\n" {
		t.Errorf("then GET answers %q", got)
	}
}
