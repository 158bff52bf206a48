package take

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// step is what Play takes.
type step = harness.Step

// TestRedissonIsAPolicy does what a Redisson client does with a RateLimiter.
func TestRedissonIsAPolicy(t *testing.T) {
	t.Parallel()
	c := harness.Dial(t, harness.Start(t).Addr)
	c.Play(
		step{"CL.TAKE k @mail", "-NOPOLICY no such policy 'mail'"},       // RateLimiter is not initialized
		step{"CL.POLICY SET mail 5/1h,algo=log NX", ":1"},                // trySetRate
		step{"CL.POLICY SET mail 7/1h,algo=log NX", ":0"},                // and again: it stays as it is
		step{"CL.POLICY GET mail", "$13\r\n5/1h,algo=log"},               // getConfig
		step{"CL.TAKE k @mail COST 4", "0 5 1 -1 3600000 4 0"},           // tryAcquire(4)
		step{"CL.TAKE k @mail COST 2 FULL", "*8\r\n:1\r\n:5\r\n:1\r\n…"}, // tryAcquire(2)
		step{"CL.TAKE k:client-2 @mail COST 4", "0 5 1 -1 3600000 4 0"},  // PER_CLIENT
		step{"CL.TAKE k @mail COST 0", "0 5 1 …"},                        // availablePermits
		step{"CL.POLICY SET mail 7/1h,algo=log XX RESET", ":1"},          // setRate
		step{"CL.TAKE k @mail COST 7", "0 7 0 -1 3600000 7 0"},
		step{"CL.RESET k", ":1"}, // delete
	)
}

func TestPoliciesFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := dir + "/policies"
	good := "# who  what\n\napi\t100/1m\nlogin  5/1m,algo=log,block=15m\r\n  mail   10000/month,tz=+08:00  \n@slash 3/1s\n"
	celldtest.WriteFile(t, good+"api 6/1s\n", file)
	_, stderr, code := harness.RunToEnd(t, nil, "--port", "0", "--policies", file)
	if code != 2 || !strings.Contains(stderr, file+":7: 'api' is also in line 3") || strings.Count(stderr, "\n") != 1 {
		t.Errorf("a name that stands twice: code %d, %s", code, stderr)
	}

	celldtest.WriteFile(t, good, file)
	srv := harness.StartOn(t, dir, "--policies", file, "--save", "3600 1")
	c := harness.Dial(t, srv.Addr)
	c.Play(
		step{"CL.POLICY LIST", "*8\r\n$3\r\napi\r\n$6\r\n100/1m\r\n$5\r\nlogin\r\n$23\r\n5/1m,algo=log,block=15m\r\n$4\r\nmail\r\n$21\r\n10000/month,tz=+08:00\r\n$5\r\nslash\r\n$4\r\n3/1s"},
		step{"CL.POLICY SET api 7/1h", ":1"},
		step{"CL.POLICY SET other 10/1h", ":1"},
		step{"CL.TAKE k @api COST 3", "0 7 4 …"},
		step{"CL.POLICY DEL mail", ":1"},
	)
	srv.Stop()
	c = harness.Dial(t, harness.StartOn(t, dir, "--policies", file, "--save", "3600 1", "--policies", file).Addr) // the file is right again
	c.Play(
		step{"CL.POLICY GET api", "$6\r\n100/1m"},
		step{"CL.POLICY GET other", "$5\r\n10/1h"},
		step{"CL.POLICY GET mail", "$21\r\n10000/month,tz=+08:00"},
	)
	if got := c.Take("k", "@api", "COST", "0"); got.Remaining != 100 { // with another period it begins anew
		t.Errorf("CL.TAKE k @api: %+v", got)
	}
	if got := c.Do("CONFIG", "GET", "policies"); !strings.Contains(got, file) {
		t.Errorf("CONFIG GET policies: %q", got)
	}
}

// intsReply is an array of integers, and behind them what is nested.
func intsReply(ints string, nested ...string) string {
	words := strings.Fields(ints)
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(words)+len(nested))
	for _, word := range words {
		fmt.Fprintf(&b, ":%s\r\n", word)
	}
	return b.String() + strings.Join(nested, "")
}

