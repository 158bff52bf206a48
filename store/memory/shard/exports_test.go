package shard

import (
	"fmt"
	"testing"

	"celld/store"
)

// An export that has ended remembers no renames. Others go on.
func TestTheEndOfAnExport(t *testing.T) {
	s := New(Options{})
	first, second := s.StartExport(), s.StartExport()
	s.EndExport(first)
	s.EndExport(first) // which says nothing more
	if running := s.Exports.running; len(running) != 1 || running[0] != second.renames {
		t.Errorf("%d exports are under way", len(running))
	}
	if s.EndExport(second); len(s.Exports.running) != 0 {
		t.Error("an export has not ended")
	}
}

// A rename is remembered from what the export has not passed, also from where it stands, to what it has. At the end it is told, if it
// is still there.
func TestRenamesThatAnExportWouldMiss(t *testing.T) {
	const now, ahead = 1000, 1 << 40
	s := New(Options{Shards: 1})
	early, late := []byte("a"), []byte("b")
	if s.placeOf(early) > s.placeOf(late) {
		early, late = late, early
	}
	many := s.StartExport()
	for i := range PerLock + 1 {
		many.renames.note(fmt.Append(nil, i), store.Value{TAT: now + 1})
	}
	for _, want := range []int{PerLock, 1, 0} {
		told := 0
		if more := many.renames.tell(now, ahead, func([]byte, store.Value) { told++ }); told != want || more != (want == PerLock) {
			t.Errorf("%d are told, and more: %v", told, more)
		}
	}
	s.EndExport(many)
	for name, c := range map[string]struct {
		at       uint64
		from, to []byte
		st       store.Value
		noted    bool
		told     int
	}{
		"across":                   {s.placeOf(late), late, early, store.Value{TAT: now + 1}, true, 1},
		"both to come":             {s.placeOf(early), late, early, store.Value{TAT: now + 1}, false, 0},
		"both passed":              {s.placeOf(late) + 1, late, early, store.Value{TAT: now + 1}, false, 0},
		"to what is to come":       {s.placeOf(late), early, late, store.Value{TAT: now + 1}, false, 0},
		"of which nothing is left": {s.placeOf(late), late, early, store.Value{TAT: now}, true, 0},
		"expires later":            {s.placeOf(late), late, early, store.Value{TAT: now + 1, ExpiryNS: ahead + 1}, true, 1},
		"has expired":              {s.placeOf(late), late, early, store.Value{TAT: now + 1, ExpiryNS: ahead}, true, 0},
		"never expires":            {s.placeOf(late), late, early, store.Value{TAT: now + 1, ExpiryNS: store.NoExpiry}, true, 1},
	} {
		p := s.StartExport()
		p.renames.at = c.at
		s.noteRename(c.from, c.to, c.st)
		if p.renames.any() != c.noted {
			t.Errorf("%s: noted %v", name, p.renames.any())
		}
		told := 0
		if more := p.renames.tell(now, ahead, func(key []byte, st store.Value) {
			told++
			if string(key) != string(c.from) || st != c.st {
				t.Errorf("%s: %q is told as %+v", name, key, st)
			}
		}); more || told != c.told || p.renames.any() {
			t.Errorf("%s: %d are told", name, told)
		}
		s.EndExport(p)
	}
}
