package engine

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"celld/internal/celldtest"
	"celld/internal/enginetest"
	"celld/resp"
	"celld/resp/command/limit"
	settings "celld/resp/config"
	"celld/resp/door"
	"celld/resp/session/sessiontest"
	"celld/store/memory"
	"celld/store/policy"
	"celld/store/remote"
)

// TestAlike says random conversations to a celld that keeps its keys in memory, and to one that has them on an Engine, in fake time.
// Some commands are asked by their values on the engine. The replies are the same, except for the IDs of leases.
func TestAlike(t *testing.T) {
	t.Parallel()
	r := celldtest.NewRand(t)
	const each = 100
	said, most := 0, 10_000
	if celldtest.Thorough {
		most = 120_000
	}
	for n := 0; said < most && !t.Failed(); n += 10 {
		synctest.Test(t, func(t *testing.T) {
			e := enginetest.Start(t, enginetest.Options{Valkey: n%20 == 0})
			sides := [2]*side{memorySide(), engineSide(t, e)}
			for i := range 10 {
				said += converse(t, r, e, sides, fmt.Sprint(n+i), each)
			}
		})
	}
	t.Log(said, "commands")
}

// side is a celld of a pair.
type side struct {
	server *resp.Server
	id     string // of its last lease
}

func memorySide() *side {
	return newSide(memory.New(memory.Options{Policies: &policy.Set{}}), nil)
}

// engineSide returns a side whose keys are on an Engine, until the test ends.
func engineSide(t *testing.T, e *enginetest.Engine) *side {
	policies := &policy.Set{}
	s, err := remote.Open(remote.Options{URL: e.URL(), Dial: e.Dial, Prefix: "p:", Policies: policies, Time: unixNano,
		Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeStore(s, e) })
	return newSide(memory.New(memory.Options{Policies: policies}), s)
}

func newSide(table *memory.Store, s *remote.Store) *side {
	cfg := settings.New(settings.Part{Rows: settings.Scripts})
	read, err := resp.ReadFiles(cfg)
	if err != nil {
		panic(err)
	}
	o := resp.Options{Config: cfg, Files: read, Store: table, Clock: unixNano, Scripts: sessiontest.Scripts}
	if s != nil {
		o.Engine = s
	}
	return &side{server: resp.NewServer(o)}
}

func unixNano() int64 { return time.Now().UnixNano() }

// leased is the ID of a lease at the end of a reply, and leaseIDs are those in states.
var (
	leased   = regexp.MustCompile(`:(\d{15,16})\r\n$`)
	leaseIDs = regexp.MustCompile(`([=,])\d{15,16}:`)
)

// say returns the reply to a command. The word LEASEID is the ID of the last lease, and stands for all IDs in the reply. The command may be
// asked by its values, as by those who do not speak RESP.
func (s *side) say(t *testing.T, words []string, byValues bool) string {
	words = strings.Split(strings.ReplaceAll(strings.Join(words, "\x00"), "LEASEID", s.id), "\x00")
	text, asked := "", false
	if byValues {
		text, asked = s.ask(t, words)
	}
	if !asked {
		text = sessiontest.Do(s.server.Sessions(), words...)
	}
	if strings.HasPrefix(words[0], "CL.TAKE") {
		if id := leased.FindStringSubmatch(text); id != nil {
			s.id = id[1]
			text = leased.ReplaceAllString(text, ":LEASEID\r\n")
		}
	}
	if words[0] == "HGETALL" {
		lines := strings.Split(leaseIDs.ReplaceAllString(text, "${1}LEASEID:"), "\r\n")
		slices.Sort(lines)
		text = strings.Join(lines, "\r\n")
	}
	return text
}

