package decide

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"celld/cell"
	"celld/resp/command/argument"
	"celld/store"
	"celld/store/memory"
)

// Options that do not go together, or stand in the wrong place, get one clear error, and take nothing.
func TestTermsThatDoNotFit(t *testing.T) {
	p := newWorld(t)
	for options, want := range map[string]string{
		"WAIT":                                  fmt.Sprintf(argument.ErrOptionValue, "WAIT"),
		"RESERVE":                               fmt.Sprintf(argument.ErrOptionValue, "RESERVE"),
		"LEASE":                                 fmt.Sprintf(argument.ErrOptionValue, "LEASE"),
		"ID":                                    fmt.Sprintf(argument.ErrOptionValue, "ID"),
		"WAIT x":                                fmt.Sprintf(errWhole, "WAIT", " of ms", "x"),
		"WAIT 1.5":                              fmt.Sprintf(errWhole, "WAIT", " of ms", "1.5"),
		"LEASE x":                               fmt.Sprintf(errWhole, "LEASE", " of ms", "x"),
		"WAIT -1":                               fmt.Sprintf(ErrWaitMax, 60_000),
		"WAIT 60001":                            fmt.Sprintf(ErrWaitMax, 60_000),
		"RESERVE 60001":                         fmt.Sprintf(ErrWaitMax, 60_000),
		"RESERVE 60000001 US":                   fmt.Sprintf(ErrWaitMax, 60_000),
		"US WAIT 60000001":                      fmt.Sprintf(ErrWaitMax, 60_000),
		"WAIT 9223372036854775807":              fmt.Sprintf(ErrWaitMax, 60_000),
		"WAIT 1 WAIT 1":                         fmt.Sprintf(argument.ErrOptionTwice, "WAIT"),
		"WAIT 1 RESERVE 1":                      errTakeModes,
		"WAIT 1 PEEK":                           errTakeModes,
		"UPTO WAIT 1":                           errTakeModes,
		"FORCE RESERVE 1":                       errTakeModes,
		"RESERVE 1 FORCE":                       errTakeModes,
		"LEASE 0":                               fmt.Sprintf(argument.ErrLease, argument.MaxLeaseMS),
		"LEASE 31622400001":                     fmt.Sprintf(argument.ErrLease, argument.MaxLeaseMS),
		"LEASE 9223372036854775807":             fmt.Sprintf(argument.ErrLease, argument.MaxLeaseMS),
		"LEASE 1 LEASE 1":                       fmt.Sprintf(argument.ErrOptionTwice, "LEASE"),
		"LEASE 1 BIND BIND":                     fmt.Sprintf(argument.ErrOptionTwice, "BIND"),
		"LEASE 1 ID a ID a":                     fmt.Sprintf(argument.ErrOptionTwice, "ID"),
		"ID a":                                  errNoLease,
		"BIND":                                  errNoLease,
		"COST 0 BIND":                           errNoLease,
		"COST 1 COST 1":                         fmt.Sprintf(argument.ErrOptionTwice, "COST"),
		"LEASE 1 ID " + strings.Repeat("x", 65): fmt.Sprintf(errLeaseName, 64),
	} {
		p.want("CL.TAKE k 5/1h "+options, "-"+want+"\r\n")
		p.want("CL.MTAKE 1 k 5/1h "+options, "-"+want+"\r\n")
	}
	if got, want := p.do("CL.TAKE", "k", "5/1h", "LEASE", "1", "ID", ""), "-"+fmt.Sprintf(errLeaseName, 64)+"\r\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	unbookable := cell.AlgoNames(func(a cell.Algo) bool { return !a.Bookable() })
	for _, limit := range []string{"5/1h,algo=slide", "5/1h,algo=slide,buckets=3", "5/1h,algo=log"} {
		p.want("CL.TAKE k 5/1s "+limit+" RESERVE 0", "-"+fmt.Sprintf(errReserve, unbookable)+"\r\n")
	}
	p.want("CL.MTAKE 1 k 5/1h FULL WAIT 1", "-"+errFull+"\r\n")
	if n := p.Store.Len(p.NowNS); n != 0 {
		t.Errorf("%d keys", n)
	}
	p.cfg.WaitMax.Put(10)
	p.want("CL.TAKE k 5/1h WAIT 11", fails(ErrWaitMax, 10))
}

// asks keeps what is asked for, and answers at once.
type asks struct {
	*memory.Store
	terms []store.Terms
}

func (a *asks) TakeBatch(reqs []store.TakeRequest, x store.Access, w store.Waker) bool {
	for i := range reqs {
		if reqs[i].Terms != nil {
			a.terms = append(a.terms, *reqs[i].Terms)
		}
	}
	done := a.Store.TakeBatch(reqs, x, w)
	for i := range reqs {
		if reqs[i].Terms != nil {
			reqs[i].Terms.WaitNS, reqs[i].Terms.Lease = 1_500_001, 77
		}
	}
	return done
}

