package take

import (
	"fmt"
	"strings"
	"testing"

	"celld/integration_test/harness"
)

// intsReply is an array of integers, and behind them what is nested.
func intsReply(ints string, nested ...string) string {
	words := strings.Fields(ints)
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(words)+len(nested))
	for _, word := range words {
		fmt.Fprintf(&b, ":%s\r\n", word)
	}
	return b.String() + strings.Join(nested, "")
}

// takeSteps are calls of one key, k, that arrive together, and the reply to the last: what CL.TAKE's array has, and behind
// slashes that of each limit if FULL is asked for.
var takeSteps = []struct{ calls, want string }{
	{"k 100/1m", "0 100 99 -1 600 1 0"},
	{"k 100/1m COST 3", "0 100 97 -1 1800 3 0"},
	{"k 100/1m cost 3 us", "0 100 97 -1 1800000 3 0"},
	{"k 100/1m US", "0 100 99 -1 600000 1 0"},
	{"k 3/1s US", "0 3 2 -1 333334 1 0"},
	{"k 3/1s", "0 3 2 -1 334 1 0"},
	{"k 100/1m COST 0", "0 100 100 -1 0 0 0"},
	{"k 100/1m COST 0 FORCE", "0 100 100 -1 0 0 0"},
	{"k 100/1m PEEK", "0 100 100 -1 0 0 0"},
	{"k 100/1m PEEK COST 101", "1 100 100 -1 0 0 0"},
	{"k 100/1m COST 101", "1 100 100 -1 0 0 0"},
	{"k 100/1m COST 100", "0 100 0 -1 60000 100 0"},
	{"k 100/1m COST 2147483647", "1 100 100 -1 0 0 0"},
	{"k 100/1m COST 150 UPTO", "0 100 0 -1 60000 100 0"},
	{"k 100/1m COST 150 FORCE", "0 100 0 -1 90000 150 0"},
	{"k 100/1m COST 150 FORCE; k 100/1m", "1 100 0 30600 90000 0 0"},
	{"k 100/1m COST 100; k 100/1m UPTO COST 5", "1 100 0 600 60000 0 0"},
	{"k 100/1m COST 97; k 100/1m UPTO COST 5", "0 100 0 -1 60000 3 0"},
	{"k 10/1m,burst=3 COST 2; k 10/1m,burst=3", "0 3 0 -1 18000 1 0"},
	{"k 1/1m,burst=1; k 1/1m,burst=1", "1 1 0 60000 60000 0 0"},
	{"k 5/1h,algo=window COST 4; k 5/1h,algo=window COST 2", "1 5 1 3600000 3600000 0 0"},
	{"k 5/1h,algo=log COST 4; k 5/1h,algo=log COST 2", "1 5 1 3600000 3600000 0 0"},
	{"k 5/1h,algo=log,block=2h COST 5; k 5/1h,algo=log,block=2h", "1 5 0 7200000 7200000 0 0"},
	{"k 1/1m,shadow COST 2", "0 1 1 -1 0 2 0"},
	{"k 100/1m FULL", "0 100 99 -1 600 1 0/0 100 99 -1 600"},
	{"k 100/1m 10/1h 5/1s,algo=log FULL", "0 5 4 -1 360000 1 0/0 100 99 -1 600/0 10 9 -1 360000/0 5 4 -1 1000"},
	{"k 100/1m 10/1h FULL COST 11", "1 10 10 -1 0 0 0/0 100 100 -1 0/1 10 10 -1 0"},
	{"k 10/1h COST 10; k 100/1m 10/1h FULL", "1 10 0 360000 3600000 0 0/0 100 100 -1 0/1 10 0 360000 3600000"},
	{"k 10/1h COST 10; k 100/1m 10/1h,shadow FULL", "0 100 99 -1 3600000 1 0/0 100 99 -1 600/1 10 0 360000 3600000"},
	{"k 100/1m COST 10; k 200/1m", "0 200 179 -1 6300 1 0"}, // what was used is kept in proportion
	{"k 100/1m COST 10; k 10/1m", "0 10 8 -1 12000 1 0"},
	{"k 10/1m COST 4; k 100/1m", "0 100 59 -1 24600 1 0"},
}

