package persistence

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// TestPersistenceRenames renames keys while a snapshot is taken. The snapshot holds each key, and no name twice: redis-server would
// not load that.
func TestPersistenceRenames(t *testing.T) {
	t.Parallel()
	const keys, each = 200_000, 1000
	dir := t.TempDir()
	c := harness.Dial(t, harness.StartOn(t, dir, "--io-threads", "1").Addr)
	tat := time.Now().Add(time.Hour).UnixNano()
	batch := func(from int, command func(i int) []string) {
		var b []byte
		for i := from; i < from+each; i++ {
			b = append(b, harness.Frame(command(i)...)...)
		}
		c.Send(b)
		c.Expect(strings.Repeat("+OK\r\n", each))
	}
	for i := 0; i < keys; i += each {
		batch(i, func(i int) []string { return []string{"SET", fmt.Sprint("old:", i), fmt.Sprint(tat + int64(i))} })
	}
	c.Do("BGSAVE")
	renamed := 0
	for ; renamed < keys && infoField(c, "rdb_bgsave_in_progress") == "1"; renamed += each {
		batch(renamed, func(i int) []string { return []string{"RENAME", fmt.Sprint("old:", i), fmt.Sprint("new:", i)} })
	}
	celldtest.Eventually(t, "the snapshot is taken", func() bool { return infoField(c, "rdb_bgsave_in_progress") == "0" })
	if renamed == 0 {
		t.Fatal("nothing was renamed while the snapshot was taken")
	}
	redis := harness.Dial(t, celldtest.StartRedis(t, "--dir", copied(t, dir)))
	loaded(redis)
	missing, replies := 0, make([]byte, each*len(":1\r\n"))
	for from := 0; from < keys; from += each {
		var b []byte
		for i := from; i < from+each; i++ {
			b = append(b, harness.Frame("EXISTS", fmt.Sprint("old:", i), fmt.Sprint("new:", i))...)
		}
		redis.Send(b)
		redis.SetReadDeadline(time.Now().Add(harness.ReplyTimeout))
		if _, err := io.ReadFull(redis.R, replies); err != nil {
			t.Fatal(err)
		}
		missing += strings.Count(string(replies), ":0\r\n")
	}
	if missing > 0 {
		t.Errorf("%d of %d keys are not in the snapshot, %d were renamed meanwhile", missing, keys, renamed)
	}
	t.Logf("%d keys were renamed meanwhile", renamed)
}
