package decide

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"celld/cell"
	"celld/resp/command/argument"
	"celld/store"
	"celld/store/policy"
)

// The replies of CL.TAKE and CL.MTAKE, and the units of their times.
func TestReplies(t *testing.T) {
	w := newWorld(t)
	const each = "*5\r\n:0\r\n:5\r\n:4\r\n:-1\r\n:12000\r\n"
	for line, want := range map[string]string{
		"CL.TAKE a 5/1m":                                                "*7\r\n:0\r\n:5\r\n:4\r\n:-1\r\n:12000\r\n:1\r\n:0\r\n",
		"CL.TAKE b 5/1m US":                                             "*7\r\n:0\r\n:5\r\n:4\r\n:-1\r\n:12000000\r\n:1\r\n:0\r\n",
		"CL.TAKE c 5/1m FULL":                                           "*8\r\n:0\r\n:5\r\n:4\r\n:-1\r\n:12000\r\n:1\r\n:0\r\n*1\r\n" + each,
		"CL.TAKE d 5/1m 9/1h,algo=window full":                          "*8\r\n:0\r\n:5\r\n:4\r\n:-1\r\n:3600000\r\n:1\r\n:0\r\n*2\r\n" + each + "*5\r\n:0\r\n:9\r\n:8\r\n:-1\r\n:3600000\r\n",
		"CL.TAKE e 5/1m COST 6":                                         "*7\r\n:1\r\n:5\r\n:5\r\n:-1\r\n:0\r\n:0\r\n:0\r\n",
		"CL.TAKE f 5/1m COST 9 UPTO":                                    "*7\r\n:0\r\n:5\r\n:0\r\n:-1\r\n:60000\r\n:5\r\n:0\r\n",
		"CL.TAKE g 5/1m COST 0 UPTO":                                    "*7\r\n:0\r\n:5\r\n:5\r\n:-1\r\n:0\r\n:0\r\n:0\r\n",
		"CL.TAKE h 5/1m COST 9007199254740991":                          "*7\r\n:1\r\n:5\r\n:5\r\n:-1\r\n:0\r\n:0\r\n:0\r\n",
		"CL.MTAKE 2 i 5/1m j 5/1m":                                      "*3\r\n*5\r\n:0\r\n:0\r\n:1\r\n:-1\r\n:0\r\n" + each + each,
		"CL.MTAKE 1 k 5/1m COST 6":                                      "*2\r\n*5\r\n:1\r\n:1\r\n:0\r\n:-1\r\n:0\r\n*5\r\n:1\r\n:5\r\n:5\r\n:-1\r\n:0\r\n",
		"CL.MTAKE 2 l 5/1m m 4/1m US COST 5":                            "*3\r\n*5\r\n:1\r\n:2\r\n:0\r\n:-1\r\n:0\r\n*5\r\n:0\r\n:5\r\n:5\r\n:-1\r\n:0\r\n*5\r\n:1\r\n:4\r\n:4\r\n:-1\r\n:0\r\n",
		"CL.TAKE n 5/1m COST 9007199254740992":                          fails(errCost),
		"CL.TAKE n 5/1m" + strings.Repeat(" COST 1", store.MaxLimits+2): fails(argument.ErrManyCosts, store.MaxLimits),
		"CL.TAKE n 5/1m COST -1":                                        fails(errCost),
		"CL.TAKE n 5/1m COST 1.5":                                       fails(errWhole, "COST", "", "1.5"),
		"CL.TAKE n 5/1m WAIT 5s":                                        fails(errWhole, "WAIT", " of ms", "5s"),
		"CL.TAKE n 5/1m LEASE 0":                                        fails(argument.ErrLease, argument.MaxLeaseMS),
		"CL.TAKE n @none":                                               fails(argument.ErrNoPolicy, "none"),
		"CL.TAKE n 5/1m /":                                              "-ERR invalid limit: count '': expected 1 to 9007199254740991\r\n",
		"CL.TAKE n 5/1m 5":                                              "-ERR invalid limit: limit '5': expected count/period, such as 100/1m\r\n",
		"CL.TAKE n 5/1m @":                                              fails(argument.ErrNoPolicy, ""),
		"CL.TAKE n 5/1m :":                                              fails(argument.ErrOption, ":", words.All()),
		"CL.MTAKE x n 5/1m":                                             fails(errNoPairs),
		"CL.MTAKE 0 n 5/1m":                                             fails(errPairs, store.MaxLimits),
		"CL.MTAKE 129 n 5/1m":                                           fails(errPairs, store.MaxLimits),
		"CL.MTAKE 2 n 5/1m o":                                           fails(errPairsMissing),
		"CL.MTAKE 1 n 5/1m FULL":                                        fails(errFull),
		"CL.MTAKE 1 n 5/1m FULL COST x":                                 fails(errWhole, "COST", "", "x"),
		"CL.MTAKE 1 n x":                                                "-ERR invalid limit: limit 'x': expected count/period, such as 100/1m\r\n",
		"CL.TAKE n" + strings.Repeat(" 5/1m", 129):                      fails(ErrTooManyLimits, 128),
	} {
		w.want(line, want)
	}
	most := strings.Fields("CL.MTAKE 128" + strings.Repeat(" n 5/1m", 128))
	if got := w.do(most...); !strings.HasPrefix(got, "*129\r\n*5\r\n:1\r\n:6\r\n") {
		t.Errorf("128 pairs: %.40q", got)
	}
	for _, options := range []string{"WAIT 60000", "RESERVE 60000000 US"} {
		if got := w.do(strings.Fields("CL.TAKE p 5/1m " + options)...); !strings.HasPrefix(got, "*7\r\n:0\r\n") {
			t.Errorf("%s: %q", options, got)
		}
	}
	w.want("CL.TAKE q 1/1m RESERVE 60000", "*7\r\n:0\r\n:1\r\n:0\r\n:-1\r\n:60000\r\n:1\r\n:0\r\n")
	w.want("CL.TAKE q 1/1m RESERVE 60000", "*7\r\n:0\r\n:1\r\n:0\r\n:-1\r\n:120000\r\n:1\r\n:60000\r\n")
	w.sleep(999 * time.Microsecond)
	w.want("CL.TAKE a 5/1m PEEK US", "*7\r\n:0\r\n:5\r\n:4\r\n:-1\r\n:11999001\r\n:0\r\n:0\r\n")
	w.want("CL.TAKE a 5/1m PEEK", "*7\r\n:0\r\n:5\r\n:4\r\n:-1\r\n:12000\r\n:0\r\n:0\r\n") // rounded up
	got := w.do("CL.TAKE", "r", "2/1m,algo=conc", "FULL")
	if !strings.HasPrefix(got, "*9\r\n:0\r\n:2\r\n:1\r\n") || strings.Contains(got, "\r\n:0\r\n*1") {
		t.Errorf("%q", got)
	}
	if got := w.do("CL.MTAKE", "1", "s", "2/1m,algo=conc"); !strings.HasPrefix(got, "*2\r\n*6\r\n:0\r\n:0\r\n:1\r\n:-1\r\n:0\r\n") {
		t.Errorf("%q", got)
	}
	w.want("CL.TAKE r 2/1m,algo=conc PEEK", "*8\r\n:0\r\n:2\r\n:1\r\n:-1\r\n:60000\r\n:0\r\n:0\r\n:0\r\n")
}

