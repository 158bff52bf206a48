package session

import (
	"cmp"
	"log/slog"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"celld/internal/celldtest"
	"celld/resp/decisions"
	"celld/resp/session/sessiontest"
	"celld/store/memory"
	"celld/store/policy"
	"celld/store/remote"
)

// redisWorld is a world whose keys are on a redis-server, in time that the test turns.
type redisWorld struct {
	*world
	now    atomic.Int64
	movedS int64             // how much later than StartNS it began
	ids    map[string]string // of leases, by those that are recorded: after a conflict, one is skipped
}

// recordedAt is when conversations begin.
var recordedAt = time.Unix(0, sessiontest.StartNS)

func newRedisWorld(t *testing.T, prefix string, settings ...string) *redisWorld {
	socket := strings.TrimPrefix(celldtest.StartRedis(t), "unix:")
	w := &redisWorld{world: newWorld(t, settings...), ids: map[string]string{}}
	const week = 7 * 86400                                               // which all windows divide
	w.movedS = (int64(time.Since(recordedAt).Seconds())/week + 2) * week // so that no key expires by the engine's own time
	w.now.Store(sessiontest.StartNS + w.movedS*1e9)
	policies := &policy.Set{}
	e, err := remote.Open(remote.Options{
		URL: "unix://" + (&url.URL{Path: socket}).EscapedPath(), Prefix: prefix, Policies: policies, Time: w.now.Load,
		Timeout: 10 * time.Second, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	w.Store = memory.New(memory.Options{Shards: 1, Policies: policies})
	w.Keys = w.Store
	w.Decisions, w.Top = decisions.NewRows(policies), decisions.NewTop(policies)
	w.UseEngine(e)
	w.Clock = w.now.Load
	return w
}

// shifted moves the instants in a text, in Unix s, ms, µs or ns, from one time to another, so many seconds later.
func shifted(text string, from time.Time, byS int64) string {
	return instants.ReplaceAllStringFunc(text, func(digits string) string {
		if len(digits) < 10 || (len(digits)-10)%3 != 0 {
			return digits
		}
		unixS, _ := strconv.ParseInt(digits[:10], 10, 64)
		if d := unixS - from.Unix(); d < -1e5 || d > 2e6 {
			return digits
		}
		return strconv.FormatInt(unixS+byS, 10) + digits[10:]
	})
}

var instants = regexp.MustCompile(`\d+`)

// say says a line, and waits for the answer where that takes time.
func (w *redisWorld) say(p *peer, x *celldtest.Exchange) (got string, end bool) {
	moved := *x
	moved.Command = instants.ReplaceAllStringFunc(x.Command, func(id string) string { return cmp.Or(w.ids[id], id) })
	moved.Command = shifted(moved.Command, recordedAt, w.movedS)
	words, raw := moved.Words(w.t)
	text := words[0]
	if !raw {
		text = sessiontest.Frame(words...)
	}
	got = p.finish(p.send(text))
	if strings.HasSuffix(x.Command, " US") { // µs that look like instants
		return got, p.tr.Closed
	}
	return shifted(got, recordedAt.Add(time.Duration(w.movedS)*time.Second), -w.movedS), p.tr.Closed && (raw || got == "")
}

// What is said to celld is answered on a real engine as it is in memory.
func TestConversationsOnRedis(t *testing.T) {
	t.Parallel()
	for _, folder := range []string{"redis", "scripts", "celld"} {
		for _, c := range celldtest.ReadConversations(t, "../testdata/"+folder) {
			switch c.Name {
			case "auth", "info", "server", "slow", "latency", "wait": //  of the table's size, or with settings of their own
				continue
			}
			t.Run(folder+"/"+c.Name, func(t *testing.T) {
				w := newRedisWorld(t, "a*prefix:")
				for _, paragraph := range c.Paragraphs {
					w.play(t, paragraph)
				}
			})
		}
	}
}

// ofTable matches what tells of the table in memory, of digits that are those of the day, or of a key that the engine, whose time is
// another, has not expired.
var ofTable = regexp.MustCompile("^OBJECT IDLETIME|^MEMORY USAGE|^GETRANGE|^RANDOMKEY")

var inAnyOrder = regexp.MustCompile("^(HGETALL|HSCAN|KEYS|SCAN)")

func sameLines(got, recorded string) bool {
	recorded, _ = strconv.Unquote(recorded)
	a, b := strings.Split(got, "\r\n"), strings.Split(recorded, "\r\n")
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}

// asRecorded returns a reply with the IDs of leases that are recorded in place of its own, and notes which are which.
func (w *redisWorld) asRecorded(got, recorded string) string {
	var ids []string
	for _, id := range instants.FindAllString(recorded, -1) {
		if len(id) == 16 {
			ids = append(ids, id)
		}
	}
	return instants.ReplaceAllStringFunc(got, func(own string) string {
		if len(own) != 16 || len(ids) == 0 {
			return own
		}
		id := ids[0]
		ids = ids[1:]
		if w.ids[id] == "" && own > id {
			w.ids[id] = own
		}
		if w.ids[id] == own {
			return id
		}
		return own
	})
}

func (w *redisWorld) play(t *testing.T, paragraph []*celldtest.Exchange) {
	p := w.connect()
	defer p.Closed()
	flush := *paragraph[0]
	flush.Command = "FLUSHALL"
	w.say(p, &flush)
	for _, x := range paragraph {
		if differs.MatchString(x.Command) {
			return
		}
		if d := x.Sleep(); d > 0 {
			w.now.Add(int64(d))
			continue
		}
		got, end := w.say(p, x)
		got = w.asRecorded(got, x.Recorded(false))
		switch {
		case strings.Contains(got, "with --store"):
			return
		case ofTable.MatchString(x.Command):
		case inAnyOrder.MatchString(x.Command) && sameLines(got, x.Recorded(false)):
		case !x.Fits(false, got, end, time.Unix(0, w.now.Load()-w.movedS*1e9)):
			t.Errorf("%q\n %s\ncelld    %q, closed %v\nrecorded %s", paragraph[0].Command, x.Command, got, end, x.Recorded(false))
		}
		if end || x.Command == "RESET" { // which releases leases a moment later
			return
		}
	}
}

// differs matches scripts that are refused for their keys, though the line's reply may not show it.
var differs = regexp.MustCompile(`redis\.call\(["'](SET|EXISTS)["'].*["'] 0`)
