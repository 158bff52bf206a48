package session

import (
	"fmt"
	"strings"
	"testing"

	"celld/resp/command/keys"
	"celld/resp/script"
	"celld/resp/session/sessiontest"
)

// While a long list is made, others on the same event loop are served, and it comes in its order.
func TestListsAside(t *testing.T) {
	for _, call := range []string{"CL.STATS", "CL.STATS api", "CL.STATS RESET", "CL.POLICY LIST", "CL.RULE LIST"} {
		carrierTest{settings: []string{"io-threads", "1"}}.run(t, func(t *testing.T, srv *Service, addr string) {
			slow, other := sessiontest.Dial(t, addr), sessiontest.Dial(t, addr)
			slow.Ask("CL.POLICY SET api 1/1h\r\n", ":1\r\n")
			srv.listing.Lock() // as another list does
			slow.Send(call + "\r\nECHO behind\r\n")
			eventually(t, "it waits", func() bool {
				for _, c := range srv.Clients.All() {
					if strings.HasPrefix(strings.ToUpper(call), strings.ToUpper(strings.ReplaceAll(c.Command(), "|", " "))) {
						return true
					}
				}
				return false
			})
			for range 100 {
				other.Ask("PING\r\n", "+PONG\r\n")
			}
			srv.listing.Unlock()
			line, err := slow.ReadString('\n')
			for err == nil && line != "behind\r\n" {
				if strings.HasPrefix(line, "-") {
					t.Errorf("%s: %q", call, line)
				}
				line, err = slow.ReadString('\n')
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// A list is as long as the output limit allows, in a goroutine and in MULTI, and has all policies.
func TestListsOfManyPolicies(t *testing.T) {
	w := newWorld(t)
	p := w.connect()
	for i := range 1000 {
		p.do("CL.POLICY", "SET", fmt.Sprintf("policy-%03d", i), "1/1h")
	}
	p.send("CL.TAKE k @policy-500\r\nCL.TAKE k @policy-500\r\n")
	for command, want := range map[string]string{
		"CL.STATS":       "*2002\r\n$8\r\nliterals\r\n",
		"CL.POLICY LIST": "*2000\r\n$10\r\npolicy-000\r\n",
	} {
		got := p.do(strings.Fields(command)...)
		if !strings.HasPrefix(got, want) || strings.Count(got, "policy-") != 1000 {
			t.Errorf("%s: %.100q", command, got)
		}
		if inMulti := p.send("MULTI\r\n" + command + "\r\nEXEC\r\n"); inMulti != "+OK\r\n+QUEUED\r\n*1\r\n"+got {
			t.Errorf("%s in MULTI: %.100q", command, inMulti)
		}
	}
	got := p.send("CL.TAKE l 1/1h\r\nCL.STATS literals\r\nCL.STATS @policy-500\r\n")
	if strings.Count(got, "$7\r\nallowed\r\n:1\r\n$7\r\nlimited\r\n:0\r\n") != 1 ||
		strings.Count(got, "$7\r\nallowed\r\n:1\r\n$7\r\nlimited\r\n:1\r\n") != 1 {
		t.Errorf("%q", got)
	}
	p.want("CONFIG SET client-output-buffer-limit 131072", "+OK\r\n")
	if p.do("CL.STATS"); !p.tr.Closed {
		t.Error("it is over the output limit")
	}
}

// The list of clients is given up as soon as it is over the output limit, and with that its connection, also in MULTI.
func TestListOfManyClients(t *testing.T) {
	for _, send := range []string{"CLIENT LIST\r\n", "MULTI\r\nCLIENT LIST\r\nEXEC\r\n"} {
		w := newWorld(t)
		for range 500 {
			w.connect().do("CLIENT", "SETNAME", strings.Repeat("x", 512))
		}
		p := w.connect()
		if got := p.send(send); strings.Count(got, " name=xxx") != 500 {
			t.Errorf("%d clients", strings.Count(got, " name=xxx"))
		}
		p.want("CONFIG SET client-output-buffer-limit 131072", "+OK\r\n")
		closes := w.Stats.OutputLimitCloses.Load()
		if p.send(send); !p.tr.Closed || w.Stats.OutputLimitCloses.Load() != closes+1 {
			t.Errorf("%q: closed %v", send, p.tr.Closed)
		}
	}
}

// SCAN ends early among long keys, and KEYS in a transaction or a script does not go through too many bytes.
func TestManyBytesOfKeys(t *testing.T) {
	w := newWorld(t)
	p := w.connect()
	const n, each = 100, 60_000
	for i := range n {
		p.do("SET", fmt.Sprintf("%d:%s", i, strings.Repeat("a", each)), "1900000000000000000")
	}
	for _, pattern := range []string{"*", "*a*", "*[0-9]*:?*", "*" + strings.Repeat("?", 1000) + "a*"} {
		found, most := 0, 0
		for cursor, calls := "0", 0; ; calls++ {
			var next string
			got := p.do("SCAN", cursor, "MATCH", pattern, "COUNT", "10000")
			if _, err := fmt.Sscanf(got, "*2\r\n$%d\r\n%s\r\n", new(int), &next); err != nil {
				t.Fatalf("%.40q: %v", got, err)
			}
			keys := strings.Count(got, ":aaa")
			found, most, cursor = found+keys, max(most, keys), next
			if cursor == "0" {
				break
			}
			if calls > 10*n {
				t.Fatal("no end")
			}
		}
		if bound := 2<<20/each + 16; found != n || most > bound {
			t.Errorf("%.20q: %d keys, %d at once, want at most %d", pattern, found, most, bound)
		}
	}
	if got := p.do("KEYS", "*a"); strings.Count(got, ":aaa") != n {
		t.Errorf("KEYS: %d keys", strings.Count(got, ":aaa"))
	}
	inMulti := func(call, want string) {
		if got := p.send("MULTI\r\n" + call + "\r\nEXEC\r\n"); got != "+OK\r\n+QUEUED\r\n*1\r\n"+want {
			t.Errorf("%s: %.100q", call, got)
		}
	}
	inMulti("KEYS x*", "-"+keys.ErrKeysInside+"\r\n")
	if got := p.send(evalCall("return redis.call('KEYS', 'x*')")); !strings.Contains(got, "use SCAN") {
		t.Errorf("%q", got)
	}
	p.want("FLUSHALL", "+OK\r\n")
	p.want("SET k 5", "+OK\r\n")
	inMulti("KEYS *", "*1\r\n$1\r\nk\r\n")
}

// While a long script is compiled, others on the same event loop are served. Replies come in their order, and a script that is known
// waits for none.
func TestLongScriptsAside(t *testing.T) {
	for i, compiles := range []string{"EVAL", "SCRIPT LOAD"} {
		carrierTest{settings: []string{"io-threads", "1"}}.run(t, func(t *testing.T, srv *Service, addr string) {
			slow, other := sessiontest.Dial(t, addr), sessiontest.Dial(t, addr)
			text := "return redis.call('get', KEYS[1]) --" + strings.Repeat("x", offloadFrom)
			words, want := []string{"EVAL", text, "1", "n"}, "$-1\r\n"
			if i == 1 {
				words, want = []string{"SCRIPT", "LOAD", text}, "$40\r\n"+script.SHA1([]byte(text))+"\r\n"
			}
			srv.listing.Lock() // as a long list does
			slow.Send(sessiontest.Frame(words...) + "ECHO behind\r\n")
			eventually(t, "it waits", func() bool {
				for _, c := range srv.Clients.All() {
					if strings.EqualFold(c.Command(), strings.ReplaceAll(compiles, " ", "|")) {
						return true
					}
				}
				return false
			})
			for range 100 {
				other.Ask("PING\r\n", "+PONG\r\n")
			}
			srv.listing.Unlock()
			slow.Ask("", want+"$6\r\nbehind\r\n")
			srv.listing.Lock() // which a script that is known does not wait for
			slow.Ask(sessiontest.Frame(words...), want)
			srv.listing.Unlock()
		})
	}
}

// A script that a goroutine has compiled answers and counts as a short one: its commands' errors once, and those of the compiler.
func TestLongScriptsAnswerAsShortOnes(t *testing.T) {
	for _, text := range []string{
		"return redis.call('cl.give', 'a', 'b')", "return KEYS[1]", "redis.call('set', KEYS[1], 'x') return redis.call('nosuch')",
		"return )", "#!lua flags=x\nreturn 1",
	} {
		var told [2]string
		for i, more := range []string{"", "\n--" + strings.Repeat("x", offloadFrom)} {
			p := newWorld(t).connect()
			for _, command := range []string{"EVAL", "EVAL_RO"} {
				told[i] += strings.ReplaceAll(p.do(command, text+more, "1", "k"), script.SHA1([]byte(text+more)), "sha") + p.do("GET", "k")
			}
			for line := range strings.SplitSeq(p.do("INFO", "errorstats", "commandstats", "scripts"), "\n") {
				if name, _, _ := strings.Cut(line, ":"); strings.HasPrefix(line, "errorstat") {
					told[i] += line
				} else if at := strings.Index(line, "rejected_calls"); at >= 0 {
					told[i] += name + line[at:]
				}
			}
		}
		if told[0] != told[1] {
			t.Errorf("%s:\n%s\nwhere it is long:\n%s", text, told[0], told[1])
		}
	}
}
