package transport

import (
	"fmt"
	"testing"
	"time"
)

// What a long command has answered leaves while it runs, once the disk has it. After it has written, its replies wait for its end.
func TestRepliesDuringALongCommand(t *testing.T) {
	t.Parallel()
	for _, first := range []string{"first\n", big} {
		for _, sync := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d bytes, sync=%v", len(first), sync), func(t *testing.T) {
				eachCarrier(t, func(c *carried) {
					c.Sync = sync
					c.handle = func(s *fakeSession, line string) bool {
						if line == "end" {
							return false
						}
						s.reply(first)
						s.flush()
						for commits := c.commits.Load(); !s.finished.Load(); {
							time.Sleep(time.Millisecond / 10) // its work, beside which others of these tests run
							if s.conn.ServeOthers(line == "write"); line == "write" && c.commits.Load() != commits {
								s.server.faults.Add(1)
							}
						}
						s.conn.Resume()
						return false
					}
				}, func(t *testing.T, c *carried) {
					p := c.dial(t)
					for _, line := range []string{"read\n", "write\n", "read\n"} {
						p.send(line)
						if sync && line == "write\n" {
							p.wantNothing()
						} else {
							p.want(first)
						}
						c.all()[0].finished.Store(true)
						if sync && line == "write\n" {
							p.want(first)
						}
						p.want(line)
						c.all()[0].finished.Store(false)
					}
					p.ask("end\n", "end\n")
				})
			})
		}
	}
}
