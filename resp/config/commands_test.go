package config

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"celld/persistence"
	"celld/resp/command"
	"celld/resp/command/argument"
	"celld/resp/command/calltest"
	"celld/resp/glob"
	"celld/store/memory"
)

// CONFIG's answers. A change holds for all parameters or for none.
func TestConfigCommands(t *testing.T) {
	cfg := New()
	secrets, resets := false, 0
	h := calltest.New(memory.Options{}, &command.Row{Name: "config", Sub: Rows(Commands{
		Config: cfg, Secrets: func(*command.Call) bool { return secrets }, ResetStat: func(*command.Call) { resets++ },
	})})
	array := func(words ...string) string {
		reply := fmt.Sprintf("*%d\r\n", len(words))
		for _, word := range words {
			reply += fmt.Sprintf("$%d\r\n%s\r\n", len(word), word)
		}
		return reply
	}
	want := func(line, reply, changed string) {
		t.Helper()
		before := map[string]string{}
		cfg.View(true, func(name, value string) { before[name] = value })
		words := strings.Split(line, " ")
		if got := h.Do(append([]string{"CONFIG"}, words...)...); got != reply {
			t.Errorf("%s: %q, want %q", line, got, reply)
		}
		var said []string
		cfg.View(true, func(name, value string) {
			if value != before[name] {
				said = append(said, name+"="+value)
			}
		})
		if got := strings.Join(said, " "); got != changed {
			t.Errorf("%s changes %s, want %s", line, got, changed)
		}
	}
	refused := func(line, why string) { t.Helper(); want(line, "-"+why+"\r\n", "") }
	want("GET timeout", array("timeout", "0"), "")
	want("GET TIMEOUT ti*t database[s] nothing", array("TIMEOUT", "0", "databases", "1"), "")
	want("GET *keepalive timeou?", array("timeout", "0", "tcp-keepalive", "300"), "")
	refused("GET "+strings.Repeat("*?", 1000), fmt.Sprintf(argument.ErrPatternLong, glob.MaxWild))
	want("SET timeout 7 MAXCLIENTS 20", "+OK\r\n", "maxclients=20 timeout=7")
	want("SET timeout 7 maxclients 30", "+OK\r\n", "maxclients=30")
	refused("SET timeout 8 maxclients", argument.ErrSyntax)
	refused("SET timeout 8 none 1", "ERR Unknown option or number of arguments for CONFIG SET - 'none'")
	refused("SET timeout 8 databases 1", "ERR CONFIG SET failed (possibly related to argument 'databases') - can't set immutable config")
	refused("SET timeout 8 port 1", "ERR CONFIG SET failed (possibly related to argument 'port') - can't set immutable config")
	refused("SET timeout 8 TIMEOUT 9", "ERR CONFIG SET failed (possibly related to argument 'TIMEOUT') - duplicate parameter")
	refused("SET timeout 8 maxclients 0",
		"ERR CONFIG SET failed (possibly related to argument 'maxclients') - argument must be between 1 and 1048576 inclusive")
	refused("SET timeout 8 save x", "ERR CONFIG SET failed (possibly related to argument 'save') - Invalid save parameters")
	cfg.AppendOnly.Check(func(on bool) error {
		if on {
			return fmt.Errorf("%w", persistence.ErrNeedsRestart)
		}
		return nil
	})
	refused("SET timeout 8 appendonly YES",
		"ERR CONFIG SET failed (possibly related to argument 'appendonly') - this needs a restart with --appendonly YES")
	cfg.MaxClients.Check(func(int64) error { return errors.New("too many") })
	refused("SET timeout 8 maxclients 40", "ERR CONFIG SET failed (possibly related to argument 'maxclients') - too many")
	want("GET timeout", array("timeout", "7"), "")

	want("SET requirepass secret", "+OK\r\n", "requirepass=secret")
	want("GET requirepass", array("requirepass", "(secret)"), "")
	secrets = true
	want("GET requirepass", array("requirepass", "secret"), "")
	want("RESETSTAT", "+OK\r\n", "")
	refused("REWRITE", errRewrite)
	if resets != 1 {
		t.Errorf("%d resets", resets)
	}
}

// The consequences of a change come when all of it is there.
func TestConsequences(t *testing.T) {
	cfg := New()
	var seen []string
	cfg.Timeout.Follow(func(n int64) { seen = append(seen, fmt.Sprint("timeout ", n, cfg.MaxClients.Get())) })
	cfg.MaxClients.OnSet(func(n int64) { seen = append(seen, fmt.Sprint("maxclients ", n, cfg.Timeout.Get())) })
	if err := cfg.Change([][]byte{[]byte("timeout"), []byte("1"), []byte("maxclients"), []byte("2")}); err != nil {
		t.Fatal(err)
	}
	cfg.Timeout.Put(5)
	if got := strings.Join(seen, ", "); got != "timeout 0 10000, timeout 1 2, maxclients 2 1" || cfg.Timeout.Get() != 5 {
		t.Error(got)
	}
}
