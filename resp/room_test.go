package resp

import (
	"strings"
	"testing"
)

// The log tells when the table begins to refuse, with its bound, and when that is over; the page says so meanwhile.
func TestAFullTableSpeaks(t *testing.T) {
	for bound, settings := range map[string][]string{
		"max-keys":  {"max-keys", "1", "maxmemory-policy", "noeviction"},
		"maxmemory": {"maxmemory", "200", "maxmemory-policy", "noeviction"},
	} {
		w := newWorld(t, settings...)
		c := w.connect()
		logs := func(wants ...string) {
			t.Helper()
			w.log.Reset()
			w.followRoom(w.nowNS)
			got := strings.Split(strings.TrimSuffix(w.log.String(), "\n"), "\n")
			if w.log.Len() == 0 {
				got = nil
			}
			if len(got) != len(wants) || len(wants) > 0 && !strings.Contains(got[0], wants[0]) {
				t.Errorf("%s: %q, want %q", bound, got, wants)
			}
		}
		trouble := func(want bool) {
			t.Helper()
			told := ""
			if want {
				told = "the table is full (" + bound + "), and what is new is refused"
			}
			if got := strings.Join(w.troubles(), ""); got != told {
				t.Errorf("%s: %q", bound, got)
			}
		}
		c.do("CL.TAKE", "a", "5/1d")
		logs()
		trouble(false)
		for range 3 {
			for range 2 {
				if got := c.do("CL.TAKE", "b", "5/1m"); !strings.HasPrefix(got, "-OOM ") || !strings.Contains(got, "'"+bound+"'") {
					t.Errorf("%s: %q", bound, got)
				}
			}
			logs(`msg="the table is full, and what is new is refused" bound=` + bound + " refused=2")
			trouble(true)
			w.sleepMS(9999)
			c.do("CL.TAKE", "b", "5/1m")
			logs() // it goes on
			w.sleepMS(9999)
			logs()
			trouble(true)
			w.sleepMS(1)
			logs("the table has room again")
			trouble(false)
			logs()
		}
	}
}