// ask asks a command of a key and numbers by its values, and returns what RESP would reply. It returns false for another command.
func (s *side) ask(t *testing.T, words []string) (reply string, asked bool) {
	var numbers []int64
	for _, word := range words[min(2, len(words)):] {
		if n, err := strconv.ParseInt(word, 10, 64); err == nil {
			numbers = append(numbers, n)
		}
	}
	var err error
	from := door.Caller{Addr: "test", Trusted: true}
	switch words[0] {
	case "CL.RELEASE", "CL.RENEW", "CL.SETTLE":
		var did bool
		l := limit.LeaseChange{Command: strings.ToLower(words[0]), Key: []byte(words[1]), ID: numbers[0], N: numbers[len(numbers)-1]}
		if slices.Contains(words, "OF") {
			return "", false
		}
		did, err = s.server.Door.ChangeLease(from, l)
		reply = fmt.Sprintf(":%d\r\n", map[bool]int{true: 1}[did])
	case "CL.GIVE":
		give := door.Ask{Key: words[1], Limits: words[2:3], Options: []door.Option{{Name: "GIVE", N: numbers[0]}}}
		if len(words) > 4 {
			give.Options = append(give.Options, door.Option{Name: "OF", Text: words[5]})
		}
		problem := s.server.Door.Take(t.Context(), from, []door.Ask{give}, func(taken *door.Taken, wrong error) {
			if err = wrong; wrong == nil {
				reply = fmt.Sprintf(":%d\r\n", -taken.Granted)
			}
		})
		err = cmp.Or(err, problem)
	case "CL.THROTTLE":
		var d door.Throttled
		d, err = s.server.Door.Throttle(from, words[1], [4]int64(append(numbers, 1)[:4]))
		reply = fmt.Sprintf("*5\r\n:%d\r\n:%d\r\n:%d\r\n:%d\r\n:%d\r\n", map[bool]int{true: 1}[d.Limited], d.Limit, d.Remaining,
			d.Retry, d.Reset)
	default:
		return "", false
	}
	if err != nil {
		reply = "-" + err.Error() + "\r\n"
	}
	return reply, true
}

// converse says some commands about keys of their own, and returns how many. It ends where replies differ.
func converse(t *testing.T, r *rand.Rand, e *enginetest.Engine, sides [2]*side, number string, most int) (said int) {
	var told []string
	for _, s := range sides {
		s.id = "1"
	}
	for range most {
		pass := time.Duration(pick64(r, 0, 0, 0, 0, 1000, 1e6, 313e6, 991e6, 1013e6, 2029e6, 10037e6))
		celldtest.Pass(pass)
		for strings.Contains(raw(t, e, e.Nodes()[0], "PTTL p:k"+number+"a", "PTTL p:k"+number+"b"), ":0\r\n") {
			celldtest.Pass(time.Millisecond) // an engine's key lives until the end of that ms
		}
		words := drawn(r)
		for i := range words {
			words[i] = strings.ReplaceAll(words[i], "KEY", "k"+number)
		}
		if pass > 0 {
			told = append(told, fmt.Sprint("  ", pass, " pass"))
		}
		want, got := sides[0].say(t, words, false), sides[1].say(t, words, r.IntN(2) == 0)
		said++
		told = append(told, fmt.Sprintf("%q %q", words, want))
		if got != want && !nearly(words[0], want, got) {
			t.Errorf("%s\nat %d on an engine %q", strings.Join(told[max(0, len(told)-25):], "\n"), unixNano(), got)
			return said
		}
		if words[0] == "DEL" || words[0] == "UNLINK" || words[0] == "CL.RESET" {
			if there := raw(t, e, e.Nodes()[0], "EXISTS p:"+words[1]); there != ":0\r\n" {
				t.Errorf("%s\nat %d the engine still has the key: %q", strings.Join(told[max(0, len(told)-25):], "\n"), unixNano(),
					raw(t, e, e.Nodes()[0], "TYPE p:"+words[1]))
				return said
			}
		}
	}
	return said
}

// nearly reports whether two expiries differ by so little that an engine cannot tell an EXPIRE from the TAT, which is not in whole ms.
func nearly(command, want, got string) bool {
	var a, b int64
	_, errA := fmt.Sscanf(want, ":%d", &a)
	_, errB := fmt.Sscanf(got, ":%d", &b)
	most := map[string]int64{"PTTL": 2, "PEXPIRETIME": 2, "TTL": 1, "EXPIRETIME": 1}[command]
	return errA == nil && errB == nil && a > 0 && b > 0 && a-b <= most && b-a <= most
}

