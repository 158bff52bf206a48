package resp

import (
	"bytes"
	"fmt"
	"math"
	"time"

	"celld/resp/command"
)

// Check is the answer of Server.Check.
type Check struct {
	Limited   bool
	Limit     int64         // the most that passes at one instant
	Remaining int64         // how many more pass now
	Retry     time.Duration // until the call passes; -1: it will not, or it has passed
	Reset     time.Duration // until the limit is full again

	Policy string        // the name of the policy that was found
	Count  int64         // so many calls of it
	Period time.Duration // in each such time; 0: it counts what is in flight
}

// Check is CL.TAKE key @policy. The error is a *CallError: NOPOLICY where there is no such policy, and STOREDOWN where the engine that may have
// it is away.
func (srv *Server) Check(key, policy string) (c Check, err error) {
	found := srv.store.Policy([]byte(policy))
	reply, err := srv.call("CL.TAKE", key, "@"+policy, "US") // also where there is none: it may not have been read yet
	if err != nil {
		return c, err
	}
	if found == nil {
		if found = srv.store.Policy([]byte(policy)); found == nil { // it came and went
			return c, &CallError{command.NoPolicy(srv.port, []byte(policy))}
		}
	}
	numbers := [5]int64{}
	lines := bytes.SplitN(reply, []byte("\r\n"), len(numbers)+2) // the first is the array's length
	for i := range numbers {
		if i+1 >= len(lines) || len(lines[i+1]) < 2 {
			return c, fmt.Errorf("unexpected reply %q", reply)
		}
		numbers[i], _ = command.ParseInt(lines[i+1][1:])
	}
	c = Check{Limited: numbers[0] == 1, Limit: numbers[1], Remaining: numbers[2], Retry: fromUS(numbers[3]), Reset: fromUS(numbers[4]),
		Policy: found.Name, Count: found.Limit.Count, Period: time.Duration(found.Limit.PeriodNS)}
	if found.Limit.HoldsLeases() {
		c.Period = 0
	}
	return c, nil
}

// fromUS is a duration of µs, of which -1 is never. It ends at 292 years.
func fromUS(us int64) time.Duration {
	if us < 0 {
		return -1
	}
	return time.Duration(min(us, math.MaxInt64/1000)) * time.Microsecond
}
