package resp

import (
	"fmt"
	"strings"
	"testing"
)

// What a commit may have to take back is held until it is done, so much of that ends a round: here that is 9,000 calls of a
// log for each command of 100 bytes.
func TestACommitOfLongLogs(t *testing.T) {
	disk := &fullDisk{}
	eachCarrierOn(t, disk, func(t *testing.T, srv *Server, addr string) {
		const keys = 100
		c, began := dialTest(t, addr), srv.clock()-1e9
		log := fmt.Sprintf("'limit=10000/1h,algo=log calls=%d:1%s'", began, strings.Repeat(",+1:1", 8_999))
		var parts, replies strings.Builder
		for i := range keys {
			c.ask(fmt.Sprintf("HSET %s:%d log/1h %s\r\n", t.Name(), i, log), ":1\r\n")
			fmt.Fprintf(&parts, "HSET %s:%d 'log/1h 1' 'limit=10000/1h,algo=log after=%d calls=%d:1'\r\n", t.Name(), i, began+8_999, began+9_000)
			replies.WriteString(":0\r\n")
		}
		before := disk.syncs.Load()
		c.ask(parts.String(), replies.String())
		if syncs := disk.syncs.Load() - before; syncs < 3 {
			t.Errorf("%d commits of %d logs, which are 14 MB", syncs, keys)
		}
	})
}

// Nor does a round read without an end: each byte is held some six times until the commit. Who was not read is the first in the next.
func TestARoundEndsAfterSomeBytes(t *testing.T) {
	disk := &fullDisk{}
	eachCarrierOn(t, disk, func(t *testing.T, srv *Server, addr string) {
		const clients = 400
		gate := make(chan error)
		disk.gate.Store(&gate)
		defer disk.gate.Store(nil)
		first := dialTest(t, addr)
		began := disk.syncs.Load()
		if _, err := first.Write([]byte("CL.THROTTLE first 4 1 86400\r\n")); err != nil {
			t.Fatal(err)
		}
		eventually(t, "a commit begins", func() bool { return disk.syncs.Load() > began })
		var all []testConn
		for i := range clients {
			c := dialTest(t, addr)
			if _, err := fmt.Fprintf(c, "*5\r\n$11\r\nCL.THROTTLE\r\n$60000\r\n%s\r\n$1\r\n4\r\n$1\r\n1\r\n$5\r\n86400\r\n", fmt.Sprintf("%-60000d", i)); err != nil {
				t.Fatal(err)
			}
			all = append(all, c)
		}
		before := disk.syncs.Load()
		close(gate)
		for _, c := range append(all, first) {
			c.ask("", "*5\r\n:0\r\n:5\r\n:4\r\n:-1\r\n:86400\r\n")
		}
		if syncs := disk.syncs.Load() - before; strings.HasSuffix(t.Name(), "/"+multiplexing) && syncs < 5 {
			t.Errorf("%d commits of 24 MB by two loops", syncs)
		}
	})
}
