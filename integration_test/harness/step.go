package harness

import (
	"fmt"
	"strings"

	"celld/internal/celldtest"
)

// Step is a command and its reply, without the line end: integers are those of CL.THROTTLE's array of five, or CL.TAKE's of
// seven, and … stands for whatever follows.
type Step [2]string

// Play sends commands one by one. Those that could differ as time passes have limits that take hours.
func (c *Conn) Play(steps ...Step) {
	c.T.Helper()
	for _, s := range steps {
		command := s[0]
		want, open := strings.CutSuffix(s[1], "…")
		if want[0] < '0' || want[0] > '9' {
			if !open {
				want += "\r\n"
			}
		} else {
			words := strings.Fields(want)
			length := len(words)
			if open && strings.HasPrefix(command, "CL.TAKE") {
				length = 7
			} else if open {
				length = 5
			}
			want = fmt.Sprintf("*%d\r\n:%s\r\n", length, strings.Join(words, "\r\n:"))
		}
		got := c.Do(celldtest.SplitQuoted(c.T, command)...)
		if got != want && !(open && strings.HasPrefix(got, want)) && !celldtest.BothSoon(command, got, want) {
			c.T.Errorf("%s\n got %q\nwant %q", command, got, want)
		}
	}
}
