package resp

import (
	"strings"
	"testing"
)

// Where replies wait for the disk, many of them wait as well as few.
func TestLongRepliesWaitForTheDisk(t *testing.T) {
	disk := &fullDisk{}
	eachCarrierOn(t, disk, func(t *testing.T, srv *Server, addr string) {
		c := dialTest(t, addr)
		c.ask("PING\r\n", "+PONG\r\n")
		disk.full.Store(true)
		defer disk.full.Store(false)
		long := strings.Repeat("x", 3*flushAt/4)
		c.send("CL.THROTTLE " + t.Name() + " 4 1 86400\r\n" + frame("ECHO", long) + frame("ECHO", long))
		c.ask("", "-MISCONF Errors writing to the AOF file: no space left on device\r\n$49152\r\n"+long+"\r\n$49152\r\n"+long+"\r\n")
	})
}
