package table

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"celld/cell"
)

func newTable() *Table {
	t := &Table{}
	t.Clear()
	t.UseMemory(newMemory(), &WallAhead{})
	return t
}

// add puts a key into the table as a shard does, on probation.
func (t *Table) add(hash uint64, key []byte) (uint32, *Slot) {
	n, e := t.Slabs.Alloc()
	e.SetInfo(keyLenMask, t.Keys.Set(e, key))
	t.Lists.Push(&t.Slabs, Probation, n, e)
	t.Index.Insert(TagOfHash(hash), n)
	return n, e
}

func (t *Table) remove(hash uint64, n uint32, e *Slot) {
	t.Index.Remove(TagOfHash(hash), n)
	t.Lists.Pull(&t.Slabs, e)
	t.Keys.Free(e)
	t.Slabs.Free(n, e)
}

// A key of any length is found by its bytes, and by no others that have the same hash. What is freed leaves nothing behind.
func TestKeysOfAllLengths(t *testing.T) {
	table := newTable()
	random := rand.New(rand.NewPCG(3, 4))
	type entry struct {
		key  []byte
		n    uint32
		e    *Slot
		hash uint64
	}
	var entries []entry
	for i, length := range slices.Concat(lengths(0, 100), lengths(250, 260), []int{4000}) {
		key := make([]byte, length)
		for b := range key {
			key[b] = byte(1 + random.IntN(255))
		}
		hash := uint64(i)<<48 | uint64(i)
		n, e := table.add(hash, key)
		entries = append(entries, entry{key, n, e, hash})
	}
	for _, x := range entries {
		length := len(x.key)
		if n, e := table.Slot(x.hash, x.key); n != x.n || e != x.e {
			t.Fatalf("the key of %d bytes is in slot %d, found in %d", length, x.n, n)
		}
		if e := table.Peek(x.hash, x.key); length < HugeKey && e != x.e || length >= HugeKey && e != nil {
			t.Errorf("the key of %d bytes is seen as %p without the lock, its slot is %p", length, e, x.e)
		}
		var scratch [HugeKey]byte
		if got := table.Keys.View(x.e, &scratch); !bytes.Equal(got, x.key) {
			t.Errorf("the key of %d bytes is told as %q, want %q", length, got, x.key)
		}
		if cost := table.CostBytes(x.n, x.e); cost != CostBytes(length) {
			t.Errorf("the key of %d bytes costs %d", length, cost)
		}
		others := [][]byte{append(slices.Clone(x.key), 0), append(slices.Clone(x.key), 7), slices.Concat(x.key, make([]byte, 300))}
		if length > 0 {
			others = append(others, x.key[:length-1])
		}
		for b := range x.key {
			other := slices.Clone(x.key)
			other[b] ^= 1
			others = append(others, other)
		}
		for _, other := range others {
			if n, e := table.Slot(x.hash, other); n != NoSlot || e != nil {
				t.Errorf("%q is found as %q", other, x.key)
			}
			if table.Peek(x.hash, other) != nil {
				t.Errorf("%q is seen as %q", other, x.key)
			}
			if len(other) >= HugeKey && table.Keys.Is(x.e, other) {
				t.Errorf("%q of any bytes is taken for %q without a look at them", other, x.key)
			}
		}
	}
	for _, x := range entries {
		table.remove(x.hash, x.n, x.e)
	}
	tails, slots, huge := table.Keys.Tails.FreePlaces.InUse, table.Slabs.FreePlaces.InUse, table.Keys.Huge.FreePlaces.InUse
	if tails != 0 || slots != 0 || huge != 0 {
		t.Errorf("%d tails, %d slots and %d long keys are left of no keys", tails, slots, huge)
	}
}

// hashOf spreads numbers as a hash does.
func hashOf(i uint64) uint64 { return i * 0x9e3779b97f4a7c15 }

func lengths(from, to int) (all []int) {
	for n := from; n <= to; n++ {
		all = append(all, n)
	}
	return all
}