// drawnForms are commands: k is a key, n an integer, s seconds, m ms, t an instant in seconds and T in ms, l a limit, c a cost, and p a
// policy.
var drawnForms = []string{
	"INCR k", "INCR k", "DECR k", "INCRBY k n", "DECRBY k n", "INCREX k", "INCREX k BYINT n", "INCREX k BYINT n UBOUND n SATURATE",
	"INCREX k EX s", "INCREX k PX m ENX", "INCREX k EX s ENX UBOUND 3", "INCREX k LBOUND n SATURATE EX s", "INCREX k EXAT t",
	"INCREX k PXAT T",
	"INCREX k NX BYINT n", "INCREX k XX BYINT n PERSIST", "INCREX k SATURATE BYINT n", "INCREX k PERSIST",
	"SET k n", "SET k n EX s", "SET k n PX m", "SET k n EXAT t", "SET k n KEEPTTL", "SET k n NX", "SET k n XX GET", "SET k n PXAT T",
	"SETNX k n", "GETSET k n", "GETDEL k", "GETEX k EX s", "GETEX k PERSIST", "GETEX k EXAT t", "GET k", "STRLEN k", "SETEX k s n",
	"EXISTS k", "TYPE k", "DEL k", "DEL k", "UNLINK k k", "TTL k", "PTTL k", "EXPIRETIME k", "PEXPIRETIME k",
	"EXPIRE k s", "PEXPIRE k m", "EXPIREAT k t", "PEXPIREAT k T", "EXPIRE k s NX", "EXPIRE k s GT", "EXPIRE k s LT", "PERSIST k",
	"RENAME k k", "RENAMENX k k", "COPY k k", "COPY k k REPLACE",
	"CL.THROTTLE k 3 7 10", "CL.THROTTLE k 3 7 10", "CL.THROTTLE k 5 3 100", "CL.THROTTLE k 3 7 10 c", "CL.THROTTLE k 1 3 10000001 c",
	"CL.TAKE k l", "CL.TAKE k l", "CL.TAKE k l COST c", "CL.TAKE k l l", "CL.TAKE k l PEEK", "CL.TAKE k l COST c UPTO",
	"CL.TAKE k l LEASE m",
	"CL.TAKE k l COST c LEASE m", "CL.GIVE k l 1", "CL.RELEASE k LEASEID", "CL.RENEW k LEASEID m", "CL.SETTLE k LEASEID c", "CL.RESET k",
	"CL.TAKE k l l COST c OF x", "CL.TAKE k l l COST c COST c OF x COST c OF y", "CL.TAKE k l l COST c OF y LEASE m",
	"CL.SETTLE k LEASEID c OF x", "CL.SETTLE k LEASEID c c OF y", "CL.GIVE k l c OF x", "CL.TAKE k @p COST c OF x LEASE m",
	"CL.POLICY SET p l l",
	"CL.POLICY SET p l", "CL.POLICY SET p l RESET", "CL.POLICY DEL p", "CL.POLICY DEL p", "CL.TAKE k @p", "CL.TAKE k @p",
	"CL.TAKE k @p LEASE m",
	"HGETALL k", "HLEN k",
}

// drawn is a random command.
func drawn(r *rand.Rand) (words []string) {
	now := time.Now()
	for word := range strings.FieldsSeq(drawnForms[r.IntN(len(drawnForms))]) {
		switch word {
		case "k":
			word = pick(r, "KEYa", "KEYa", "KEYb")
		case "n":
			word = pick(r, "0", "1", "-1", "7", "-7", "999999999999998", "999999999999999", "1000000000000000", "-999999999999999",
				"9007199254740991", "9007199254740993", "-9007199254740993", "100000000000000", "9223372036854775807",
				"-9223372036854775808", "9223372036854775808", "18446744073709551615",
				fmt.Sprint(now.UnixMicro()), fmt.Sprint(now.Add(-3*time.Second).UnixNano()),
				fmt.Sprint(now.Add(2345*time.Millisecond).UnixNano()), fmt.Sprint(now.Add(41*24*time.Hour+456*time.Millisecond).UnixNano()),
				fmt.Sprint(-now.UnixNano()), fmt.Sprint(now.Add(time.Second+time.Duration(r.IntN(2e9))).UnixNano()))
		case "s":
			word = pick(r, "0", "-1", "1", "2", "3", "10", "100", "3500", "9000000000")
		case "m":
			word = pick(r, "0", "-1", "1", "999", "1000", "2500", "10000", "3600000", "9000000000000")
		case "t":
			word = pick(r, "1", fmt.Sprint(now.Unix()), fmt.Sprint(now.Unix()+1), fmt.Sprint(now.Unix()+5), "4102444800", "9223372036",
				"9223372037", "9300000000")
		case "T":
			word = pick(r, "1", fmt.Sprint(now.UnixMilli()), fmt.Sprint(now.UnixMilli()+1), fmt.Sprint(now.UnixMilli()+1500),
				"4102444800000",
				"9223372036854", "9223372036855", "9300000000000")
		case "c":
			word = pick(r, "0", "1", "2", "3", "9", "-1")
		case "l":
			word = pick(r, "3/2s", "5/11s", "2/1m", "3/5s,algo=window", "4/4s,algo=slide,buckets=2", "3/3s,algo=log", "2/2s,algo=conc",
				"3/1s,block=2s", "9/1h", "3/2s,name=x", "4/2s,name=y", "2/1m,algo=log,name=x", "3/day,from=04:00")
		case "p":
			word = pick(r, "p1", "p2")
		case "@p":
			word = pick(r, "@p1", "@p2")
		}
		words = append(words, word)
	}
	return words
}
