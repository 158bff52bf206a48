package resp

import (
	"fmt"
	"strings"
	"testing"
)

// A round does not read without an end: each byte is held some six times until the commit. Who was not read is the first in the next.
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
		if syncs := disk.syncs.Load() - before; strings.HasSuffix(t.Name(), "/"+multiplexing()) && syncs < 5 {
			t.Errorf("%d commits of 24 MB by two loops", syncs)
		}
	})
}
