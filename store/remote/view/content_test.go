package view

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"celld/cell"
	"celld/store"
	"celld/store/policy"
	"celld/store/remote/link/linktest"
)

// viewAt is a view at an instant of a key that holds this. No engine is needed for it.
func viewAt(nowNS int64, read content) (*View, *viewKey) {
	s := newStore(Options{Policies: &policy.Set{}, Time: func() int64 { return nowNS }})
	v := s.newView(s.deadline())
	v.NowNS = nowNS
	v.add("k")
	v.keys[0].read = read
	v.Table()
	return v, &v.keys[0]
}

// raw is what a view's table has under a key.
func (v *View) raw(key string) (value store.Value, there bool) {
	_ = v.Update([]byte(key), store.Access{NowNS: v.NowNS, NoTouch: true}, func(is store.Value, ok bool) (store.Value, bool) {
		value, there = is, ok
		return is, false
	})
	return value, there
}

// What the expiry of a key on the engine means: the end of its TAT, what EXPIRE or PERSIST has said, or another program's rounding.
func TestWhatAnExpiryMeans(t *testing.T) {
	const nowMs, second = in2100 / 1e6, 1000
	for _, c := range []struct {
		name          string
		tat, until    int64 // ms from now; until 0: nothing is said
		expiry        int64 // ms from now
		there         bool
		is            int64 // ms from now, or one of store's
		reads         int64 // what the expiry counts as
		atEnd, persis bool
	}{
		{"its end", 4 * second, 0, 4 * second, true, store.AtTAT, 4 * second, true, false},
		{"nearly its end", 4 * second, 0, 4*second + nearMs, true, store.AtTAT, 4 * second, true, false},
		{"nearly its end, before", 4 * second, 0, 4*second - nearMs, true, store.AtTAT, 4 * second, true, false},
		{"before its end", 4 * second, 0, 4*second - nearMs - 1, true, 4*second - nearMs - 1, 4*second - nearMs - 1, false, false},
		{"it Lingers after its end", 4 * second, 0, 5*second + nearMs, true, store.AtTAT, 4 * second, true, false},
		{"longer", 4 * second, 0, 5*second + nearMs + 1, true, store.AtTAT, 5*second + nearMs + 1, true, false},
		{"it is over and Lingers", 0, 0, second + nearMs, false, 0, 0, true, false},
		{"it is over, and has an expiry", 0, 0, second + nearMs + 1, true, second + nearMs + 1, second + nearMs + 1, false, false},
		{"persisted", 4 * second, 0, 4*second + persisted, true, store.NoExpiry, 4*second + persisted, false, true},
		{"nearly persisted", 4 * second, 0, 4*second + persisted - nearMs, true, store.NoExpiry, 4*second + persisted, false, true},
		{"persisted, and over", 0, 0, persisted, false, 0, persisted, false, true},
		{"after its end", 4 * second, 60 * second, 4 * second, true, 60 * second, 4 * second, true, false},
		{"after its end, and over", 0, 60 * second, second, false, 0, 0, true, false},
	} {
		text := strconv.FormatInt(in2100+c.tat*1e6, 10)
		if c.until != 0 {
			text += " " + strconv.FormatInt(nowMs+c.until, 10)
		}
		v, k := viewAt(in2100, content{kind: kindString, text: text, expiry: nowMs + c.expiry})
		want := c.is
		if want != store.AtTAT && want != store.NoExpiry {
			want = (nowMs + want) * 1e6
		}
		value, there := v.raw("k")
		if there != c.there || there && value.ExpiryNS != want || k.shown != there {
			t.Errorf("%s: %+v, %v, shown %v", c.name, value, there, k.shown)
		}
		if r := k.read; r.foreign || r.expiry != nowMs+c.reads || r.atEnd != c.atEnd || r.never != c.persis {
			t.Errorf("%s: it is read as %+v", c.name, r)
		}
	}
	for text, foreign := range map[string]bool{"7": false, "07": true, "7 ": true, "7 0": true, "7 1": false, "7 x": true, "-7": false,
		"-0": true, "": true} {
		v, k := viewAt(in2100, content{kind: kindString, text: text, expiry: nowMs + 9})
		value, there := v.raw("k")
		if k.read.foreign != foreign || foreign && (!there || value.Count != foreignCount || value.ExpiryNS != in2100+9e6) {
			t.Errorf("%q is foreign: %v, %+v, %v", text, k.read.foreign, value, there)
		}
	}
	v, k := viewAt(in2100, content{kind: "list", expiry: noExpiry})
	if value, there := v.raw("k"); !there || value.ExpiryNS != store.NoExpiry || !k.read.foreign || !k.read.never {
		t.Errorf("a list: %+v, %+v", value, k.read)
	}
	if v, k := viewAt(in2100, content{kind: kindNone}); k.read.foreign || k.shown || v.Len(in2100) != 0 {
		t.Errorf("nothing: %+v", k.read)
	}
}

