package session

import (
	"strings"
	"testing"

	"celld/resp/session/sessiontest"
)

// Where replies wait for the disk, many of them wait as well as few.
func TestLongRepliesWaitForTheDisk(t *testing.T) {
	disk := &sessiontest.Disk{}
	eachCarrierOn(t, disk, func(t *testing.T, srv *Service, addr string) {
		c := sessiontest.Dial(t, addr)
		c.Ask("PING\r\n", "+PONG\r\n")
		disk.Full.Store(true)
		defer disk.Full.Store(false)
		long := strings.Repeat("x", 3*flushAt/4)
		c.Send("CL.THROTTLE " + t.Name() + " 4 1 86400\r\n" + sessiontest.Frame("ECHO", long) + sessiontest.Frame("ECHO", long))
		c.Ask("", "-MISCONF Errors writing to the AOF file: no space left on device\r\n$49152\r\n"+long+"\r\n$49152\r\n"+long+"\r\n")
	})
}