func TestRules(t *testing.T) {
	t.Parallel()
	srv := harness.Start(t)
	c := harness.Dial(t, srv.Addr)
	c.Play(
		step{"CL.RULE ADD DENY bot:* EX 7200", ":1"},
		step{"CL.RULE ADD DENY bot:* EX 3600", ":0"}, // it ends sooner now
		step{"CL.RULE ADD ALLOW bot:1", ":1"},
		step{"CL.RULE ADD DENY evil", ":1"},
		step{"CL.RULE ADD ALLOW good:*", ":1"},
		step{"CL.RULE ADD DENY ip: CIDR 10.1.2.3/8", ":1"},
		step{"CL.RULE ADD ALLOW ip: CIDR 10.9.0.0/16", ":1"},
		step{"CL.RULE ADD ALLOW ip: CIDR 192.168.0.0/16", ":1"},
		step{"CL.RULE ADD DENY ip: CIDR 2001:db8::/32", ":1"},
		step{"CL.RULE ADD ALLOW '' CIDR ::1/128", ":1"},
		step{"CL.RULE LIST", "*9\r\n*4\r\n$5\r\nALLOW\r\n…"},
		step{"CL.RULE LIST bot:[2-9]", "*0"},
		step{"CL.RULE LIST evil", "*1\r\n*4\r\n$4\r\nDENY\r\n$4\r\nevil\r\n$0\r\n\r\n:-1"},
		step{"CL.RULE LIST ip:", "*4\r\n*4\r\n$5\r\nALLOW\r\n$3\r\nip:\r\n$11\r\n10.9.0.0/16\r\n:-1\r\n" +
			"*4\r\n$5\r\nALLOW\r\n$3\r\nip:\r\n$14\r\n192.168.0.0/16\r\n:-1\r\n*4\r\n$4\r\nDENY\r\n$3\r\nip:\r\n$10\r\n10.0.0.0/8\r\n…"},
	)
	for key, verdict := range map[string]string{
		"bot:": "bot", "bot:1": "bot", "bot:2": "bot", "bot": "", "evil": "deny", "evil2": "", "good:": "allow",
		"good:x": "allow", "good": "", "ip:10.0.0.1": "deny", "ip:10.9.0.1": "deny", "ip:11.0.0.1": "", "ip:192.168.5.5": "allow",
		"ip:192.169.5.5": "", "ip:2001:db8::1": "deny", "ip:2001:db9::1": "", "ip:::ffff:10.0.0.1": "deny", "ip:010.0.0.1": "",
		"ip:10.0.0": "", "ip:10.0.0.1 ": "", "10.0.0.1": "", "::1": "allow", "0:0:0:0:0:0:0:1": "allow", "ip:2001:db8::1%eth0": "",
		"ip:": "", "": "",
	} {
		deny := map[string]string{"bot": "3600", "deny": "-1"}[verdict]
		for range 3 { // in a pipeline, whose later calls are recognised by the earlier
			take, throttle := harness.Frame("CL.TAKE", key, "2/1h", "COST", "2"),
				harness.Frame("CL.THROTTLE", key+"t", "1", "2", "3600", "2")
			c.Send(slices.Concat(take, take, throttle, throttle))
			var got []string
			for range 4 {
				got = append(got, c.Reply())
			}
			switch {
			case verdict == "allow":
				if want := intsReply("0 2 2 -1 0 2 0"); got[0] != want || got[1] != want {
					t.Errorf("CL.TAKE %q: %q, want it to pass", key, got[:2])
				}
			case deny == "-1":
				if want := intsReply("1 0 0 -1 0 0 0"); got[0] != want || got[1] != want {
					t.Errorf("CL.TAKE %q: %q, want it to be denied", key, got[:2])
				}
			case deny != "":
				if !strings.HasPrefix(got[1], "*7\r\n:1\r\n:0\r\n:0\r\n:35") && !strings.HasPrefix(got[1], "*7\r\n:1\r\n:0\r\n:0\r\n:36") {
					t.Errorf("CL.TAKE %q: %q, want it to be denied for an hour", key, got[:2])
				}
			case !strings.HasPrefix(got[1], "*7\r\n:1\r\n:2\r\n:0\r\n:"):
				t.Errorf("CL.TAKE %q: %q, want it to be limited", key, got[:2])
			}
			c.Do("CL.RESET", key, key+"t")
		}
	}
	// CL.THROTTLE heeds them too, one by one and in a pipeline, and nothing is stored.
	for _, call := range []struct{ key, want string }{
		{"evil", "1 0 0 -1 0"}, {"good:x", "0 2 2 -1 0"}, {"ip:10.9.1.1", "1 0 0 -1 0"}, {"ip:192.168.1.1", "0 2 2 -1 0"},
		{"ip:2001:db8:1::", "1 0 0 -1 0"}, {"::1", "0 2 2 -1 0"},
	} {
		want := intsReply(call.want)
		c.Send([]byte(strings.Repeat(string(harness.Frame("CL.THROTTLE", call.key, "1", "2", "3600")), 5)))
		for range 5 {
			if got := c.Reply(); got != want {
				t.Errorf("CL.THROTTLE %s: %q, want %s", call.key, got, call.want)
			}
		}
	}
	if got := c.Do("DBSIZE"); got != ":0\r\n" {
		t.Errorf("DBSIZE: %q", got)
	}
	c.Play(
		step{"CL.MTAKE 2 evil 5/1h fine 5/1h",
			"*3\r\n*5\r\n:1\r\n:1\r\n:0\r\n:-1\r\n:0\r\n*5\r\n:1\r\n:0\r\n:0\r\n:-1\r\n:0\r\n*5\r\n:0\r\n:5\r\n:5\r\n:-1\r\n:0"},
		step{"CL.MTAKE 2 good:1 5/1h fine 5/1h COST 6", "*3\r\n*5\r\n:1\r\n:2\r\n…"},
		step{"EXISTS fine", ":0"},
		step{"CL.TAKE evil 5/1h FORCE", "1 0 0 -1 0 0 0"},
		step{"CL.TAKE good:1 @nosuch", "-NOPOLICY no such policy 'nosuch'"},
		step{"CL.RULE DEL DENY evil", ":1"},
		step{"CL.RULE DEL DENY evil", ":0"},
		step{"CL.TAKE evil 5/1h", "0 5 4 -1 720000 1 0"},
		step{"CL.RULE DEL DENY ip: CIDR 10.255.0.0/8", ":1"},
		step{"CL.TAKE ip:10.9.0.1 5/1h", "0 5 5 -1 0 1 0"},
		step{"CL.RULE DEL ALLOW bot:*", ":0"},
		step{"FLUSHALL", "+OK"},
		step{"CL.RULE LIST good:*", "*1\r\n…"},
	)
	c.Send(slices.Concat(harness.Frame("CL.RULE", "ADD", "DENY", "soon", "EX", "1"), harness.Frame("CL.TAKE", "soon", "5/1h")))
	if got := c.Reply() + c.Reply(); !strings.HasPrefix(got, ":1\r\n*7\r\n:1\r\n:0\r\n:0\r\n") {
		t.Errorf("a rule that ends soon: %q", got)
	}
	celldtest.Eventually(t, "a rule ends", func() bool { return c.Take("soon", "5/1h").Limited == 0 })
	c.Play(step{"CL.RULE LIST soon", "*0"}, step{"CL.RULE DEL DENY soon", ":0"})
	for command, want := range map[string]string{
		"CL.RULE ADD MAYBE k":                          "-ERR a rule is ALLOW, PAUSE or DENY, not 'MAYBE'",
		"CL.RULE ADD DENY":                             "-ERR wrong number of arguments for 'cl.rule|add' command",
		"CL.RULE ADD DENY k CIDR":                      "-ERR option CIDR needs a value",
		"CL.RULE ADD DENY k CIDR 10.0.0.0":             "-ERR invalid net '10.0.0.0': expected an address and its bits, such as 10.0.0.0/8",
		"CL.RULE ADD DENY k CIDR 10.0.0.0/33":          "-ERR invalid net '10.0.0.0/33': expected an address and its bits, such as 10.0.0.0/8",
		"CL.RULE ADD DENY k* CIDR 10.0.0.0/8":          "-ERR with CIDR, the pattern is the text before the address, without *",
		"CL.RULE ADD DENY k CIDR 10.0.0.0/8 CIDR ::/0": "-ERR option CIDR is given twice",
		"CL.RULE ADD DENY k EX 0":                      "-ERR invalid expire time in 'cl.rule' command",
		"CL.RULE ADD DENY k EX 9223372036854775807":    "-ERR invalid expire time in 'cl.rule' command",
		"CL.RULE ADD DENY k EX x":                      "-ERR value is not an integer or out of range",
		"CL.RULE DEL DENY k EX 5":                      "-ERR unknown option 'EX': expected CIDR",
		"CL.RULE ADD DENY " + strings.Repeat("p", 257): "-ERR a pattern has at most 256 bytes",
		fmt.Sprintf("CL.RULE LIST %s x", "k"):          "-ERR syntax error",
	} {
		c.Play(step{command, want})
	}
}

