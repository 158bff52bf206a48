package resp

import (
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"celld/internal/celldtest"
)

// What is said to celld is answered on an engine as it is in memory. What is refused there says so, and ends the paragraph.
func TestConversationsOnAnEngine(t *testing.T) {
	t.Parallel()
	same, refused := 0, 0
	for _, folder := range []string{"redis", "scripts", "celld"} {
		for _, c := range celldtest.ReadConversations(t, "testdata/"+folder) {
			switch c.Name {
			// of the table's size, with settings of their own, or of leases, whose links the fake does not know
			case "auth", "info", "server", "slow", "lease":
				continue
			}
			synctest.Test(t, func(t *testing.T) {
				w, _ := engineWorld(t, false)
				begin := time.Now()
				w.sessions.Clock = func() int64 { return w.nowNS + int64(time.Since(begin)) }
				for _, paragraph := range c.Paragraphs {
					n, all := w.playOnEngine(t, paragraph)
					same += n
					if !all {
						refused++
					}
				}
			})
		}
	}
	t.Logf("%d lines are answered as in memory, %d paragraphs are not for an engine", same, refused)
	if same < 3700 || refused > 35 {
		t.Errorf("%d lines are answered as in memory, %d paragraphs are not for an engine", same, refused)
	}
}

// playOnEngine says a paragraph until a line is refused, and returns how many were not.
func (w *world) playOnEngine(t *testing.T, paragraph []*celldtest.Exchange) (same int, all bool) {
	p := w.connect()
	defer p.Closed()
	p.do("FLUSHALL")
	for _, x := range paragraph {
		if undeclared.MatchString(x.Command) {
			return same, false
		}
		if d := x.Sleep(); d > 0 {
			celldtest.Pass(d)
			continue
		}
		got, end := p.say(t, x)
		switch {
		case strings.Contains(got, "with --store"):
			return same, false
		case strings.HasPrefix(x.Command, "OBJECT IDLETIME"), strings.HasPrefix(x.Command, "MEMORY USAGE"): // of a table
		case !x.Fits(false, got, end, time.Unix(0, w.sessions.Clock())):
			t.Errorf("%q\n %s\ncelld    %q, closed %v\nrecorded %s", paragraph[0].Command, x.Command, got, end, x.Recorded(false))
		default:
			same++
		}
		if end {
			break
		}
	}
	return same, true
}

// undeclared matches scripts that are refused for their keys, though the line's reply may not show it.
var undeclared = regexp.MustCompile(`redis\.call\(["'](SET|EXISTS)["'].*["'] 0`)
