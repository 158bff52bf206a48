package integration_test

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

// TestPersistenceRenames renames keys while a snapshot is taken. Each is in it, and no name twice, which redis-server
// would not load.
func TestPersistenceRenames(t *testing.T) {
	t.Parallel()
	const keys, each = 200_000, 1000
	dir := t.TempDir()
	c := dial(t, startOn(t, dir, "--io-threads", "1").addr)
	tat := time.Now().Add(time.Hour).UnixNano()
	batch := func(from int, command func(i int) []string) {
		var b []byte
		for i := from; i < from+each; i++ {
			b = append(b, frame(command(i)...)...)
		}
		c.send(b)
		c.expect(strings.Repeat("+OK\r\n", each))
	}
	for i := 0; i < keys; i += each {
		batch(i, func(i int) []string { return []string{"SET", fmt.Sprint("old:", i), itoa(tat + int64(i))} })
	}
	c.do("BGSAVE")
	renamed := 0
	for ; renamed < keys && c.persistence("rdb_bgsave_in_progress") == "1"; renamed += each {
		batch(renamed, func(i int) []string { return []string{"RENAME", fmt.Sprint("old:", i), fmt.Sprint("new:", i)} })
	}
	eventually(t, "the snapshot is taken", func() bool { return c.persistence("rdb_bgsave_in_progress") == "0" })
	if renamed == 0 {
		t.Fatal("nothing was renamed while the snapshot was taken")
	}
	redis := dial(t, startRedis(t, "--dir", copied(t, dir)))
	loaded(redis)
	missing, replies := 0, make([]byte, each*len(":1\r\n"))
	for from := 0; from < keys; from += each {
		var b []byte
		for i := from; i < from+each; i++ {
			b = append(b, frame("EXISTS", fmt.Sprint("old:", i), fmt.Sprint("new:", i))...)
		}
		redis.send(b)
		redis.SetReadDeadline(time.Now().Add(replyTimeout))
		if _, err := io.ReadFull(redis.r, replies); err != nil {
			t.Fatal(err)
		}
		missing += strings.Count(string(replies), ":0\r\n")
	}
	if missing > 0 {
		t.Errorf("%d of %d keys are not in the snapshot, %d were renamed meanwhile", missing, keys, renamed)
	}
	t.Logf("%d keys were renamed meanwhile", renamed)
}
