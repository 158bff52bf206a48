package harness

import (
	"fmt"
	"testing"

	"celld/internal/celldtest"
)

// Lease calls CL.TAKE with a limit of algo=conc, or with LEASE, and returns the id of what is held, 0 if nothing is.
func (c *Conn) Lease(args ...string) (r Taken, id int64) {
	c.T.Helper()
	raw := c.Do(append([]string{"CL.TAKE"}, args...)...)
	r, id, err := ReadLease(raw)
	if err != nil {
		c.T.Fatalf("CL.TAKE %q: %q, %v", args, raw, err)
	}
	return r, id
}

// ReadLease reads the reply of CL.TAKE with an id.
func ReadLease(raw string) (r Taken, id int64, err error) {
	_, err = fmt.Sscanf(raw, "*8\r\n:%d\r\n:%d\r\n:%d\r\n:%d\r\n:%d\r\n:%d\r\n:%d\r\n:%d\r\n",
		&r.Limited, &r.Limit, &r.Remaining, &r.RetryMS, &r.ResetMS, &r.Granted, &r.Wait, &id)
	return r, id, err
}

// Waiting waits until so many callers wait.
func (s *Server) Waiting(t testing.TB, callers int) {
	t.Helper()
	c := Dial(t, s.Addr)
	defer c.Close()
	celldtest.Eventually(t, fmt.Sprintf("%d callers wait", callers), func() bool {
		text, _ := Bulk(c.Do("INFO", "clients"))
		return ContainsLine(text, fmt.Sprintf("blocked_clients:%d", callers))
	})
}
