//go:build all

package engine

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"celld/integration_test/harness"
	"celld/integration_test/harness/engines"
	"celld/internal/celldtest"
)

// redis-cell and celld go on from what the other has stored on the same engine, call by call.
func TestMovingFromRedisCell(t *testing.T) {
	t.Parallel()
	f := engines.StartEngine(t, "--loadmodule", harness.ModulePath(t))
	clients := []*harness.Conn{harness.Dial(t, f.Nodes[0].Addr), harness.Dial(t, harness.Start(t, "--store", f.URL).Addr),
		harness.Dial(t, harness.Start(t, "--store", f.URL).Addr)}
	for i := range int64(12) {
		for key, quantity := range map[string]int64{"one": 1, "three": 3} {
			got := clients[i%3].Throttle(key, "35", "1", "3600", fmt.Sprint(quantity))
			if got[0] != 0 || got[1] != 36 || got[2] != 36-quantity*(i+1) {
				t.Errorf("%s: call %d has %v", key, i, got)
			}
		}
	}
	for i, c := range clients {
		if got := c.Throttle("three", "35", "1", "3600"); got[0] != 1 || got[2] != 0 {
			t.Errorf("client %d after the last: %v", i, got)
		}
	}
}

// Limits move from celld in memory to an engine and back, by the commands of docs/how-to/migrate.md.
func TestMovingFromMemory(t *testing.T) {
	t.Parallel()
	cli := celldtest.Need(t, "redis-cli")
	dir, back := t.TempDir(), t.TempDir()
	old := harness.StartOn(t, dir, "--appendonly", "yes")
	client := harness.Dial(t, old.Addr)
	limits := []string{"30/1h,burst=9", "9/1h,algo=window", "9/1h,algo=log", "9/1h,algo=slide", "9/1h,algo=conc", "9/1h 90/1d",
		"1/1h,burst=1,block=2h"}
	for i, limit := range limits {
		for range 3 {
			client.Do(take(i, limit)...)
		}
	}
	client.Throttle("bucket", "9", "1", "3600", "4")
	looks := func(c *harness.Conn) (all []string) { // without the times, as these pass
		for i, limit := range limits {
			reply := strings.Split(c.Do(append(take(i, limit), "PEEK")...), "\r\n")
			all = append(all, strings.Join(reply[1:4], " "))
		}
		bucket := c.Throttle("bucket", "9", "1", "3600", "0")
		return append(all, fmt.Sprint(bucket[:3]))
	}
	want := fmt.Sprint(looks(client))
	old.Cmd.Process.Signal(syscall.SIGTERM)
	old.Wait(0)

	f := engines.StartEngine(t)
	host, port := harness.HostPort(f.Nodes[0].Addr)
	log, err := os.Open(filepath.Join(dir, "appendonly.aof"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	pipe := harness.Command(t, cli, "-h", host, "-p", port, "--pipe")
	pipe.Stdin = log
	if out, err := pipe.CombinedOutput(); err != nil || !strings.Contains(string(out), "errors: 0,") {
		t.Fatalf("%v, %s", err, out)
	}
	if got := fmt.Sprint(looks(harness.Dial(t, harness.Start(t, "--store", f.URL).Addr))); got != want {
		t.Errorf("on the engine:\n%s, want\n%s", got, want)
	}
	if out, err := harness.Command(t, cli, "-h", host, "-p", port, "--rdb", filepath.Join(back, "dump.rdb")).CombinedOutput(); err != nil {
		t.Fatalf("%v, %s", err, out)
	}
	if got := fmt.Sprint(looks(harness.Dial(t, harness.StartOn(t, back, "--save", "300 1").Addr))); got != want {
		t.Errorf("in memory again:\n%s, want\n%s", got, want)
	}
}

// take is a CL.TAKE of a limit, with a key of its own.
func take(i int, limit string) []string {
	return append([]string{"CL.TAKE", fmt.Sprint("k", i)}, strings.Fields(limit)...)
}
