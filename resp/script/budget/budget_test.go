package budget

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"
)

// host keeps a clock that tests move. It ends the script after so many ticks; 0: never.
type host struct {
	now, ticks, most int64
}

var errEnd = errors.New("ended by the test")

func (h *host) NowNS() int64 { return h.now }

func (h *host) Tick() error {
	if h.ticks++; h.most > 0 && h.ticks > h.most {
		return errEnd
	}
	return nil
}

// instructions runs so many of them, each of which takes so long, and returns after how many of them each tick comes.
func (h *host) instructions(b *Budget, n int, ns int64) (ticks []int) {
	last := 0
	for i := 1; i <= n; i++ {
		h.now += ns
		before := h.ticks
		b.Context().Done()
		if h.ticks > before {
			ticks, last = append(ticks, i-last), i
		}
	}
	return ticks
}

func same(t *testing.T, what string, got []int, want ...int) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: ticks after %v instructions, want %v", what, got, want)
		return
	}
	for i := range got {
		if got[i] != want[i] {
			t.Errorf("%s: ticks after %v instructions, want %v", what, got, want)
			return
		}
	}
}

// A tick comes after TickEvery instructions, sooner where they read much or take long.
func TestTicks(t *testing.T) {
	for _, test := range []struct {
		what    string
		longest int
		ns      int64
		n       int
		before  func(b *Budget)
		want    []int
	}{
		{"short instructions", 0, 1, 1000, nil, []int{256, 256, 256}},
		{"a millisecond a tick", 0, sliceNS / TickEvery, 600, nil, []int{256, 256}},
		{"texts of 64 KB", 64 << 10, 0, 200, nil, []int{64, 64, 64}},
		{"a text of 8 MB", 8 << 20, 0, 3, nil, []int{1, 1, 1}},
		{"a text that the script makes", 0, 0, 600, func(b *Budget) { b.Note(64 << 10); b.Note(1) }, []int{256, 64, 64, 64, 64, 64}},
		{"bytes that a function reads", 0, 0, 400, func(b *Budget) { b.Spend(100 * instructionBytes) }, []int{156}},
		{"fewer bytes than an instruction", 0, 0, 256, func(b *Budget) { b.Spend(instructionBytes - 1) }, []int{256}},
		{"bytes for more than a tick", 0, 0, 2, func(b *Budget) { b.Spend(TickBytes) }, []int{1}},
		{"an allocation", 0, 0, 400, func(b *Budget) { b.Charge(nil, 100*instructionBytes) }, []int{156}},
		{"instructions of a library function", 0, 0, 300, func(b *Budget) { b.Step(nil); b.Step(nil) }, []int{254}},
	} {
		b, h := &Budget{}, &host{}
		b.Start(h, test.longest)
		if test.before != nil {
			test.before(b)
		}
		same(t, test.what, h.instructions(b, test.n, test.ns), test.want...)
	}
}

// Slow instructions bring ticks closer together, and quick ones apart again.
func TestPace(t *testing.T) {
	b, h := &Budget{}, &host{now: 1 << 40}
	b.Start(h, 0)
	same(t, "10 ms of instructions", h.instructions(b, 256, 10*sliceNS/256), 256)
	same(t, "as slow", h.instructions(b, 25+29+25, 10*sliceNS/256), 25, 29, 25)
	same(t, "quicker", h.instructions(b, 29+33+38+43, 1), 29, 33, 38, 43)
	same(t, "as quick as at first", h.instructions(b, 1775+4*256, 1)[11:], 196, 221, 249, 256, 256, 256, 256)
	same(t, "3 ms each", h.instructions(b, 256+3, 3*sliceNS), 256, 1, 1, 1)
}

