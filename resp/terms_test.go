package resp

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"celld/cell"
	"celld/resp/command"
	"celld/resp/command/limit"
	"celld/store"
	"celld/store/memory"
)

// What options say together, or in the wrong place, is one clear error, and nothing is spent.
func TestTermsThatDoNotFit(t *testing.T) {
	w := newWorld(t)
	p := w.connect()
	for options, want := range map[string]string{
		"WAIT":                                  formatError(command.ErrOption, "WAIT"),
		"RESERVE":                               formatError(command.ErrOption, "RESERVE"),
		"LEASE":                                 formatError(command.ErrOption, "LEASE"),
		"ID":                                    formatError(command.ErrOption, "ID"),
		"WAIT x":                                errNotInteger,
		"WAIT 1.5":                              errNotInteger,
		"LEASE x":                               errNotInteger,
		"WAIT -1":                               formatError(errWaitMax, 60_000),
		"WAIT 60001":                            formatError(errWaitMax, 60_000),
		"RESERVE 60001":                         formatError(errWaitMax, 60_000),
		"RESERVE 60000001 US":                   formatError(errWaitMax, 60_000),
		"US WAIT 60000001":                      formatError(errWaitMax, 60_000),
		"WAIT 9223372036854775807":              formatError(errWaitMax, 60_000),
		"WAIT 1 WAIT 1":                         formatError(command.ErrOption, "WAIT"),
		"WAIT 1 RESERVE 1":                      errTakeModes,
		"WAIT 1 PEEK":                           errTakeModes,
		"UPTO WAIT 1":                           errTakeModes,
		"FORCE RESERVE 1":                       errTakeModes,
		"RESERVE 1 FORCE":                       errTakeModes,
		"LEASE 0":                               formatError(errLease, limit.MaxLeaseMS),
		"LEASE 31622400001":                     formatError(errLease, limit.MaxLeaseMS),
		"LEASE 9223372036854775807":             formatError(errLease, limit.MaxLeaseMS),
		"LEASE 1 LEASE 1":                       formatError(command.ErrOption, "LEASE"),
		"LEASE 1 BIND BIND":                     formatError(command.ErrOption, "BIND"),
		"LEASE 1 ID a ID a":                     formatError(command.ErrOption, "ID"),
		"ID a":                                  errNoLease,
		"BIND":                                  errNoLease,
		"COST 0 BIND":                           errNoLease,
		"COST 1 COST 1":                         formatError(command.ErrOption, "COST"),
		"LEASE 1 ID " + strings.Repeat("x", 65): formatError(errLeaseName, maxLeaseName),
	} {
		p.want("CL.TAKE k 5/1h "+options, "-"+want+"\r\n")
		p.want("CL.MTAKE 1 k 5/1h "+options, "-"+want+"\r\n")
	}
	if got, want := p.do("CL.TAKE", "k", "5/1h", "LEASE", "1", "ID", ""), "-"+formatError(errLeaseName, maxLeaseName)+"\r\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for _, limit := range []string{"5/1h,algo=slide", "5/1h,algo=slide,buckets=3", "5/1h,algo=log"} {
		p.want("CL.TAKE k 5/1s "+limit+" RESERVE 0", "-"+errReserve+"\r\n")
	}
	p.want("CL.MTAKE 1 k 5/1h FULL WAIT 1", "-"+errFull+"\r\n")
	for call, want := range map[string]string{
		"CL.RENEW k x 1":             errNotInteger,
		"CL.RENEW k 1 x":             errNotInteger,
		"CL.RENEW k 1 0":             formatError(errLease, limit.MaxLeaseMS),
		"CL.RENEW k 1 31622400001":   formatError(errLease, limit.MaxLeaseMS),
		"CL.RELEASE k x":             errNotInteger,
		"CL.SETTLE k x 1":            errNotInteger,
		"CL.SETTLE k 1 x":            errNotInteger,
		"CL.SETTLE k 1 -1":           command.ErrSettle,
		"CL.SETTLE k 1 2147483648":   command.ErrSettle,
		"CL.RENEW k 1":               formatError(errArity, "cl.renew"),
		"CL.RELEASE k":               formatError(errArity, "cl.release"),
		"CL.SETTLE k 1":              formatError(errArity, "cl.settle"),
		"CONFIG SET wait-max -1":     formatError(settingFailed, "wait-max", "argument must be between 0 and 86400000 inclusive"),
		"CONFIG SET max-waiters x":   formatError(settingFailed, "max-waiters", "argument couldn't be parsed into an integer"),
		"CL.TAKE k 5/1h WAIT 1 LEAS": formatError(command.ErrOption, "LEAS"),
	} {
		p.want(call, "-"+want+"\r\n")
	}
	p.want("EXISTS k", ":0\r\n")
	p.want("CONFIG SET wait-max 10", "+OK\r\n")
	p.want("CL.TAKE k 5/1h WAIT 11", "-"+formatError(errWaitMax, 10)+"\r\n")
}

// asks keeps what a session asks for, and answers at once.
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
	w := newWorld(t)
	a := &asks{Store: w.store}
	w.limiter = a
	p := w.connect()
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
		if end := strings.Join(strings.SplitAfter(got, "\r\n")[:fields+1], ""); !strings.HasPrefix(got, head) || !strings.HasSuffix(end, wait+test.lease) {
			t.Errorf("%s: %q", test.options, got)
		}
	}

	a.terms = nil
	for _, options := range []string{"COST 0 WAIT 5", "RESERVE 5 COST 0", "COST 0 LEASE 5 BIND ID x", "PEEK LEASE 5"} { // which only look
		want := "*7\r\n"
		if strings.Contains(options, "LEASE") {
			want = "*8\r\n"
		}
		if got := p.do(append([]string{"CL.TAKE", "k", "5/1h"}, strings.Fields(options)...)...); !strings.HasPrefix(got, want) || !strings.HasSuffix(got, ":0\r\n:0\r\n") {
			t.Errorf("%s: %q", options, got)
		}
	}
	if len(a.terms) > 0 {
		t.Errorf("%+v", a.terms)
	}
	p.want("EXISTS k", ":0\r\n")
}