// TestTooManyPolicies sets as many policies and rules as there may be, and one more.
func TestTooManyPolicies(t *testing.T) {
	t.Parallel()
	c := harness.Dial(t, harness.Start(t).Addr)
	const most = 65_536
	for _, command := range []string{"CL.POLICY SET name:%d 5/1h", "CL.RULE ADD DENY key:%d*"} {
		var batch []byte
		for i := range most {
			batch = append(batch, harness.Frame(strings.Fields(fmt.Sprintf(command, i))...)...)
			if len(batch) > 1<<20 || i == most-1 {
				n := strings.Count(string(batch), "*4\r\n$")
				c.Send(batch)
				for range n {
					if got := c.Reply(); got != ":1\r\n" {
						t.Fatalf("%s: %q", command, got)
					}
				}
				batch = batch[:0]
			}
		}
	}
	c.Play(
		step{"CL.POLICY SET more 5/1h", "-ERR there are 65536 policies already, and no more are allowed"},
		step{"CL.RULE ADD DENY more", "-ERR there are 65536 rules already, and no more are allowed"},
		step{"CL.POLICY SET name:7 6/1h", ":1"}, step{"CL.RULE ADD DENY key:7* EX 5", ":0"},
		step{"CL.TAKE k @more", "-NOPOLICY no such policy 'more'"}, step{"CL.TAKE k @name:65535", "0 5 4 -1 720000 1 0"},
		step{"CL.TAKE key:65535 5/1h", "1 0 0 -1 0 0 0"}, step{"CL.POLICY DEL name:8", ":1"}, step{"CL.POLICY SET more 5/1h", ":1"},
		step{"CL.RULE DEL DENY key:8*", ":1"}, step{"CL.RULE ADD DENY more", ":1"},
	)
}

