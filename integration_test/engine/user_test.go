package engine

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"celld/integration_test/harness"
	"celld/integration_test/harness/engines"
	"celld/internal/celldtest"
)

// userLine is the command that docs/how-to/share-limits.md gives for celld's user, for an engine.
func userLine(t *testing.T, e engines.Engine) []string {
	t.Helper()
	line := regexp.MustCompile(`(?m)^ACL SETUSER celld .*$`).FindString(celldtest.ReadFile(t, "../../docs/how-to/share-limits.md"))
	if line == "" {
		t.Fatal("docs/how-to/share-limits.md has no line ACL SETUSER celld")
	}
	words := strings.Fields(line)
	if strings.HasPrefix(e.Name, "redis-6.2") {
		words = strings.Fields(strings.NewReplacer(" +pexpiretime", "", " +sunsubscribe", "").Replace(line))
	}
	return words
}

// TestStoreUser runs all that celld does. Its user of the engine may do what docs/how-to/share-limits.md says and no more.
func TestStoreUser(t *testing.T) {
	t.Parallel()
	for _, kind := range engines.Kinds[:2] {
		t.Run(kind.Name, func(t *testing.T) {
			engines.EachEngine(t, func(t *testing.T, e engines.Engine) {
				t.Parallel()
				f := kind.Start(e, t)
				for _, n := range f.Nodes {
					n.OK(userLine(t, e)...)
				}
				url := strings.Replace(f.URL, "redis://", "redis://celld:s3cret@", 1)
				useAll(t, harness.Start(t, "--store", url, "--store-prefix", "limits:"),
					harness.Start(t, "--store", url, "--store-prefix", "limits:"))
				for _, n := range f.Nodes {
					celldtest.Eventually(t, "nobody listens any longer", func() bool { return n.Do("PUBSUB", "CHANNELS") == "*0\r\n" })
					if log := n.Do("ACL", "LOG"); log != "*0\r\n" {
						t.Errorf("the engine has refused something: %q", log)
					}
				}
			})
		})
	}
}

// useAll calls commands of all kinds. Their replies are tested elsewhere; here none may be an error.
func useAll(t *testing.T, srv, other *harness.Server) {
	t.Helper()
	c, waiter, rival := harness.Dial(t, srv.Addr), harness.Dial(t, srv.Addr), harness.Dial(t, other.Addr)
	for _, line := range []string{
		"CL.THROTTLE bucket 15 30 60",
		"CL.THROTTLE bucket 15 30 60 0",
		"CL.THROTTLE {bucket}2 0 1 60",
		"CL.THROTTLE {bucket}2 0 1 60",
		"CL.TAKE take 10/1m",
		"CL.TAKE take 10/1m COST 10",
		"CL.GIVE take 10/1m 1",
		"CL.TAKE several 10/1m 100/1h,algo=window 5/1m,algo=log",
		"CL.TAKE several 10/1m 100/1h,algo=window 5/1m,algo=log",
		"CL.MTAKE 2 {m}1 10/1m {m}2 10/1m",
		"CL.POLICY SET api 100/1m",
		"CL.POLICY GET api",
		"CL.TAKE named @api",
		"CL.POLICY LIST",
		"CL.RULE ADD ALLOW vip:* EX 60",
		"CL.RULE LIST",
		"CL.RULE DEL ALLOW vip:*",
		"CL.POLICY DEL api",
		"CL.TAKE later 5/1s,burst=1 RESERVE 2000",
		"INCR count", "DECRBY count 2", "INCREX count UBOUND 9 EX 60 ENX", "INCREX count BYINT -1 XX PERSIST",
		"MULTI", "INCR count", "INCREX count PX 60000", "EXEC",
		"SET text 1", "GET text", "SET text 4000000000000000000 XX", "EXPIRE text 100", "PERSIST text", "TTL text", "TYPE text",
		"EXISTS text", "STRLEN text", "SET {text}1 4000000000000000000", "COPY {text}1 {text}2", "RENAME {text}2 {text}3", "UNLINK {text}3",
		"TYPE several", "HGETALL several", "HLEN several", "TTL several", "CL.RESET several",
		"EVAL return(redis.call('get',KEYS[1])) 1 text",
		"MULTI", "SET text 5000000000000000000", "GET text", "EXEC",
		"DEL text", "SCAN 0", "KEYS *", "DBSIZE", "RANDOMKEY",
	} {
		got := c.Do(strings.Fields(line)...)
		if strings.HasPrefix(got, "-") || strings.Contains(got, "\n-") && !strings.Contains(got, "\n:-") {
			t.Errorf("%s: %q", line, got)
		}
	}
	_, lock := c.Lease("lock", "1/10s,algo=conc")
	_, lease := c.Lease("lease", "100/1m", "COST", "40", "LEASE", "60000")
	for _, args := range [][]string{
		{"CL.RENEW", "lock", strconv.FormatInt(lock, 10), "5000"},
		{"CL.RELEASE", "lock", strconv.FormatInt(lock, 10)},
		{"CL.SETTLE", "lease", strconv.FormatInt(lease, 10), "10"},
	} {
		if got := c.Do(args...); strings.HasPrefix(got, "-") {
			t.Errorf("%q: %q", args, got)
		}
	}
	// One celld waits for a lock of another process, and is told of it.
	_, held := rival.Lease("wait", "1/60s,algo=conc")
	waiter.Send(harness.Frame("CL.TAKE", "wait", "1/60s,algo=conc", "WAIT", "60000"))
	celldtest.Eventually(t, "one waits", func() bool { return strings.Contains(c.Do("INFO", "clients"), "blocked_clients:1") })
	rival.Do("CL.RELEASE", "wait", strconv.FormatInt(held, 10))
	if got := waiter.Reply(); strings.HasPrefix(got, "-") {
		t.Errorf("WAIT: %q", got)
	}
	// Both change one key at once, so they take turns.
	done := make(chan string)
	for _, conn := range []*harness.Conn{waiter, rival} {
		go func() {
			for i := range 300 {
				got, err := conn.TryDo([]string{"CL.TAKE", "hot", "1000000/1m,algo=window", fmt.Sprintf("%d/1h,algo=log", 5000)})
				if err != nil || strings.HasPrefix(got, "-") {
					done <- fmt.Sprintf("call %d: %q, %v", i, got, err)
					return
				}
			}
			done <- ""
		}()
	}
	for range 2 {
		select {
		case wrong := <-done:
			if wrong != "" {
				t.Error(wrong)
			}
		case <-time.After(2 * harness.ReplyTimeout):
			t.Fatal("calls of one key do not end")
		}
	}
	if got := c.Do("FLUSHALL"); got != "+OK\r\n" {
		t.Errorf("FLUSHALL: %q", got)
	}
}