func TestTake(t *testing.T) {
	t.Parallel()
	srv := harness.Start(t)
	for _, protocol := range []string{"2", "3"} {
		c := harness.Dial(t, srv.Addr)
		c.Do("HELLO", protocol)
		for _, step := range takeSteps {
			harness.Again(t, func(string) string {
				c.Do("CL.RESET", "k")
				calls := strings.Split(step.calls, "; ")
				var batch []byte
				for _, call := range calls {
					batch = append(batch, harness.Frame(append([]string{"CL.TAKE"}, strings.Fields(call)...)...)...)
				}
				c.Send(batch)
				var got string
				for range calls {
					got = c.Reply()
				}
				words := strings.Split(step.want, "/")
				var nested []string
				if len(words) > 1 {
					limits := fmt.Sprintf("*%d\r\n", len(words)-1)
					for _, ints := range words[1:] {
						limits += intsReply(ints)
					}
					nested = []string{limits}
				}
				if want := intsReply(words[0], nested...); got != want {
					return fmt.Sprintf("CL.TAKE %s\n got %q\nwant %q", step.calls, got, want)
				}
				return ""
			})
		}
	}
}

// TestTakeMany asks for several keys, and gives back.
func TestTakeMany(t *testing.T) {
	t.Parallel()
	srv := harness.Start(t)
	for _, protocol := range []string{"2", "3"} {
		c := harness.Dial(t, srv.Addr)
		c.Do("HELLO", protocol)
		c.Do("FLUSHALL")
		for _, step := range []struct{ call, want string }{
			{"CL.MTAKE 2 a 10/1h b 5/1h COST 2", "0 0 2 -1 0/0 10 8 -1 720000/0 5 3 -1 1440000"},
			{"CL.MTAKE 2 c 10/1h c 10/1h COST 2", "0 0 2 -1 0/0 10 8 -1 720000/0 10 6 -1 1440000"},
			{"CL.MTAKE 2 d 10/1h d 10/1h COST 6", "1 2 0 -1 0/0 10 10 -1 0/1 10 10 -1 0"},
			{"CL.MTAKE 2 e 10/1h d 5/1h COST 6", "1 2 0 -1 0/0 10 10 -1 0/1 5 5 -1 0"},
			{"CL.MTAKE 2 d 5/1h e 10/1h COST 6 US", "1 1 0 -1 0/1 5 5 -1 0/0 10 10 -1 0"},
			{"CL.MTAKE 2 d 5/1h e 10/1h COST 6 UPTO", "0 0 5 -1 0/0 5 0 -1 3600000/0 10 5 -1 1800000"},
			{"CL.MTAKE 1 f 5/1h PEEK", "0 0 0 -1 0/0 5 5 -1 0"},
			{"CL.MTAKE 1 f 5/1h FORCE COST 7", "0 0 7 -1 0/0 5 0 -1 5040000"},
		} {
			parts := strings.Split(step.want, "/")
			want := fmt.Sprintf("*%d\r\n", len(parts)) + intsReply(parts[0])
			for _, ints := range parts[1:] {
				want += intsReply(ints)
			}
			if got := c.Do(strings.Fields(step.call)...); got != want {
				t.Errorf("%s\n got %q\nwant %q", step.call, got, want)
			}
		}
		if got := harness.KeyList(c.Do("KEYS", "*")); len(got) != 6 {
			t.Errorf("KEYS: %q, want a to f", got)
		}
		for _, step := range []struct{ call, want string }{
			{"CL.TAKE g 10/1h COST 4", ""}, {"CL.GIVE g 10/1h 3", "3"}, {"CL.GIVE g 10/1h 3", "1"}, {"EXISTS g", "0"}, {"CL.GIVE g 10/1h 3", "0"},
			{"CL.TAKE g 10/1h,algo=window COST 4", ""}, {"CL.GIVE g 10/1h 3", "0"}, {"CL.GIVE g 10/1h,algo=window 0", "0"}, {"CL.GIVE g 10/1h,algo=window 9223372036854775807", "4"}, {"EXISTS g", "0"},
			{"CL.TAKE g 10/1h,algo=log COST 4", ""}, {"CL.GIVE g 10/1h,algo=log 1", "1"}, {"CL.GIVE g 10/1h,algo=log 9", "3"},
			{"CL.TAKE g 10/1h,algo=slide COST 4", ""}, {"CL.GIVE g 10/1h,algo=slide 9", "4"},
			{"CL.TAKE g 10/1h,algo=slide,buckets=6 COST 4", ""}, {"CL.GIVE g 10/1h,algo=slide,buckets=6 9", "4"}, {"EXISTS g", "0"},
			{"CL.RESET a b nosuch", "2"},
		} {
			if got := c.Do(strings.Fields(step.call)...); step.want != "" && got != ":"+step.want+"\r\n" || got[0] == '-' {
				t.Errorf("%s: %q, want %s", step.call, got, step.want)
			}
		}
	}
}
