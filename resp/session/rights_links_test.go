package session

import (
	"fmt"
	"strings"
	"testing"

	"celld/resp/door"
	"celld/resp/session/sessiontest"
)

// leaseText is a field of algo=conc with one lease, which may lead to b1.
func leaseText(id int64, leads bool) (words []string) {
	end := sessiontest.StartNS + int64(50e9)
	text := fmt.Sprintf("limit=%s leases=%d:%d:1:n%s", leaseHash, id, end, "2d711642b726b04401627ca9fbac32f5") // x
	if leads {
		text += fmt.Sprintf(",%d:%d:0:k03%x%026x", id, end, "b1", 0)
	}
	return []string{shapeOf(leaseHash), text}
}

// A lease with BIND ends with its connection by the rights that its user had when it was taken: whatever it leads to since.
func TestBoundLeasesEndByTheRightsOfTheirUser(t *testing.T) {
	w := newWorld(t)
	admin := w.connect()
	admin.want("ACL SETUSER app on nopass ~a* +@all", "+OK\r\n")
	c := w.connect()
	c.want("AUTH app x", "+OK\r\n")
	const id = sessiontest.StartNS/1000 - 5
	if got := c.do(append([]string{"HSET", "a1"}, leaseText(id, false)...)...); got != ":1\r\n" {
		t.Fatal(got)
	}
	if got := c.do("CL.TAKE", "a1", leaseHash, "BIND", "ID", "x"); !strings.HasSuffix(got, fmt.Sprintf(":%d\r\n", int64(id))) {
		t.Fatal(got)
	}
	admin.do(append([]string{"HSET", "b1"}, leaseText(id, false)...)...)
	admin.do(append([]string{"HSET", "a1"}, leaseText(id, true)...)...)
	before := admin.do("HGETALL", "b1")
	if c.Closed(); admin.do("HGETALL", "b1") != before {
		t.Errorf("it was %q", before)
	}

	both := w.connect()
	admin.want("ACL SETUSER both on nopass ~d* ~e* +@all", "+OK\r\n")
	both.want("AUTH both x", "+OK\r\n")
	both.do("CL.MTAKE", "2", "d", leaseHash, "e", leaseHash, "BIND")
	admin.want("ACL SETUSER both resetkeys -@all", "+OK\r\n")
	admin.want("EXISTS d e", ":2\r\n")
	both.do("RESET") // another user from now on
	admin.want("EXISTS d e", ":0\r\n")
}

// What a call was granted whose connection has gone is given back by its user's rights.
func TestGivenBackByTheRightsOfTheirUser(t *testing.T) {
	for may, left := range map[bool]string{false: ":2\r\n", true: ":0\r\n"} {
		w := newWorld(t)
		admin := w.connect()
		admin.do("CL.MTAKE", "2", "a1", leaseHash, "b1", leaseHash)
		p := w.connect()
		p.do("CL.TAKE", "busy", "1/1s")
		p.do("CL.TAKE", "busy", "1/1s", "WAIT", "5000")
		b := p.waits.(*batch)
		b.srv, b.may = w.Service, func([]byte, bool, bool) bool { return may }
		r := b.Take()
		r.Calls[0].Key, r.Terms.Lease, r.Taken.Limited = []byte("a1"), sessiontest.StartNS/1000, false
		b.giveBack()
		admin.want("EXISTS a1 b1", left)
	}
}

// A key that a lease leads to is refused and logged as one that the command names, wherever it comes from.
func TestRefusalsOfLinkedKeys(t *testing.T) {
	const noKey = "-" + door.ErrNoPermKey + "\r\n"
	for name, w := range map[string]*world{"in memory": newWorld(t), "on redis": newRedisWorld(t, "p:").world} {
		admin, c := w.connect(), w.connect()
		admin.sayTo("ACL", "SETUSER", "app", "on", "nopass", "~a*", "+@all")
		c.sayTo("AUTH", "app", "x")
		said := strings.Split(strings.TrimSpace(admin.sayTo("CL.MTAKE", "2", "a1", "9/1h", "b1", "9/1h", "LEASE", "60000", "ID", "n")),
			"\r\n")
		id := strings.TrimPrefix(said[7], ":")
		for words, want := range map[string]string{
			"CL.RELEASE a1 " + id: noKey, "CL.SETTLE a1 " + id + " 5": noKey, "CL.RENEW a1 " + id + " 90000": noKey,
			"RENAME a1 a2": noKey, "RENAMENX a1 a2": noKey, "HGETALL a1": noKey, "HSCAN a1 0": noKey, "HLEN a1": ":2\r\n",
			"CL.TAKE a1 9/1h LEASE 60000 ID n":           noKey,
			"CL.TAKE a1 9/1h WAIT 1000 LEASE 60000 ID n": noKey,
			"EVAL return{redis.pcall(unpack(ARGV)).err} 1 a1 CL.RELEASE a1 " + id: fmt.Sprintf("*1\r\n$%d\r\n%s\r\n",
				len(errScriptNoKey), errScriptNoKey),
		} {
			admin.sayTo("ACL", "LOG", "RESET")
			if got := c.sayTo(strings.Fields(words)...); got != want {
				t.Errorf("%s: %s: %q", name, words, got)
			}
			entry := admin.sayTo("ACL", "LOG")
			context := "toplevel"
			if strings.HasPrefix(words, "EVAL") {
				context = "lua"
			}
			if refused := want != ":2\r\n"; refused != strings.Contains(entry,
				"context\r\n$"+fmt.Sprint(len(context))+"\r\n"+context+"\r\n$6\r\nobject\r\n$2\r\nb1\r\n") ||
				refused != strings.HasPrefix(entry, "*1\r\n") {
				t.Errorf("%s: %s is logged as %q", name, words, entry)
			}
		}
		c.sayTo("MULTI")
		c.sayTo("CL.RELEASE", "a1", id)
		c.sayTo("HGET", "a1", shapeOf("9/1h"))
		if got := c.sayTo("EXEC"); !strings.HasPrefix(got, "*2\r\n"+noKey+"$") {
			t.Errorf("%s: EXEC %q", name, got)
		}
		if entry := admin.sayTo("ACL", "LOG"); !strings.Contains(entry, "$5\r\nmulti\r\n$6\r\nobject\r\n$2\r\nb1\r\n") {
			t.Errorf("%s: EXEC is logged as %q", name, entry)
		}
		c.sayTo("MULTI") // by the rights at EXEC
		c.sayTo("CL.RELEASE", "a1", id)
		admin.sayTo("ACL", "SETUSER", "app", "~b*")
		if got := c.sayTo("EXEC"); got != "*1\r\n:1\r\n" {
			t.Errorf("%s: with the right: %q", name, got)
		}
		if got := admin.sayTo("INFO", "stats"); !strings.Contains(got, "acl_access_denied_key:11\r\n") {
			t.Errorf("%s: %s", name, got)
		}
	}
}