// Two keys with one hash are both found, and a table that was cleared has neither of them, for a look without the lock too.
func TestKeysOfOneHash(t *testing.T) {
	table := newTable()
	hash := binary.LittleEndian.Uint64([]byte("one hash"))
	keys := [][]byte{[]byte("a"), []byte("b"), bytes.Repeat([]byte("c"), 40), bytes.Repeat([]byte("d"), 300),
		bytes.Repeat([]byte("e"), 300)}
	for _, key := range keys {
		table.add(hash, key)
	}
	for i, key := range keys {
		if n, e := table.Slot(hash, key); n != uint32(i+1) || e != table.Slabs.At(n) {
			t.Errorf("key %d is in slot %d", i, n)
		}
		if e := table.Peek(hash, key); len(key) < HugeKey && e != table.Slabs.At(uint32(i+1)) {
			t.Errorf("key %d is seen as %p", i, e)
		}
	}
	table.AddLimit(table.Slabs.At(1), &cell.Limit{}, 0)
	if table.Clear(); table.IdleBytes() != 0 || table.Slabs.Top != 0 {
		t.Errorf("a clear table has %d idle bytes, and %d slots", table.IdleBytes(), table.Slabs.Top)
	}
	for i, key := range keys {
		if n, _ := table.Slot(hash, key); n != NoSlot || table.Peek(hash, key) != nil {
			t.Errorf("key %d is found in a clear table", i)
		}
	}
	if table.Slabs.Peek(1) != nil || table.Keys.Tails.Peek(1) != nil || table.Limits.Peek(1) != nil {
		t.Error("a clear table shows places")
	}
	if n, e := table.add(hash, keys[0]); n != 1 || e.HoldsLimits() {
		t.Errorf("the first key of a clear table is in slot %d", n)
	}
}

// Next passes free slots and slabs without any in use, and stops after as many tries as it is told.
func TestNextSlotInUse(t *testing.T) {
	table := newTable()
	const slots = 3 * SlabSize
	for i := range uint64(slots) {
		table.add(hashOf(i), binary.LittleEndian.AppendUint64(nil, i))
	}
	keep := map[uint32]bool{7: true, 9: true, 2*SlabSize + 30: true}
	for n := uint32(1); n <= slots; n++ {
		if !keep[n] {
			table.remove(hashOf(uint64(n-1)), n, table.Slabs.At(n))
		}
	}
	for _, c := range []struct {
		from     uint32
		tries    int
		at       uint32
		left     int
		describe string
	}{
		{7, 1, 7, 1, "it is in use"},
		{0, 8, 7, 1, "the eighth place"},
		{0, 7, 7, 0, "not reached"},
		{8, 5, 9, 4, "the place after"},
		{SlabSize, 40, 2*SlabSize + 30, 9, "an empty slab is one try"},
		{SlabSize + 5, 1, 2 * SlabSize, 0, "to the end of an empty slab"},
		{slots + 1, 5, slots + 1, 0, "behind the last"},
	} {
		n, left := table.Slabs.Next(c.from, c.tries)
		if n != c.at || left != c.left {
			t.Errorf("%s: from %d with %d tries to %d, %d left; want %d, %d left", c.describe, c.from, c.tries, n, left, c.at, c.left)
		}
	}
}

