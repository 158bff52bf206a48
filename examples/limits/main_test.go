package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"testing"

	"celld/cell"
)

// TestPicture checks that the committed picture is what the program draws, and that it can be shown on a page.
func TestPicture(t *testing.T) {
	drawn := draw(allCases())
	committed, err := os.ReadFile("limits.svg")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(drawn, committed) {
		t.Error("limits.svg is not what is drawn: go -C examples run ./limits >examples/limits/limits.svg")
	}
	if len(drawn) > 60_000 {
		t.Errorf("it has %d bytes", len(drawn))
	}
	for d := xml.NewDecoder(bytes.NewReader(drawn)); ; {
		if _, err := d.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// bound is the most that a limit admits in any minute.
type bound struct {
	literal string
	most    func(admitted []int64) int
	reached int     // by the worst traffic
	worst   []int64 // s
}

// bounds are what docs/explanation/choose-a-limit.md says that a limit of 60 a minute, of calls of cost 1, admits at most in any minute.
// Those that depend on what was admitted get it.
var bounds = []bound{
	{"60/1m", at(119), 119, many(0, 60, evenly(1, 120, 1))},
	{"60/1m,burst=16", at(75), 75, many(0, 60, evenly(1, 120, 1))},
	{"60/1m,burst=1", at(60), 60, evenly(0, 120, 1)},
	{"60/1m,warmup=5s", at(60), 60, often(0, 120)},
	{"60/1m,algo=window", at(119), 119, many(0, 1, many(59, 59, many(61, 60, nil)))},
	{"60/1m,algo=window,align=clock", at(120), 120, many(59, 60, many(60, 60, nil))},
	{"60/minute", at(120), 120, many(59, 60, many(60, 60, nil))},
	{"60/1m,algo=slide", at(119), 118, many(59, 60, evenly(60, 120, 1))},
	{"60/1m,algo=slide,buckets=6", bucketBound, 120, many(9, 60, many(60, 60, nil))},
	{"60/1m,algo=log", at(60), 60, many(59, 120, many(60, 60, many(119, 60, nil)))},
}

func at(n int) func([]int64) int { return func([]int64) int { return n } }

// bucketBound is the count and the most that one sub-window of 10 s took.
func bucketBound(admitted []int64) int {
	took := map[int64]int{}
	most := 0
	for _, call := range admitted {
		took[call/(10*second)]++
		most = max(most, took[call/(10*second)])
	}
	return count + most
}

const second = 1_000_000_000

// many are n calls at a second and those after.
func many(s int64, n int, after []int64) []int64 {
	return append(slices.Repeat([]int64{s * second}, n), after...)
}

// evenly is one call each so many seconds.
func evenly(from, to, every int64) (calls []int64) {
	for s := from; s < to; s += every {
		calls = append(calls, s*second)
	}
	return calls
}

// often is a call each millisecond.
func often(from, to int64) (calls []int64) {
	for ms := from * 1000; ms < to*1000; ms++ {
		calls = append(calls, ms*second/1000)
	}
	return calls
}

// TestBounds checks them on the traffic of the picture, on the worst that is known, and on 300
// others that are drawn: quiet and busy times, with calls at the same instant and at the edges.
func TestBounds(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, b := range bounds {
		l, err := cell.ParseLimit(b.literal)
		if err != nil {
			t.Fatal(err)
		}
		check := func(what string, calls []int64) int {
			admitted, _ := run(&l, calls)
			n := most(admitted, int64(period))
			if bound := b.most(admitted); n > bound {
				t.Errorf("%s, %s: %d in a minute, more than %d", b.literal, what, n, bound)
			}
			return n
		}
		check("the picture's", traffic())
		if n := check("the worst", b.worst); n != b.reached {
			t.Errorf("%s: the worst traffic has %d in a minute, want %d", b.literal, n, b.reached)
		}
		for i := range 300 {
			check(fmt.Sprintf("random traffic %d", i), drawn(random))
		}
	}
}

// TestTable holds the bounds that docs/explanation/choose-a-limit.md gives to those that are tested here.
func TestTable(t *testing.T) {
	page, err := os.ReadFile("../../docs/explanation/choose-a-limit.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\|[^|]*\\| `(60/[^`]+)`[^|]*\\|[^|]*: ([0-9]+) \\|").FindAllStringSubmatch(string(page), -1)
	if len(rows) < 7 {
		t.Errorf("%d bounds are on the page", len(rows))
	}
	for _, row := range rows {
		i := slices.IndexFunc(bounds, func(b bound) bool { return b.literal == row[1] })
		if i < 0 {
			t.Errorf("%s is on the page, and no bound is tested", row[1])
		} else if n := bounds[i].most(nil); fmt.Sprint(n) != row[2] {
			t.Errorf("%s: %s on the page, %d here", row[1], row[2], n)
		}
	}
}

func drawn(random *rand.Rand) (calls []int64) {
	now := random.Int64N(60 * second)
	for len(calls) < 600 {
		every := []int64{0, second / 100, second / 4, second, 3 * second}[random.IntN(5)]
		for range 1 + random.IntN(80) {
			calls = append(calls, now)
			now += every
		}
		switch random.IntN(3) {
		case 0: // up to an edge
			now += 10*second - now%(10*second)
		case 1:
			now += random.Int64N(70 * second)
		}
	}
	return calls
}

// TestPictureShows checks in figures what the picture is there to show.
func TestPictureShows(t *testing.T) {
	want := map[string]int{
		"60/1m": 119, "60/1m,burst=1": 60, "60/1m,algo=window": 119, "60/1m,algo=window,align=clock": 120,
		"60/1m,algo=slide": 113, "60/1m,algo=slide,buckets=6": 100, "60/1m,algo=log": 60,
	}
	for _, c := range allCases() {
		if n := most(c.admitted, int64(period)); n != want[c.literal] {
			t.Errorf("%s: %d in a minute, want %d", c.literal, n, want[c.literal])
		}
	}
	if len(allCases()) != len(want) {
		t.Errorf("%d limits", len(allCases()))
	}
}