func TestUntil(t *testing.T) {
	const most = math.MaxInt64 / 1_000_000
	for text, ok := range map[string]bool{
		"-1": false, "0": false, "1": true, fmt.Sprint(most): true, fmt.Sprint(most + 1): false, "x": false, "": false,
	} {
		var c content
		if got := c.parseUntil(text); got != ok || ok && strconv.FormatInt(c.until, 10) != text {
			t.Errorf("%q: %v, %d", text, got, c.until)
		}
	}
}

// stateIn is a field as celld writes it.
func stateIn(t *testing.T, text string) field {
	t.Helper()
	l, st, err := cell.ParseState(text)
	if err != nil {
		t.Fatal(err)
	}
	return field{string((&store.LimitState{Limit: l, State: st}).AppendName(nil)), text}
}

// What is over leaves a trace on the engine for as long as others may have read the key before. Then it goes with the next change.
func TestFieldsThatLinger(t *testing.T) {
	window := func(untilNS int64) field {
		return stateIn(t, fmt.Sprintf("limit=3/1h,algo=window until=%d used=2", untilNS))
	}
	for _, c := range []struct {
		endsIn int64
		there  bool
		stays  int
	}{
		{1, true, 0}, {0, false, 1}, {-int64(Linger) + 1, false, 1}, {-int64(Linger), false, 0},
	} {
		read := content{kind: kindHash, fields: []field{window(in2100 + c.endsIn)}, expiry: in2100 / 1e6}
		v, k := viewAt(in2100, read)
		if _, there := v.raw("k"); there != c.there || len(k.left) != c.stays || k.read.foreign {
			t.Errorf("one that ends in %d ns is there: %v, and stays as it was: %d", c.endsIn, there, len(k.left))
		}
	}
	for name, fields := range map[string][]field{
		"nothing":         {},
		"no state":        {{"a", "b"}},
		"no state of a @": {{"@unknown", "b"}},
		"no name":         {{"", "b"}},
		"no instant":      {window(in2100 + 1), {untilField, "0"}},
	} {
		if _, k := viewAt(in2100, content{kind: kindHash, fields: fields, expiry: noExpiry}); !k.read.foreign {
			t.Errorf("%s: it is celld's", name)
		}
	}
	read := content{kind: kindHash, fields: []field{window(in2100 + 5e9), {untilField, strconv.FormatInt(in2100/1e6+60_000, 10)}},
		expiry: in2100/1e6 + 5000}
	v, k := viewAt(in2100, read)
	value, there := v.raw("k")
	if !there || value.ExpiryNS != in2100+60e9 || len(*value.Limits) != 1 || k.read.foreign {
		t.Errorf("with an EXPIRE: %+v, %+v", value, k.read)
	}
	unknown := field{"@unknown 7", fmt.Sprintf("limit=3/1h,algo=window until=%d used=2", in2100+7e9)}
	read = content{kind: kindHash, fields: []field{unknown, window(in2100 + 5e9)}, expiry: in2100/1e6 + 7000}
	if _, k = viewAt(in2100, read); k.leftEnd != in2100/1e6+7000 || len(k.left) != 1 || !k.read.atEnd {
		t.Errorf("with an unknown policy's: %+v", k)
	}
}

