package resp

import (
	"context"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"celld/store"
)

// What a connection is told last does not wait for a peer that reads nothing: not the refusal of one that is not served, not
// the replies before QUIT, and not at all where it is killed.
func TestAGoroutineAndADeafPeer(t *testing.T) {
	for name, test := range map[string]struct {
		send string
		then func(srv *Server)
		ends time.Duration
	}{
		"refused": {then: func(srv *Server) {}, ends: 101 * time.Millisecond}, // after settle,
		"QUIT":    {send: "PING\r\nQUIT\r\n", then: func(srv *Server) {}, ends: lingerNS + 2*writeTurn},
		"killed": {send: "PING\r\n", then: func(srv *Server) {
			for _, s := range srv.allSessions() {
				s.kill()
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := NewConfig()
				cfg.protectedMode.on.Store(false)
				srv := NewServer(Options{Config: cfg, Store: store.New(store.Options{}), Clock: func() int64 { return time.Now().UnixNano() }})
				g := &goroutineCarrier{srv: srv}
				if name == "refused" {
					cfg.maxClients.n.Store(0)
				}
				ours, theirs := net.Pipe()
				begin := time.Now()
				g.carry(context.Background(), ours)
				if test.send != "" {
					if _, err := theirs.Write([]byte(test.send)); err != nil {
						t.Fatal(err)
					}
				}
				synctest.Wait()
				test.then(srv)
				g.running.Wait()
				if took := time.Since(begin); took != test.ends || srv.clientCount() != 0 {
					t.Errorf("it took %v, %d are left", took, srv.clientCount())
				}
			})
		})
	}
}

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
