package celldtest

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Update tells the tests that read conversations to record what is answered now.
var Update = flag.Bool("update", false, "record the replies of conversations anew")

// A Conversation is a file of commands and the replies that celld gives. Each paragraph has a connection of its own, and begins
// with no keys. resp/testdata/redis/connection.txt says how such a file reads.
type Conversation struct {
	Name       string
	Paragraphs [][]*Exchange
	path       string
	lines      []*Exchange
}

// Exchange is a command as it stands in the file, and what is recorded of its replies: in RESP2, and in RESP3 where that differs.
type Exchange struct {
	Command string
	replies []string
}

// varies stands for a reply that is another one each time, and like stands before one whose numbers are, which are written as 0.
const (
	varies = "varies"
	like   = "like "
)

var numbers = regexp.MustCompile(`[0-9a-f]{40}|-?[0-9][0-9.]*[KMG]?`)

// ReadConversations reads the files of a folder.
func ReadConversations(t testing.TB, folder string) (all []*Conversation) {
	t.Helper()
	paths, err := filepath.Glob(folder + "/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatal(folder, paths, err)
	}
	for _, path := range paths {
		c := &Conversation{Name: strings.TrimSuffix(filepath.Base(path), ".txt"), path: path}
		c.read(ReadFile(t, path))
		all = append(all, c)
	}
	return all
}

func (c *Conversation) read(text string) {
	var paragraph []*Exchange
	for line := range strings.Lines(text + "\n") {
		line = strings.TrimSuffix(line, "\n")
		if reply, ok := strings.CutPrefix(line, "  "); ok {
			last := c.lines[len(c.lines)-1]
			last.replies = append(last.replies, reply)
			continue
		}
		x := &Exchange{Command: line}
		c.lines = append(c.lines, x)
		switch {
		case line == "" && len(paragraph) > 0:
			c.Paragraphs, paragraph = append(c.Paragraphs, paragraph), nil
		case line != "" && line[0] != '#':
			paragraph = append(paragraph, x)
		}
	}
}

// Write writes the file with what was recorded.
func (c *Conversation) Write(t testing.TB) {
	t.Helper()
	var b strings.Builder
	for _, x := range c.lines {
		b.WriteString(x.Command + "\n")
		for _, reply := range x.replies {
			b.WriteString("  " + reply + "\n")
		}
	}
	if err := os.WriteFile(c.path, []byte(strings.TrimRight(b.String(), "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Words are those of the command; raw says that there is one, which is sent as it is.
func (x *Exchange) Words(t testing.TB) (words []string, raw bool) {
	t.Helper()
	text, raw := strings.CutPrefix(x.Command, "raw ")
	return SplitQuoted(t, digestOf.ReplaceAllStringFunc(text, func(s string) string { return Digest(s[len("sha1'") : len(s)-1]) })), raw
}

// Sleep is how long a line such as `sleep 1.5` has to pass, in seconds, or 0: only tests in fake time play it.
func (x *Exchange) Sleep() time.Duration {
	seconds, sleeps := strings.CutPrefix(x.Command, "sleep ")
	if !sleeps {
		return 0
	}
	d, _ := time.ParseDuration(seconds + "s")
	return d
}

// digestOf is sha1'script', which stands for the script's SHA-1, as EVALSHA wants it.
var digestOf = regexp.MustCompile(`sha1'([^']*)'`)

// Record notes a reply, and whether the connection was closed behind it.
func (x *Exchange) Record(resp3 bool, reply string, end bool, now time.Time) {
	is := written(x.Command, reply, now)
	if len(x.replies) > 0 && strings.HasPrefix(x.replies[0], like) {
		is = like + strconv.Quote(numbers.ReplaceAllString(reply, "0"))
	}
	if end {
		is += " end"
	}
	switch {
	case len(x.replies) > 0 && x.replies[0] == varies:
	case !resp3:
		x.replies = []string{is}
	case len(x.replies) == 0 || !x.Fits(false, reply, end, now):
		x.replies = append(x.replies[:min(1, len(x.replies))], is)
	}
}

// Recorded is what is recorded, as it stands in the file.
func (x *Exchange) Recorded(resp3 bool) string {
	switch {
	case len(x.replies) == 0:
		return "nothing"
	case resp3:
		return x.replies[len(x.replies)-1]
	}
	return x.replies[0]
}

// Fits says whether a reply is the recorded one. The replies to commands of clockTolerance may be seconds apart.
func (x *Exchange) Fits(resp3 bool, reply string, end bool, now time.Time) bool {
	recorded := x.Recorded(resp3)
	if recorded == varies {
		return true
	}
	if text, ok := strings.CutPrefix(recorded, like); ok {
		return !end && strconv.Quote(numbers.ReplaceAllString(reply, "0")) == text
	}
	text, recordedEnd := strings.CutSuffix(recorded, " end")
	want, _ := strconv.Unquote(timed(x.Command, text, now))
	return end == recordedEnd && (written(x.Command, reply, now) == text || BothSoon(x.Command, reply, want))
}

// perSecond are the units of commands whose replies are instants. Those near the present are recorded as seconds from now.
var perSecond = map[string]int64{"EXPIRETIME": 1, "PEXPIRETIME": 1000}

const nearly = 10 * 365 * 24 * 3600

// written is a reply as it stands in a file: quoted, or, of a long one, its length and SHA-1.
func written(command, reply string, now time.Time) string {
	name, _, _ := strings.Cut(command, " ")
	if unit, at := perSecond[name], IntReply(reply); unit > 0 && at > 0 {
		if seconds := (at*1000/unit - now.UnixMilli() + 500) / 1000; max(seconds, -seconds) < nearly {
			return fmt.Sprintf(`":now+%d\r\n"`, seconds)
		}
	}
	if len(reply) > 5000 {
		return fmt.Sprintf("%d bytes, SHA-1 %s", len(reply), Digest(reply))
	}
	return strconv.Quote(reply)
}

// timed puts an instant in place of the seconds from now.
func timed(command, recorded string, now time.Time) string {
	var seconds int64
	name, _, _ := strings.Cut(command, " ")
	if _, err := fmt.Sscanf(recorded, `":now+%d`, &seconds); err != nil {
		return recorded
	}
	return fmt.Sprintf(`":%d\r\n"`, (now.UnixMilli()+seconds*1000)*perSecond[name]/1000)
}