// Whatever their order, options ask for the same, and the reply has its place for each.
func TestTermsAreAskedFor(t *testing.T) {
	p := newWorld(t)
	a := &asks{Store: p.Store}
	p.limiter = a
	const hour = int64(time.Hour)
	for _, test := range []struct {
		options string
		terms   store.Terms
		lease   string
	}{
		{"WAIT 20", store.Terms{Mode: store.Wait, MaxNS: 20e6}, ""},
		{"WAIT 20 US", store.Terms{Mode: store.Wait, MaxNS: 20e3}, ""},
		{"US WAIT 20", store.Terms{Mode: store.Wait, MaxNS: 20e3}, ""},
		{"wait 0", store.Terms{Mode: store.Wait}, ""},
		{"RESERVE 60000", store.Terms{Mode: store.Reserve, MaxNS: 60e9}, ""},
		{"US RESERVE 60000000", store.Terms{Mode: store.Reserve, MaxNS: 60e9}, ""},
		{"LEASE 3600000", store.Terms{LeaseNS: hour}, ":77\r\n"},
		{"US LEASE 3600000", store.Terms{LeaseNS: hour}, ":77\r\n"},
		{"ID me BIND LEASE 3600000 WAIT 5", store.Terms{Mode: store.Wait, MaxNS: 5e6, LeaseNS: hour, Bound: true, Name: "me"}, ":77\r\n"},
		{"FORCE LEASE 1", store.Terms{LeaseNS: 1e6}, ":77\r\n"},
		{"UPTO LEASE 31622400000", store.Terms{LeaseNS: cell.MaxPeriodNS}, ":77\r\n"},
	} {
		wait := ":2\r\n"
		if strings.Contains(test.options, "US") {
			wait = ":1501\r\n"
		}
		a.terms = nil
		key := fmt.Sprint("k ", test.options)
		got := p.do(append([]string{"CL.TAKE", key, "5/1h,algo=window"}, strings.Fields(test.options)...)...)
		if !strings.HasSuffix(got, wait+test.lease) || len(a.terms) != 1 || a.terms[0] != test.terms {
			t.Errorf("%s: %q, %+v", test.options, got, a.terms)
		}
		got = p.do(append([]string{"CL.MTAKE", "1", key, "5/1h,algo=window"}, strings.Fields(test.options)...)...)
		head, fields := "*2\r\n*5\r\n", 6
		if test.lease != "" {
			head, fields = "*2\r\n*6\r\n", 7
		}
		end := strings.Join(strings.SplitAfter(got, "\r\n")[:fields+1], "")
		if !strings.HasPrefix(got, head) || !strings.HasSuffix(end, wait+test.lease) {
			t.Errorf("%s: %q", test.options, got)
		}
	}

	a.terms = nil
	keys := p.Store.Len(p.NowNS)
	for _, options := range []string{"COST 0 WAIT 5", "RESERVE 5 COST 0", "COST 0 LEASE 5 BIND ID x", "PEEK LEASE 5"} { // which only look
		want := "*7\r\n"
		if strings.Contains(options, "LEASE") {
			want = "*8\r\n"
		}
		got := p.do(append([]string{"CL.TAKE", "k", "5/1h"}, strings.Fields(options)...)...)
		if !strings.HasPrefix(got, want) || !strings.HasSuffix(got, ":0\r\n:0\r\n") {
			t.Errorf("%s: %q", options, got)
		}
	}
	if len(a.terms) > 0 {
		t.Errorf("%+v", a.terms)
	}
	if n := p.Store.Len(p.NowNS) - keys; n != 0 {
		t.Errorf("%d keys", n)
	}
}

// An option of celld's own commands that is unknown, given twice or without its value is an error that says which and names the word.
func TestOptionsOfLimits(t *testing.T) {
	p := newWorld(t)
	unknown := func(word string) string {
		return "unknown option '" + word + "': expected COST, OF, WAIT, RESERVE, LEASE, ID, PEEK, UPTO, FORCE, BIND, US, FULL or NAMED"
	}
	for call, want := range map[string]string{
		"CL.TAKE k 10/1s COSTS 3":                     unknown("COSTS"),
		"CL.TAKE k 10/1s COST 3 cost 3":               "option COST is given twice",
		"CL.TAKE k 10/1s us US":                       "option US is given twice",
		"CL.TAKE k 10/1s PEEK PEEK":                   "option PEEK is given twice",
		"CL.TAKE k 10/1s LEASE 5 BIND BIND":           "option BIND is given twice",
		"CL.TAKE k 10/1s FULL Cost":                   "option COST needs a value",
		"CL.TAKE k 10/1s PEEK 9/1s":                   unknown("9/1s"),
		"CL.MTAKE 1 k 10/1s WAIT":                     "option WAIT needs a value",
		"CL.MTAKE 1 k 10/1s l 9/1h":                   unknown("l"),
		"CL.TAKE k 10/1s " + strings.Repeat("x", 130): unknown(strings.Repeat("x", 128)),
		"CL.EXPLAIN k 10/1s PEEK":                     "unknown option 'PEEK': expected COST or OF",
	} {
		p.want(call, "-ERR "+want+"\r\n")
	}
	if n := p.Store.Len(p.NowNS); n != 0 {
		t.Errorf("%d keys", n)
	}
}