// What a table has under a key is written with the expiry at which the engine drops it, and which tells what EXPIRE and PERSIST said.
func TestWhatIsWritten(t *testing.T) {
	const nowMs = in2100 / 1e6
	for _, c := range []struct {
		name         string
		tat, expiry  int64 // ns from now; expiry may be one of store's
		text         string
		is, until    int64 // ms from now
		atEnd, never bool
	}{
		{"at its end", 4e9, store.AtTAT, "", 4000, 0, true, false},
		{"at its end, which is in a ms", 4e9 + 1, store.AtTAT, "", 4001, 0, true, false},
		{"persisted", 4e9, store.NoExpiry, "", 4000 + persisted, 0, false, true},
		{"persisted, and it ends now", 0, store.NoExpiry, "", noExpiry - nowMs, 0, false, true},
		{"persisted, and it ends at once", 1, store.NoExpiry, "", 1 + persisted, 0, false, true},
		{"before its end", 4e9, 3e9, "", 3000, 0, false, false},
		{"just at its end", 4e9, 4e9, "", 4000, 0, false, false},
		{"after its end", 4e9, 5e9, " until", 4000, 5000, true, false},
		{"after its end, which was now", 0, 5e9, "", 5000, 0, false, false},
		{"after its end, which is at once", 1, 5e9, " until", 1, 5000, true, false},
	} {
		v, k := viewAt(in2100, content{kind: kindNone, expiry: noExpiry})
		value := store.Value{TAT: uint64(in2100 + c.tat), ExpiryNS: c.expiry}
		if c.expiry != store.AtTAT && c.expiry != store.NoExpiry {
			value.ExpiryNS += in2100
		}
		got := k.textOf(v, value)
		text := strconv.FormatInt(in2100+c.tat, 10)
		if c.text != "" {
			text += " " + strconv.FormatInt(nowMs+c.until, 10)
			c.until += nowMs
		}
		if got.text != text || got.kind != kindString || got.expiry != nowMs+c.is || got.until != c.until ||
			got.atEnd != c.atEnd || got.never != c.never {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
	v, k := viewAt(in2100, content{kind: "list", expiry: noExpiry})
	for endsIn, fields := range map[int64]int{0: 0, 1: 1} {
		l, st, err := cell.ParseState(fmt.Sprintf("limit=3/1h,algo=window until=%d used=2", in2100+endsIn))
		if err != nil {
			t.Fatal(err)
		}
		limits := store.Limits{{Limit: l, State: st}}
		got := k.textOf(v, store.Value{HoldsLimits: true, Limits: &limits, TAT: uint64(in2100 + endsIn), ExpiryNS: store.AtTAT})
		if len(got.fields) != fields {
			t.Errorf("a limit that ends in %d ns: %+v", endsIn, got)
		}
	}
	foreign := k.textOf(v, store.Value{Count: foreignCount, ExpiryNS: store.NoExpiry})
	if foreign.kind != "list" || !foreign.foreign || foreign.expiry != noExpiry || !foreign.never {
		t.Errorf("what is foreign: %+v", foreign)
	}
	if late := k.textOf(v, store.Value{Count: foreignCount, ExpiryNS: in2100 + 5e9}); late.expiry != nowMs+5000 || late.until != 0 {
		t.Errorf("what is foreign, with an expiry: %+v", late)
	}
}

// The commands that make a key what it is to be are the fewest that do.
func TestSteps(t *testing.T) {
	const nowMs = in2100 / 1e6
	none := content{kind: kindNone, expiry: noExpiry}
	text := func(text string, expiry int64) content { return content{kind: kindString, text: text, expiry: expiry} }
	hash := func(expiry int64, pairs ...string) content {
		c := content{kind: kindHash, expiry: expiry}
		for i := 0; i < len(pairs); i += 2 {
			c.fields = append(c.fields, field{pairs[i], pairs[i+1]})
		}
		return c
	}
	atEnd := func(c content) content { c.atEnd = true; return c }
	never := func(c content) content { c.never = true; return c }
	foreign := func(c content) content { c.foreign = true; return c }
	at := func(ms int64) string { return "PEXPIREAT " + strconv.FormatInt(ms, 10) }
	for i, c := range []struct {
		has, wants content
		steps      string
	}{
		{none, none, ""},
		{text("1", noExpiry), none, "DEL"},
		{hash(5, "a", "1"), none, "DEL"},
		{none, text("1", noExpiry), "SET 1"},
		{none, text("1", nowMs+5000), "SET 1; " + at(nowMs+5000)},
		{none, atEnd(text("1", nowMs+5000)), "SET 1; " + at(nowMs+6000)},
		{none, atEnd(text("1", nowMs)), "SET 1; " + at(nowMs+Linger.Milliseconds())},
		{none, text("1", nowMs), "SET 1; " + at(nowMs)},
		{text("1", nowMs+5000), text("1", nowMs+5000), ""},
		{text("1", nowMs+5000), text("2", nowMs+5000), "SET 2 KEEPTTL"},
		{text("1", nowMs+5000), text("1", nowMs+6000), at(nowMs + 6000)},
		{text("1", nowMs+5000), text("1", noExpiry), "PERSIST"},
		{text("1", noExpiry), text("1", nowMs+5000), at(nowMs + 5000)},
		{hash(nowMs+5000, "a", "1"), text("1", nowMs+5000), "SET 1 KEEPTTL"},
		{atEnd(text("1", nowMs+6000)), atEnd(text("1", nowMs+5000)), ""},
		{atEnd(text("1", nowMs+5000)), atEnd(text("1", nowMs+6000)), at(nowMs + 7000)},
		{atEnd(text("1", nowMs+6000)), text("1", nowMs+5000), at(nowMs + 5000)},
		{text("1", nowMs+6000), atEnd(text("1", nowMs+5000)), at(nowMs + 6000)},
		{atEnd(text("1", nowMs+6000)), atEnd(text("2", nowMs+5000)), "SET 2 KEEPTTL; " + at(nowMs+6000)},
		{never(text("1", noExpiry)), never(text("1", nowMs+5000)), ""},
		{text("1", noExpiry), never(text("1", nowMs+5000)), at(nowMs + 5000)},
		{never(text("1", noExpiry)), text("1", nowMs+5000), at(nowMs + 5000)},
		{never(text("1", noExpiry)), never(text("2", nowMs+5000)), "SET 2 KEEPTTL; " + at(nowMs+5000)},
		{none, hash(noExpiry, "a", "1", "b", "2"), "HSET a 1 b 2"},
		{hash(5, "a", "1", "b", "2"), hash(5, "a", "1", "b", "3"), "HSET b 3"},
		{hash(5, "a", "1", "b", "2"), hash(5, "a", "1"), "HDEL b"},
		{hash(5, "a", "1", "b", "2"), hash(5, "c", "3"), "HSET c 3; HDEL a b"},
		{hash(5, "a", "1"), hash(5, "a", "1"), ""},
		{text("1", 5), hash(5, "a", "1"), "DEL; HSET a 1; " + at(5)},
		{foreign(text("x", 5)), foreign(text("", 5)), ""},
		{foreign(text("x", 5)), foreign(text("", 6)), at(6)},
	} {
		var steps []string
		for _, step := range c.has.steps(&c.wants) {
			steps = append(steps, strings.Join(step, " "))
		}
		if got := strings.Join(steps, "; "); got != c.steps {
			t.Errorf("%d: %+v to %+v: %s, want %s", i, c.has, c.wants, got, c.steps)
		}
	}
}

// Something may have been given back where a number is lower or a field has gone, and not where there is more than before.
func TestWhatFrees(t *testing.T) {
	text := content{kind: kindString, text: "5"}
	hash := func(pairs ...string) content {
		c := content{kind: kindHash}
		for i := 0; i < len(pairs); i += 2 {
			c.fields = append(c.fields, field{pairs[i], pairs[i+1]})
		}
		return c
	}
	for i, c := range []struct {
		had, has content
		frees    bool
	}{
		{content{kind: kindNone}, text, false},
		{content{kind: kindNone}, hash("a", "1"), false},
		{content{kind: kindNone}, content{kind: kindNone}, false},
		{text, text, false},
		{text, content{kind: kindNone}, true},
		{text, hash("a", "1"), true},
		{hash("a", "1"), content{kind: kindNone}, true},
		{hash("a", "1"), text, true},
		{hash("a", "5"), hash("a", "5"), false},
		{hash("a", "5"), hash("a", "6"), false},
		{hash("a", "5"), hash("a", "4"), true},
		{hash("a", "5"), hash("a", "10"), false},
		{hash("a", "10"), hash("a", "5"), true},
		{hash("a", "5"), hash("b", "5"), true},
		{hash("a", "5"), hash("b", "1", "a", "5"), false},
		{hash("a", "5", "b", "5"), hash("a", "6", "b", "4"), true},
	} {
		k := &viewKey{read: c.had}
		if got := k.frees(&c.has); got != c.frees {
			t.Errorf("%d: %v", i, got)
		}
	}
}

func TestNamesOfEpochs(t *testing.T) {
	for name, want := range map[string]struct {
		without string
		epoch   uint64
	}{
		"log/1m": {"log/1m", 0}, "log 5": {"log 5", 0}, "@api": {"@api", 0}, "@api 5": {"@api", 5},
		"@api leases": {"@api leases", 0}, "@api 5 leases": {"@api leases", 5}, "@api 5x": {"@api 5x", 0},
	} {
		if without, epoch := cutEpoch(name); without != want.without || epoch != want.epoch {
			t.Errorf("%q: %q of %d", name, without, epoch)
		}
	}
	l := policy.New("api", *linktest.Literal(t, "5/1m")).Limits[0]
	if a, b := PolicyField(l, 0), PolicyField(l, 5); a != "@api/gcra/1m" || b != "@api/gcra/1m 5" {
		t.Errorf("%q and %q", a, b)
	}
}

func TestMilliseconds(t *testing.T) {
	for ns, want := range map[uint64]int64{0: 0, 1: 1, 999_999: 1, 1_000_000: 1, 1_000_001: 2} {
		if got := CeilMs(ns); got != want {
			t.Errorf("%d ns: %d", ns, got)
		}
	}
	for _, c := range []struct {
		a, b int64
		near bool
	}{
		{7, 7, true}, {7, 7 + nearMs, true}, {7 + nearMs, 7, true}, {7, 8 + nearMs, false}, {8 + nearMs, 7, false},
		{math.MaxInt64 - nearMs - 1, math.MaxInt64 - nearMs, true}, {math.MaxInt64 - nearMs, math.MaxInt64 - nearMs, false},
	} {
		if near(c.a, c.b) != c.near {
			t.Errorf("%d and %d are near: %v", c.a, c.b, !c.near)
		}
	}
}
