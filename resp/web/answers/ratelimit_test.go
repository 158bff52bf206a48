package answers

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"celld/resp/door"
)

func TestDescribe(t *testing.T) {
	one := func(l door.Limit) door.Taken { return door.Taken{Limits: []door.Limit{l}} }
	gold := []door.Limit{{Name: "gold 100/1m", Count: 100, Period: time.Minute, Remaining: 7, Reset: time.Minute},
		{Name: "gold 9/1d", Count: 9, Period: 24 * time.Hour, Reset: 24 * time.Hour}}
	for want, c := range map[string]door.Taken{
		`"api";q=100;w=60 "api";r=7;t=2`:      one(door.Limit{Name: "api", Count: 100, Period: time.Minute, Remaining: 7, Reset: 1001 * time.Millisecond}),
		`"fast";q=50;w=1 "fast";r=0;t=0`:      one(door.Limit{Name: "fast", Count: 5, Period: 100 * time.Millisecond}),
		`"odd";q=5;w=2 "odd";r=0;t=1`:         one(door.Limit{Name: "odd", Count: 5, Period: 1500 * time.Millisecond, Reset: 1}),
		`"jobs";q=3 "jobs";r=1;t=9223372037`:  one(door.Limit{Name: "jobs", Count: 3, Remaining: 1, Reset: 1<<63 - 1}),
		`"\"\\%0A";q=1;w=1 "\"\\%0A";r=0;t=0`: one(door.Limit{Name: "\"\\\n", Count: 1, Period: time.Second}),
		`"small";q=5 "small";r=5;t=0`: {Limits: []door.Limit{
			{Name: "large", Count: 1e15, Period: time.Second, Remaining: 1e15 - 1}, {Name: "small", Count: 5, Remaining: 5},
			{Name: "fast", Count: 1e12, Period: time.Microsecond}, {Name: "forced", Count: 1, Remaining: 1e15},
		}},
		`"gold 100/1m";q=100;w=60, "gold 9/1d";q=9;w=86400 "gold 100/1m";r=7;t=60, "gold 9/1d";r=0;t=86400`: {Limits: gold},
		`"gold 100/1m";q=100;w=60, "gold 9/1d";q=9;w=86400 "gold 100/1m";r=7;t=60, "gold 9/1d";r=0;t=1200`: {
			Limited: true, Retry: 20 * time.Minute, Limits: gold, Binding: 1,
		},
		`"5/1h";q=5;w=3600 "5/1h";r=0`: { // denied by a rule that does not end
			Limited: true, Retry: -1,
			Limits: []door.Limit{{Name: "5/1h", Limited: true, ByRule: true, Retry: -1, Count: 5, Period: time.Hour}},
		},
		`"5/1h";q=5;w=3600 "5/1h";r=0;t=30`: {
			Limited: true, Retry: 30 * time.Second,
			Limits: []door.Limit{{Name: "5/1h", Limited: true, ByRule: true, Retry: 30 * time.Second, Count: 5, Period: time.Hour}},
		},
	} {
		h := http.Header{}
		Describe(h, &c, false)
		var wire strings.Builder
		_ = h.Write(&wire) // sorted by name
		policy, limit := "RateLimit-Policy: ", "RateLimit: "
		lines := strings.Split(wire.String(), "\r\n")
		if got := strings.TrimPrefix(lines[1], policy) + " " + strings.TrimPrefix(lines[0], limit); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	h, ruled := http.Header{}, one(door.Limit{ByRule: true, Retry: -1})
	if Describe(h, &ruled, true); !strings.Contains(fmt.Sprint(h), "X-RateLimit-Reset:[86400]") {
		t.Errorf("%v", h)
	}
	for d, want := range map[time.Duration]int64{-1: never, 0: 1, 1: 1, time.Second: 1, time.Second + 1: 2} {
		if got := RetryAfter(&door.Taken{Retry: d, Limits: []door.Limit{{Period: time.Minute}}}); got != want {
			t.Errorf("%v: %d", d, got)
		}
	}
	inFlight := door.Taken{Retry: time.Hour, Limits: []door.Limit{{}}}
	if got := RetryAfter(&inFlight); got != 1 {
		t.Errorf("what is in flight may end sooner than in an hour: retry in %d s", got)
	}
}

// More items than clients have room for are left out, and fields without an item.
func TestMostItems(t *testing.T) {
	for n, want := range map[int]int{0: 0, 1: 1, 16: 16, 17: 0} {
		h, c := http.Header{}, door.Taken{}
		for range n {
			c.Limits = append(c.Limits, door.Limit{Name: "api", Count: 1})
		}
		Describe(h, &c, false)
		var written strings.Builder
		_ = h.Write(&written)
		if got := strings.Count(written.String(), ";r="); got != want || len(h) != 2*min(1, want) {
			t.Errorf("%d limits have %d items: %v", n, got, h)
		}
	}
}

func TestQuote(t *testing.T) {
	for text, want := range map[string]string{" ~": `" ~"`, "\x1f": `"%1F"`, "\x7f": `"%7F"`} {
		if got := string(appendQuoted(nil, text)); got != want {
			t.Errorf("%q: %s", text, got)
		}
	}
}
