package table

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Slots come and go and are looked for as a sweep does, in time that mostly goes forward; the model is a slice of ends.
func TestWheelModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := slabs{}
		w := newWheel()
		ends := map[uint32]uint64{}
		now := rapid.SampledFrom([]uint64{0, 1, 1_700_000_000_000_000_000, math.MaxInt64 - 1000}).Draw(t, "now")
		drawEnd := func() uint64 {
			ahead := rapid.SampledFrom([]uint64{0, 1, 5, 63, 64, 100, 4096, 1e6, 1e9, 6e10, 1e13, 1e18, 1 << 63}).Draw(t, "ahead")
			end := now + ahead + rapid.Uint64Range(0, 70).Draw(t, "more")
			if rapid.IntRange(0, 20).Draw(t, "extreme") == 0 {
				return rapid.SampledFrom([]uint64{Never, Never - 1, now - min(now, 3), 0}).Draw(t, "end")
			}
			return end
		}
		drawSlot := func() uint32 {
			live := make([]uint32, 0, len(ends))
			for n := range ends {
				live = append(live, n)
			}
			slices.Sort(live)
			return rapid.SampledFrom(live).Draw(t, "slot")
		}
		// due takes out what has ended, and no other, as shard.sweep does.
		due := func() {
			for n := w.Late; n != NoSlot; {
				e := s.At(n)
				next := e.NextInBucket()
				if ends[n] <= now || ends[n] >= w.NowNS {
					w.Unlink(&s, e)
					if ends[n] <= now {
						s.Free(n, e)
						delete(ends, n)
					} else {
						w.Link(&s, n, e, ends[n])
					}
				}
				n = next
			}
			if w.Late != NoSlot {
				w.LateNS = Never
				for n := w.Late; n != NoSlot; n = s.At(n).NextInBucket() {
					w.LateNS = min(w.LateNS, ends[n])
				}
			}
			for steps := 0; w.NextNS() <= now; steps++ {
				if steps > 20*(len(ends)+1) {
					t.Fatal("the wheel does not get on")
				}
				n := w.Open()
				e := s.At(n)
				w.Unlink(&s, e)
				if ends[n] <= now {
					s.Free(n, e)
					delete(ends, n)
				} else {
					w.Link(&s, n, e, ends[n])
				}
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				bound := w.NextNS()
				for n, end := range ends {
					if end < bound {
						t.Fatalf("slot %d ends at %d, before the bound %d", n, end, bound)
					}
				}
			},
			"put": func(t *rapid.T) {
				n, e := s.Alloc()
				e.SetInfo(flagList, flagProbation)
				ends[n] = drawEnd()
				w.Link(&s, n, e, ends[n])
			},
			"remove": func(t *rapid.T) {
				if len(ends) > 0 {
					n := drawSlot()
					w.Unlink(&s, s.At(n))
					s.Free(n, s.At(n))
					delete(ends, n)
				}
			},
			"later": func(t *rapid.T) {
				if len(ends) > 0 {
					n := drawSlot()
					ends[n] = max(ends[n], drawEnd())
				}
			},
			"earlier": func(t *rapid.T) {
				if len(ends) > 0 {
					n := drawSlot()
					ends[n] = min(ends[n], drawEnd())
					w.Unlink(&s, s.At(n))
					w.Link(&s, n, s.At(n), ends[n])
				}
			},
			"pass": func(t *rapid.T) {
				now += rapid.SampledFrom([]uint64{0, 1, 10, 64, 5000, 1e6, 1e9, 1e11}).Draw(t, "ns")
				now = min(now, math.MaxInt64)
				due()
				for n, end := range ends {
					if end <= now {
						t.Fatalf("slot %d ended at %d, and at %d it is still there", n, end, now)
					}
				}
			},
			"a clock that is behind": func(*rapid.T) {
				before := now
				now -= min(now, rapid.Uint64Range(0, 200).Draw(t, "ns"))
				due()
				for n, end := range ends {
					if end <= now {
						t.Fatalf("slot %d ended at %d, and at %d it is still there", n, end, now)
					}
				}
				if rapid.Bool().Draw(t, "again") {
					now = before
				}
			},
		})
	})
}

// When the last slot is gone that came late, the next one is not looked for before its own end.
func TestTheWheelForgetsWhoCameLate(t *testing.T) {
	s := slabs{}
	w := newWheel()
	w.NowNS = 1000
	n, e := s.Alloc()
	for _, end := range []uint64{5, 8, 700} {
		w.Link(&s, n, e, end)
		if got := w.NextNS(); got != end {
			t.Errorf("next %d, want %d", got, end)
		}
		w.Unlink(&s, e)
		if got := w.NextNS(); got != Never {
			t.Errorf("next %d where there is none", got)
		}
	}
}