// TestAPlanForAnHour raises a plan for a while, by a clock that is not simulated: what was used stays used when it is raised, and when the
// lasting one is in force again.
func TestAPlanForAnHour(t *testing.T) {
	t.Parallel()
	c := harness.Dial(t, harness.Start(t).Addr)
	c.Play(step{"CL.POLICY SET gold 100/1d,algo=window", ":1"}, step{"CL.TAKE k @gold COST 80", "0 100 20 …"},
		step{"CL.POLICY SET gold 500/1d,algo=window EX 2", ":1"}, step{"CL.TAKE k @gold COST 5", "0 500 415 …"})
	if left := c.Do("CL.POLICY", "TTL", "gold"); left != ":2\r\n" && left != ":1\r\n" {
		t.Errorf("CL.POLICY TTL: %q", left)
	}
	celldtest.Eventually(t, "the lasting plan is in force again", func() bool { return c.Do("CL.POLICY", "TTL", "gold") == ":-1\r\n" })
	c.Play(step{"CL.TAKE k @gold", "0 100 14 …"}, step{"CL.POLICY SET visitor 5/1d EX 1", ":1"}, step{"CL.TAKE k @visitor", "0 5 4 …"})
	celldtest.Eventually(t, "a plan without a lasting one is gone", func() bool { return c.Do("CL.POLICY", "TTL", "visitor") == ":-2\r\n" })
	c.Play(step{"CL.TAKE k @visitor", "-NOPOLICY no such policy 'visitor'"})
}
