package resp

import (
	"strings"
	"testing"
)

// Who has not given the password is answered nothing else, also where a pipeline's calls are alike.
func TestAPipelineBeforeAUTH(t *testing.T) {
	for _, call := range []string{"CL.THROTTLE k 4 1 60", "CL.TAKE k 5/1m"} {
		w := newWorld(t, "requirepass", "secret")
		call = frame(strings.Fields(call)...)
		if got, want := w.connect().send(strings.Repeat(call, 3)), strings.Repeat("-"+errNoAuth+"\r\n", 3); got != want {
			t.Errorf("at the start: %q", got)
		}
		c := w.connect()
		c.want("AUTH secret", "+OK\r\n")
		if got, want := c.send(strings.Repeat(call, 3)+"RESET\r\n"+strings.Repeat(call, 3)), "+RESET\r\n"+strings.Repeat("-"+errNoAuth+"\r\n", 3); !strings.HasSuffix(got, want) {
			t.Errorf("after RESET: %q", got)
		}
	}
}