// CL.GIVE gives back at most what was taken.
func TestGive(t *testing.T) {
	w := newWorld(t)
	w.do("CL.TAKE", "k", "5/1m", "COST", "3")
	for _, pair := range [][2]string{
		{"CL.GIVE k 5/1m 0", ":0\r\n"}, {"CL.GIVE k 5/1m 1", ":1\r\n"}, {"CL.GIVE k 5/1m 9", ":2\r\n"}, {"CL.GIVE k 5/1m 1", ":0\r\n"},
		{"CL.GIVE none 5/1m 1", ":0\r\n"}, {"CL.GIVE k 5/1m -1", fails(errGive)}, {"CL.GIVE k 5/1m x", fails(argument.ErrNotInteger)},
		{"CL.GIVE k @none x", fails(argument.ErrNoPolicy, "none")},
	} {
		w.want(pair[0], pair[1])
	}
	for range 100 {
		w.do("CL.TAKE", "c", "1000/1m,algo=conc", "COST", "3")
	}
	w.want("CL.GIVE c 1000/1m,algo=conc 200", ":200\r\n")
	w.want("CL.TAKE c 1000/1m,algo=conc PEEK", "*8\r\n:0\r\n:1000\r\n:900\r\n:-1\r\n:60000\r\n:0\r\n:0\r\n:0\r\n")
	w.want("CL.GIVE c 1000/1m,algo=conc 0", ":0\r\n")
	w.want("CL.GIVE c 1000/1m,algo=conc 200", ":100\r\n")
	for range 3000 { // more than a step gives back
		w.do("CL.TAKE", "d", "3000/1m,algo=conc")
	}
	w.want("CL.GIVE d 3000/1m,algo=conc 2900", ":2900\r\n")
	w.want("CL.GIVE d 3000/1m,algo=conc 2900", ":100\r\n")
	w.do("CL.THROTTLE", "t", "1", "1", "60")
	w.want("CL.GIVE t 5/1m,algo=conc 1", "-ERR "+store.ErrWrongType.Error()+"\r\n")
}

// A call that another store has decided is given back there, also if it holds leases.
func TestGiveElsewhere(t *testing.T) {
	w := newWorld(t)
	w.server.Store = elsewhere{w.server.Store}
	w.do("CL.TAKE", "c", "9/1m,algo=conc", "COST", "3")
	w.asked = nil
	if w.want("CL.GIVE c 9/1m,algo=conc 2", ":2\r\n"); fmt.Sprint(w.asked) != "[1]" {
		t.Errorf("asked: %v", w.asked)
	}
}

type elsewhere struct{ store.Store }

func (elsewhere) InProcess() bool { return false }

// Times that never come, and the longest.
func TestWaitsAreRoundedUp(t *testing.T) {
	for _, test := range []struct {
		ns, unit uint64
		want     int64
	}{{0, 1000, 0}, {1, 1000, 1}, {1000, 1000, 1}, {1001, 1000, 2}, {1<<64 - 1, 1000, -1}, {1<<64 - 2, 1, 1<<63 - 1}} {
		if got := wait(test.ns, test.unit); got != test.want {
			t.Errorf("%d ns in %d: %d, want %d", test.ns, test.unit, got, test.want)
		}
	}
}

// What people mean by a limit that is none is said.
func TestWhatIsMeantByALimit(t *testing.T) {
	w := newWorld(t)
	limit, _ := cell.ParseLimit("5/1m")
	if _, err := w.Store.SetPolicy("api", []cell.Limit{limit}, policy.Options{}); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"CL.TAKE", "k", "api"}, {"CL.TAKE", "k", "5/1m 10/1h"}, {"CL.TAKE", "k", "apis"}} {
		want := map[string]string{"api": "; the policy is @api", "5/1m 10/1h": "; several limits are several arguments"}[args[2]]
		if got := w.do(args...); !strings.HasPrefix(got, "-ERR invalid limit: ") || !strings.HasSuffix(got, want+"\r\n") ||
			want == "" && strings.Contains(got, ";") {
			t.Errorf("%q: %q, want %q", args, got, want)
		}
	}
}
