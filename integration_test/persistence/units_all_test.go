//go:build all

package persistence

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

const (
	unitKeys        = 200_000 // that a script changes
	unitTransaction = 60_000  // that a transaction changes

	unitEnd = "\r\nEXEC\r\n*2\r\n$4\r\nECHO" // of a unit in the file
)

// TestKilledWithinAUnit kills celld while it writes what a script or a transaction has changed. The next start, and redis-server, find all
// of that or nothing.
func TestKilledWithinAUnit(t *testing.T) {
	t.Parallel()
	script := fmt.Sprintf("for i = 1, %d do redis.call('INCR', 'c:' .. i) end", unitKeys)
	var transaction []byte
	for i := range unitTransaction {
		transaction = append(transaction, harness.Frame("INCR", fmt.Sprint("t:", i))...)
	}
	transaction = append(append(harness.Frame("MULTI"), transaction...), harness.Frame("EXEC")...)
	for name, flags := range map[string][]string{
		"always":   {"--appendfsync", "always"},
		"everysec": {"--appendfsync", "everysec", "--auto-aof-rewrite-min-size", "1mb", "--auto-aof-rewrite-percentage", "20"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rnd, dir := celldtest.NewRand(t), t.TempDir()
			spec := harness.Spec{Flags: append([]string{"--dir", dir, "--appendonly", "yes"}, flags...), Dies: true}
			for round := range 8 {
				srv := spec.Start(t)
				c := harness.Dial(t, srv.Addr)
				loaded(c)
				values := wholeUnits(c, "celld")
				if round%2 == 0 {
					c.Send(harness.Frame("EVAL", script, "0"))
				} else {
					c.Send(transaction)
				}
				// The script takes some 0.2 s, and then 0.4 s may pass before its changes are written, in 0.1 s.
				if round == 5 {
					celldtest.Eventually(t, "the unit is in the file", func() bool {
						return strings.Contains(celldtest.ReadFile(t, filepath.Join(dir, "appendonly.aof")), unitEnd)
					})
				} else {
					time.Sleep(time.Duration(rnd.Int64N(int64(time.Second))))
				}
				srv.Cmd.Process.Kill()
				<-srv.Exited
				t.Logf("round %d began with %q", round, values)
				if round == 3 {
					redis := harness.Dial(t, celldtest.StartRedis(t, "--dir", copied(t, dir), "--appendonly", "yes"))
					loaded(redis)
					wholeUnits(redis, "redis-server")
				}
			}
		})
	}
}

// wholeUnits checks that all keys of a script, and all of a transaction, have one value, and tells these.
func wholeUnits(c *harness.Conn, who string) (values string) {
	c.T.Helper()
	for _, of := range []struct {
		name string
		n    int
	}{{"c:", unitKeys + 1}, {"t:", unitTransaction}} {
		got := c.Do("EVAL", `local all, values, n = {}, {}, 0
			for i = 0, ARGV[2] - 1 do
				local v = redis.call('GET', ARGV[1] .. i) or '0'
				all[v] = (all[v] or 0) + 1
			end
			if ARGV[1] == 'c:' then all['0'] = all['0'] - 1 end
			for v, n in pairs(all) do if n > 0 then values[#values + 1] = v .. ' in ' .. n end end
			return table.concat(values, ', ')`, "0", of.name, fmt.Sprint(of.n))
		if _, text, _ := strings.Cut(got, "\r\n"); strings.Contains(got, ",") || !strings.Contains(text, " in ") {
			c.T.Errorf("%s finds a part of a unit: %s %q", who, of.name, got)
		}
		values += got
	}
	return values
}
