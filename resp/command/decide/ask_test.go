package decide

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"celld/resp/decisions"
	"celld/store"

	"pgregory.net/rapid"
)

// drawAsk draws an Ask, right or wrong, and the words of the command that asks the same.
func drawAsk(t *rapid.T) (a Ask, words [][]byte) {
	add := func(list ...string) {
		for _, word := range list {
			words = append(words, []byte(word))
		}
	}
	limits := rapid.SampledFrom([]string{"5/1h", "1/1m", "9/1h,algo=log", "7/1m,algo=window", "3/1m,algo=conc", "@two", "@none", "5/0s"})
	a.Limits = rapid.SliceOfN(limits, 1, 3).Draw(t, "limits")
	if rapid.Bool().Draw(t, "several keys") {
		add("CL.MTAKE", strconv.Itoa(len(a.Limits)))
		for i, limit := range a.Limits {
			a.Keys = append(a.Keys, fmt.Sprint("key ", i))
			add(a.Keys[i], limit)
		}
	} else {
		a.Key = "key"
		add("CL.TAKE", a.Key)
		add(a.Limits...)
	}
	used := map[string]bool{}
	for range rapid.IntRange(0, 3).Draw(t, "options") {
		o := Option{Name: rapid.SampledFrom([]string{"PEEK", "UPTO", "FORCE", "WAIT", "RESERVE", "COST", "LEASE", "ID"}).Draw(t, "option")}
		mode := o.Name
		if _, is := modes[o.Name]; is {
			mode = "mode"
		}
		if used[mode] { // options that exclude each other are the parser's
			continue
		}
		used[mode] = true
		add(o.Name)
		switch o.Name {
		case "ID":
			o.Text = rapid.SampledFrom([]string{"", "name", string(make([]byte, maxLeaseName+1))}).Draw(t, "id")
			add(o.Text)
		case "WAIT", "RESERVE", "COST", "LEASE":
			o.N = rapid.OneOf(rapid.Int64Range(-1, 20), rapid.Int64()).Draw(t, "n")
			add(strconv.FormatInt(o.N, 10))
		}
		a.Options = append(a.Options, o)
	}
	return a, words
}

// An Ask makes the request, or the error, of the command that asks the same.
func TestAnAskIsItsCommand(t *testing.T) {
	w := newWorld(t)
	w.want("CL.POLICY SET two 9/1h 5/1m", ":1\r\n")
	rapid.Check(t, func(t *rapid.T) {
		a, words := drawAsk(t)
		got, wrong, text := w.d.Read(&a)
		f := &w.d.single
		row := w.d.Commands.Find(words[0])
		f.reset(row)
		want := readTake
		if row.Name != a.Command() {
			t.Fatalf("%s is %s", words[0], a.Command())
		} else if a.Keys != nil {
			want = readMultiTake
		}
		if wanted := want(&w.d.limits, f, words); text != wanted {
			t.Fatalf("%q: %q, want %q", words, text, wanted)
		}
		if text != "" {
			if wrong >= 0 {
				_, alone, again := w.d.Read(&Ask{Limits: a.Limits[wrong : wrong+1]})
				if alone != 0 || again != text {
					t.Fatalf("%q: limit %d, %q, is by itself %d, %q", words, wrong, text, alone, again)
				}
			}
			return
		}
		b := &Batch{}
		b.AddCall(f, words)
		if !reflect.DeepEqual(got, *b.Take()) {
			t.Fatalf("%q:\n got %+v\nwant %+v", words, got, *b.Take())
		}
	})
}

// What was asked so counts as a command's, also in CL.TOP.
func TestCountTaken(t *testing.T) {
	counts := func(do func(w *world)) string {
		w := newWorld(t)
		w.want("CL.POLICY SET two 2/1h 9/1m", ":1\r\n")
		w.want("CL.RULE ADD DENY bad*", ":1\r\n")
		do(w)
		n := w.d.Decided.In(w.server.Counts.Of(w.Store.PolicyNamed("two").Limits[0]), 0)
		literals := w.d.Decided.In(w.server.Counts.Literal(0), 0)
		return fmt.Sprint(*n, *literals, w.server.Top.Most(decisions.ByDenied, decisions.Start, 9, func(uint32) bool { return true }))
	}
	asks := []Ask{
		{Key: "k", Limits: []string{"@two"}}, {Key: "k", Limits: []string{"@two"}, Options: []Option{{Name: "COST", N: 9}}},
		{Key: "bad", Limits: []string{"@two"}}, {Keys: []string{"k", "l"}, Limits: []string{"1/1m", "@two"}},
		{Keys: []string{"m", "k"}, Limits: []string{"5/1m", "1/1m"}},
		{Key: "k", Limits: []string{"@two"}, Options: []Option{{Name: "PEEK"}}},
	}
	got := counts(func(w *world) {
		var requests []store.TakeRequest
		for i := range asks {
			r, _, text := w.d.Read(&asks[i])
			if text != "" {
				t.Fatal(text)
			}
			requests = append(requests, r)
		}
		w.limiter.TakeBatch(requests, w.Access(), nil)
		w.d.CountTaken(requests, true)
	})
	want := counts(func(w *world) {
		for _, line := range []string{"CL.TAKE k @two", "CL.TAKE k @two COST 9", "CL.TAKE bad @two", "CL.MTAKE 2 k 1/1m l @two",
			"CL.MTAKE 2 m 5/1m k 1/1m", "CL.TAKE k @two PEEK"} {
			w.do(strings.Fields(line)...)
		}
	})
	if got != want {
		t.Errorf("counted\n%s\nwant\n%s", got, want)
	}
}

// What gives back needs the right to CL.GIVE, whatever stands beside it.
func TestAnAskThatGives(t *testing.T) {
	for _, options := range [][]Option{{{Name: "GIVE", N: 1}}, {{Name: "US"}, {Name: "GIVE", N: 1}}} {
		if a := (Ask{Key: "k", Limits: []string{"1/1m"}, Options: options}); a.Command() != "cl.give" {
			t.Errorf("%v is a %s", options, a.Command())
		}
	}
}
