package server

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// lines returns the log's lines with this text.
func lines(srv *harness.Server, text string) (found []map[string]any) {
	scan := bufio.NewScanner(strings.NewReader(srv.Log.String()))
	for scan.Scan() {
		var line map[string]any
		if json.Unmarshal(scan.Bytes(), &line) == nil && line["msg"] == text {
			found = append(found, line)
		}
	}
	return found
}

// told waits for a line with this text and these attributes.
func told(srv *harness.Server, text string, attrs ...string) {
	srv.T.Helper()
	celldtest.Eventually(srv.T, fmt.Sprintf("a line %q with %q", text, attrs), func() bool {
		for _, line := range lines(srv, text) {
			fits := true
			for i := 0; i < len(attrs); i += 2 {
				fits = fits && fmt.Sprint(line[attrs[i]]) == attrs[i+1]
			}
			if fits {
				return true
			}
		}
		return false
	})
}

const (
	wrongPassword   = "wrong password"
	refusedCommand  = "a command is refused"
	refusedConn     = "a connection is refused"
	refusedRequest  = "an HTTP request is refused"
	slowCommand     = "slow command"
	hashOfASecret   = "#%x"
	mayNotUseTheKey = "the user may not use this key"
)

// TestSlowAndRefusedClientsAreTold finds each by its address, its user and its command in the log. No secret is there, and no key.
func TestSlowAndRefusedClientsAreTold(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	celldtest.WriteFile(t, "token-secret\n", dir, "token")
	hash := fmt.Sprintf(hashOfASecret, sha256.Sum256([]byte("app-secret")))
	celldtest.WriteFile(t, "user default on >default-secret ~* +@all\nuser app on "+hash+" ~app:* +cl.throttle +get +eval\n",
		dir, "users.acl")
	srv := harness.Start(t, "--loglevel", "debug", "--maxclients", "2", "--slowlog-log-slower-than", "0",
		"--aclfile", filepath.Join(dir, "users.acl"), "--requirepass", "required-secret", "--http-bind", "127.0.0.1:0",
		"--http-token-file", filepath.Join(dir, "token"))
	c := harness.Dial(t, srv.Addr)
	client := c.LocalAddr().String()

	c.Do("GET", "key-secret")
	told(srv, refusedCommand, "client", client, "user", "default", "command", "get", "reason", "not authenticated")
	c.Do("AUTH", "app", "wrong-secret")
	told(srv, wrongPassword, "client", client, "tried", "app")
	c.Do("AUTH", "swapped-secret", "app")
	c.Do("HELLO", "3", "AUTH", "nobody-secret", "other-secret", "SETNAME", "name-secret")
	told(srv, wrongPassword, "client", client, "tried", "")
	c.Do("AUTH", "app", "app-secret")
	c.Do("CONFIG", "SET", "requirepass", "set-secret")
	told(srv, refusedCommand, "client", client, "user", "app", "command", "config|set", "reason", "the user may not use this command")
	c.Do("CL.THROTTLE", "key-secret", "1", "1", "1")
	told(srv, refusedCommand, "client", client, "user", "app", "command", "cl.throttle", "reason", mayNotUseTheKey)
	c.Do("CL.THROTTLE", "app:key-secret", "1", "1", "1")
	told(srv, slowCommand, "client", client, "user", "app", "command", "cl.throttle")
	c.Do("EVAL", "return redis.call('GET', KEYS[1])", "1", "app:key-secret", "argument-secret")
	told(srv, slowCommand, "user", "app", "command", "eval")
	if slow := lines(srv, slowCommand); fmt.Sprintf("%T", slow[0]["took_us"]) != "float64" {
		t.Errorf("%v", slow[0])
	}

	admin := harness.Dial(t, srv.Addr)
	admin.Do("AUTH", "default-secret")
	for _, command := range []string{
		"ACL SETUSER more on >more-secret", "CONFIG SET requirepass set-secret", "SET key-secret value-secret", "MONITOR-secret",
		"CLIENT SETNAME name-secret", "CL.POLICY SET policy 1/1s", "CL.RULE ADD DENY a-pattern",
		"ACL SETUSER bad >bad-secret nosuch-secret", "ACL SAVE", "ACL LOAD",
	} {
		admin.Do(strings.Fields(command)...)
	}
	refused := harness.Dial(t, srv.Addr)
	refused.Expect("-ERR max number of clients reached\r\n")
	told(srv, refusedConn, "client", refused.LocalAddr().String(), "reason", "maxclients")

	for _, header := range []string{"Bearer wrong-secret", "Basic eDpvdGhlci1zZWNyZXQ=", "Bearer token-secret"} {
		srv.Get("/check/path-secret/by/word:a?query-secret", "Authorization", header, "Cookie", "cookie-secret")
	}
	told(srv, refusedRequest, "reason", "not the token of --http-token-file")
	celldtest.Eventually(t, "two refused requests", func() bool { return len(lines(srv, refusedRequest)) == 2 })
	if log := srv.Log.String(); strings.Contains(log, "-secret") || strings.Contains(log, hash[1:]) {
		t.Errorf("the log has a secret:\n%s", log)
	}
}

// TestRefusalsDoNotFloodTheLog sends wrong passwords without end. The log holds the first of each second, and counts all.
func TestRefusalsDoNotFloodTheLog(t *testing.T) {
	t.Parallel()
	srv := harness.Start(t, "--requirepass", "sesame", "--loglevel", "verbose")
	c := harness.Dial(t, srv.Addr)
	const n, packs = 1000, 20
	for range packs {
		c.Send([]byte(strings.Repeat(string(harness.Frame("AUTH", "wrong")), n)))
		for range n {
			c.Reply()
		}
	}
	total := func() (sum int) {
		for _, line := range lines(srv, wrongPassword) {
			left, _ := line["left_out"].(float64)
			sum += 1 + int(left)
		}
		return sum
	}
	celldtest.Eventually(t, "all are counted", func() bool { return total() == n*packs })
	if all := len(lines(srv, wrongPassword)); all > n {
		t.Errorf("%d lines", all)
	}
	quiet := harness.Start(t, "--requirepass", "sesame")
	harness.Dial(t, quiet.Addr).Do("AUTH", "wrong")
	if len(lines(quiet, wrongPassword)) > 0 {
		t.Error("it is told at loglevel notice")
	}
}

// TestRefusedConnectionsAreTold: by protected mode, and where there are too many to HTTP.
func TestRefusedConnectionsAreTold(t *testing.T) {
	t.Parallel()
	srv := harness.Start(t, "--loglevel", "verbose", "--http-bind", "127.0.0.1:0", "--http-max-connections", "1")
	first, err := net.Dial("tcp", srv.HTTP())
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	second, err := net.Dial("tcp", srv.HTTP())
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	_, _ = io.ReadAll(second)
	told(srv, refusedConn, "client", second.LocalAddr().String(), "reason", "http-max-connections")
}