// An empty slab stays as long as the journal has one of its slots, and goes when that is told.
func TestSlabOfJournaledSlots(t *testing.T) {
	table := newTable()
	const slots = 4 * SlabSize
	for i := range uint64(slots) {
		_, e := table.add(hashOf(i), binary.LittleEndian.AppendUint64(nil, i))
		e.SetInfo(FlagJournaled, FlagJournaled)
	}
	there := table.Slabs.FreePlaces.There
	for n := uint32(1); n <= slots; n++ {
		e := table.Slabs.At(n)
		if table.remove(hashOf(uint64(n-1)), n, e); !e.Has(FlagJournaled) || e.Has(flagList|keyLenMask) {
			t.Fatalf("free slot %d has info %x", n, e.Info.Load())
		}
	}
	if table.Slabs.FreePlaces.There != there {
		t.Errorf("%d of %d slabs stay, whose slots are in the journal", table.Slabs.FreePlaces.There, there)
	}
	for n := uint32(1); n <= slots; n++ {
		if e := table.Slabs.At(n); e.Has(FlagJournaled) {
			e.SetInfo(FlagJournaled, 0)
			table.Slabs.Told(n)
		}
	}
	if left := table.Slabs.FreePlaces.There; left != 2 {
		t.Errorf("%d slabs stay, want the first and a spare one", left)
	}
	if n := uint32(slots - 1); table.Slabs.At(n) != &noSlab[n%SlabSize] || table.Slabs.Peek(n) != table.Slabs.At(n) {
		t.Error("a slab that has gone is not shown as one of free slots")
	}
}

// The orders of use are those of a model of slices, as keys come, go, are used and fall back.
func TestOrdersOfUse(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	table := newTable()
	l := &table.Lists
	var model [3][]uint32 // the youngest first
	where := map[uint32]listName{}
	push := func(name listName, n uint32) {
		l.Push(&table.Slabs, name, n, table.Slabs.At(n))
		model[name], where[n] = slices.Insert(model[name], 0, n), name
	}
	out := func(n uint32) {
		name := where[n]
		model[name] = slices.DeleteFunc(model[name], func(m uint32) bool { return m == n })
		delete(where, n)
	}
	draw := func() uint32 {
		name := listName(1 + random.IntN(2))
		if len(model[name]) == 0 {
			return NoSlot
		}
		return model[name][random.IntN(len(model[name]))]
	}
	for step := range 5_000 {
		switch random.IntN(8) {
		case 0, 1:
			n, _ := table.Slabs.Alloc()
			push(listName(1+random.IntN(2)), n)
		case 2:
			if n := draw(); n != NoSlot {
				l.Pull(&table.Slabs, table.Slabs.At(n))
				table.Slabs.Free(n, table.Slabs.At(n))
				out(n)
			}
		case 3, 4, 5, 6:
			if n := draw(); n != NoSlot {
				name := where[n]
				if name == Probation {
					name = Protected
				}
				l.Touch(&table.Slabs, n, table.Slabs.At(n))
				out(n)
				model[name], where[n] = slices.Insert(model[name], 0, n), name
			}
		default:
			keys := len(model[1]) + len(model[2])
			for range min(len(model[Protected])-keys*4/5, mostFallBack) {
				n := model[Protected][len(model[Protected])-1]
				out(n)
				model[Probation], where[n] = slices.Insert(model[Probation], 0, n), Probation
			}
			want := uint32(NoSlot)
			for _, name := range []listName{Probation, Protected} {
				if of := model[name]; len(of) > 0 && want == NoSlot {
					want = of[len(of)-1]
				}
			}
			if got := l.Victim(&table.Slabs); got != want {
				t.Fatalf("step %d: slot %d goes, want %d", step, got, want)
			}
		}
		if step%10 > 0 {
			continue
		}
		for name := Probation; name <= Protected; name++ {
			u := l.Of(name)
			var old, young []uint32
			for n := u.first; n != NoSlot; n = table.Slabs.At(n).Older() {
				old = append(old, n)
			}
			for n := u.Last; n != NoSlot; n = table.Slabs.At(n).younger() {
				young = append(young, n)
			}
			slices.Reverse(young)
			if !slices.Equal(old, model[name]) || !slices.Equal(young, model[name]) || u.Keys != len(old) {
				t.Fatalf("step %d: list %d is %v and %v with %d keys, want %v", step, name, old, young, u.Keys, model[name])
			}
			for _, n := range old {
				if table.Slabs.At(n).List() != name {
					t.Fatalf("step %d: slot %d says list %d, and is in %d", step, n, table.Slabs.At(n).List(), name)
				}
			}
		}
	}
}