// A Budget ends its script once: by the host, by memory or by EndBy. Then each instruction fails.
func TestEnd(t *testing.T) {
	L := lua.NewState()
	defer L.Close()
	ends := func(do func()) (text string) {
		defer func() {
			if cause := recover(); cause != nil {
				text = cause.(*lua.ApiError).Object.String()
			}
		}()
		do()
		return ""
	}
	other := errors.New("other")
	for _, test := range []struct {
		what, text string
		do         func(b *Budget)
		want       error
	}{
		{"nothing", "", func(*Budget) {}, nil},
		{"one tick", "", func(b *Budget) { b.Tick(L) }, nil},
		{"two ticks", "ended", func(b *Budget) { b.Tick(L); b.Tick(L) }, errEnd},
		{"steps for two ticks", "ended", func(b *Budget) {
			for range 2 * TickEvery {
				b.Step(L)
			}
		}, errEnd},
		{"steps for less", "", func(b *Budget) {
			for range 2*TickEvery - 1 {
				b.Step(L)
			}
		}, nil},
		{"EndBy", "", func(b *Budget) { b.EndBy(other) }, other},
		{"EndBy twice", "", func(b *Budget) { b.EndBy(other); b.EndBy(errEnd) }, other},
		{"EndBy before a tick", "ended", func(b *Budget) { b.EndBy(other); b.Step(L) }, other},
		{"all memory", "", func(b *Budget) { b.Charge(L, MaxMemory/2) }, nil},
		{"too much memory", "not enough memory", func(b *Budget) { b.Charge(L, MaxMemory+1) }, ErrMemory},
		{"a little often", "not enough memory", func(b *Budget) {
			runtime.GC()
			b.Tick(L)
			keep := make([][]byte, 0, 20)
			for range cap(keep) {
				keep = append(keep, make([]byte, LookBytes))
				b.Charge(L, LookBytes)
			}
			runtime.KeepAlive(keep)
		}, ErrMemory},
	} {
		b, h := &Budget{}, &host{most: 1}
		b.Start(h, 0)
		if got := ends(func() { test.do(b) }); !strings.HasSuffix(got, test.text) || (got == "") != (test.text == "") {
			t.Errorf("%s raises %q, want %q", test.what, got, test.text)
		}
		if b.Ended() != test.want || b.Context().Err() != test.want {
			t.Errorf("%s: ended by %v, %v, want %v", test.what, b.Ended(), b.Context().Err(), test.want)
		}
		if test.want == nil {
			continue
		}
		ticks := h.ticks
		for range 3 {
			select {
			case <-b.Context().Done():
			default:
				t.Errorf("%s: a further instruction runs", test.what)
			}
		}
		if h.ticks != ticks {
			t.Errorf("%s: the host is asked again", test.what)
		}
		if b.Start(h, 0); b.Ended() != nil || b.Context().Done() != nil {
			t.Errorf("%s: the next script ends, too", test.what)
		}
	}
}

// Without a script nothing is bounded, and no host asked.
func TestStop(t *testing.T) {
	b, h := &Budget{}, &host{}
	if ticks := h.instructions(b, 1000, 1); ticks != nil || b.Ended() != nil {
		t.Errorf("before: %v, %v", ticks, b.Ended())
	}
	b.Start(h, 0)
	b.Stop()
	if ticks := h.instructions(b, 1000, 1); ticks != nil || b.Ended() != nil {
		t.Errorf("after: %v, %v", ticks, b.Ended())
	}
	if _, ok := b.Context().Deadline(); ok || b.Context().Value(1) != nil {
		t.Error("the context has a deadline or a value")
	}
}

// A text makes ticks come sooner, however it is made.
func TestText(t *testing.T) {
	b, h := &Budget{}, &host{}
	b.Start(h, 0)
	if got := Text(b, strings.Repeat("x", 32<<10)) + Text(b, []byte("y")); got != lua.LString(strings.Repeat("x", 32<<10)+"y") {
		t.Errorf("%.20q", got)
	}
	b.Tick(nil)
	same(t, "32 KB", h.instructions(b, 128, 0), 128)
}

// The memory of a script is what the heap has more than when it began. Garbage does not count.
func TestMemory(t *testing.T) {
	held := make([]byte, 2*MaxMemory) // what was there before
	for _, test := range []struct {
		what string
		keep bool
		want error
	}{{"garbage", false, nil}, {"texts that are kept", true, ErrMemory}} {
		runtime.GC() // else what other tests have left
		b, h := &Budget{}, &host{}
		b.Start(h, 0)
		var list [][]byte
		for range 64 {
			text := make([]byte, LookBytes)
			if list = append(list, text); !test.keep {
				list = nil
			}
			if !b.Allows(LookBytes) {
				break
			}
			h.instructions(b, lookTicks*TickEvery, 0)
		}
		if b.Ended() != test.want {
			t.Errorf("%s: %v", test.what, b.Ended())
		}
		if mb := len(list); test.keep && (mb < 13 || mb > 18) {
			t.Errorf("%s: %d MB", test.what, mb)
		}
		runtime.KeepAlive(list)
	}
	runtime.KeepAlive(held)
}

// An allocation that a script does not announce is found at every 8th tick.
func TestMemoryOfInstructions(t *testing.T) {
	runtime.GC()
	b, h := &Budget{}, &host{}
	b.Start(h, 0)
	h.instructions(b, TickEvery, 0)
	list := make([]byte, MaxMemory+MaxMemory/2)
	h.instructions(b, (lookTicks-2)*TickEvery, 0)
	if b.Ended() != nil {
		t.Errorf("after %d ticks: %v", h.ticks, b.Ended())
	}
	h.instructions(b, TickEvery, 0)
	if b.Ended() != ErrMemory {
		t.Errorf("after %d ticks: %v", h.ticks, b.Ended())
	}
	runtime.KeepAlive(list)
}

func TestHeapBytes(t *testing.T) {
	before := HeapBytes()
	list := make([]byte, 4<<20)
	if grown := int64(HeapBytes() - before); grown < 3<<20 || grown > 8<<20 {
		t.Errorf("4 MB are %d bytes", grown)
	}
	runtime.KeepAlive(list)
}
