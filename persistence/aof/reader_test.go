package aof

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"celld/persistence/source"
	"celld/resp/wire"
)

// A file that is cut off anywhere holds the commands before that, and a transaction as a whole or not at all. Where it is cut off, it
// can be extended: its checksum continues.
func TestFilesThatAreCutOff(t *testing.T) {
	var file []byte
	ends := []int{0} // of what runs as a whole
	add := func(words string) { file = wire.AppendCommand(file, strings.Fields(words)...) }
	stamped := 0
	for i := range 4 {
		add(fmt.Sprint("SET k ", i))
		ends = append(ends, len(file))
		add("MULTI")
		add("DEL k")
		add(fmt.Sprint("HSET k f ", i))
		add("EXEC")
		ends = append(ends, len(file))
		if i == 1 {
			file = AppendStamp(file, 1700, source.Checksum(0, file))
			stamped = len(file)
		}
	}
	for cut := range len(file) + 1 {
		whole := 0
		for _, end := range ends[1:] {
			if end <= cut {
				whole++
			}
		}
		ran := 0
		crc, savedNS, err := Read(source.New(bytes.NewReader(file[:cut]), int64(cut), nil), func(args [][]byte) error { ran++; return nil })
		if want := (whole+1)/2 + whole/2*2; ran != want {
			t.Fatalf("cut at %d: %d commands, want %d", cut, ran, want)
		}
		var d *DamageError
		if errors.As(err, &d) {
			if !d.Torn || d.Form || d.At > int64(cut) || d.At < int64(ends[whole]) {
				t.Fatalf("cut at %d: %+v", cut, d)
			}
			cut = int(d.At)
		} else if err != nil {
			t.Fatal(err)
		}
		from := 0
		if cut >= stamped {
			from = stamped
		}
		if (savedNS == 1700) != (from > 0) || crc != source.Checksum(0, file[from:cut]) {
			t.Fatalf("cut at %d: %d, %x", cut, savedNS, crc)
		}
	}
}

// A changed byte before a stamp is noticed, and an error of a command ends the reading.
func TestFilesThatAreChanged(t *testing.T) {
	file := wire.AppendCommand(nil, "SET", "k", "1")
	file = AppendStamp(file, 1700, source.Checksum(0, file))
	for i := range file {
		changed := bytes.Clone(file)
		changed[i] ^= 1
		_, _, err := Read(source.New(bytes.NewReader(changed), int64(len(changed)), nil), func([][]byte) error { return nil })
		if d := (*DamageError)(nil); !errors.As(err, &d) && i < bytes.Index(file, []byte("ECHO")) {
			t.Errorf("byte %d: %v", i, err)
		}
	}
	full := errors.New("full")
	_, _, err := Read(source.New(bytes.NewReader(file), int64(len(file)), nil), func([][]byte) error { return full })
	if !errors.Is(err, full) {
		t.Error(err)
	}
}

// reading is what Read makes of a text.
type reading struct {
	ran  []string
	fail string // a command that fails
	crc  uint64
	err  error
}

var errFails = errors.New("fails")

func read(text, fail string) (r reading) {
	r.fail = fail
	r.crc, _, r.err = Read(source.New(strings.NewReader(text), int64(len(text)), nil), func(args [][]byte) error {
		word := string(args[len(args)-1])
		r.ran = append(r.ran, word[:min(len(word), 9)])
		if word == fail {
			return errFails
		}
		return nil
	})
	return r
}

// Zeros behind a file, as a power failure may leave them, are cut off. Anything else that is no command is damage.
func TestWhatIsNoCommand(t *testing.T) {
	text := func(commands ...string) (all string) {
		for _, words := range commands {
			all += string(wire.AppendCommand(nil, strings.Fields(words)...))
		}
		return all
	}
	a, b := text("SET a 1"), text("SET b 2")
	large := strings.Repeat("x", 3<<20)
	tail := func(what string, torn bool) *DamageError {
		return &DamageError{At: int64(len(a)), What: what, Form: !torn, Torn: torn}
	}
	const middle = "it ends in the middle of a command"
	for _, test := range []struct {
		text string
		want string
		err  *DamageError // nil: none
	}{
		{a + b, "1 2", nil},
		{"", "", nil},
		{a + "\x00", "1", tail(middle, true)},
		{a + strings.Repeat("\x00", 5<<20), "1", tail(middle, true)},
		{a + b[:9] + strings.Repeat("\x00", 99), "1", tail(middle, true)},
		{a + b[:9] + strings.Repeat("\x00", 5<<20) + "x", "1", tail("", false)},
		{a + "\x00" + b, "1", tail("", false)},
		{a + "nonsense\r\n", "1", tail("", false)},
		{a + "nonsense\r\n\x00", "1", tail("", false)},
		{a + "#TS:5\r\n" + b, "1 2", nil},
		{"#\n" + a, "1", nil},
		{a + "#TS:5", "1", tail(middle, true)},
		{a + "#" + strings.Repeat("x", 1023), "1", tail(middle, true)},
		{a + "#" + strings.Repeat("x", 1024), "1", tail("an annotation that is too long", false)},
		{a + text("SET c "+large) + b, "1 xxxxxxxxx 2", nil},
		{a + text("MULTI", "SET c 3", "exec") + b, "1 3 2", nil},
		{a + text("MULTI", "MULTI", "SET c 3", "EXEC") + b, "1 3 2", nil},
		{text("EXEC") + a, "1", nil},
		{a + text("multi", "SET c 3"), "1", tail("it ends in the middle of a transaction", true)},
		{a + text("MULTI", "SET c 3") + b[:9], "1", tail("it ends in the middle of a transaction", true)},
	} {
		r := read(test.text, "")
		var d *DamageError
		errors.As(r.err, &d)
		ok := (d == nil) == (test.err == nil) && (d != nil) == (r.err != nil)
		if d != nil && test.err != nil {
			ok = d.At == test.err.At && strings.Contains(d.What, test.err.What) && d.Form == test.err.Form &&
				d.Torn == test.err.Torn
		}
		if d != nil && d.Torn && r.crc != source.Checksum(0, []byte(a)) {
			t.Errorf("%.99q: the checksum is not that of what is left", test.text)
		}
		if got := strings.Join(r.ran, " "); got != test.want || !ok {
			t.Errorf("%.99q (%d bytes): %q, %v, want %q, %v", test.text, len(test.text), got, r.err, test.want, test.err)
		}
	}
	whole := text("MULTI", "SET c 3")
	if r := read(whole, ""); r.err == nil || r.err.(*DamageError).At != 0 || len(r.ran) > 0 {
		t.Errorf("a file that is no more than the start of a transaction: %+v", r)
	}
	for _, commands := range []string{text("SET a fails", "SET b 2"), text("MULTI", "SET a fails", "EXEC", "SET b 2")} {
		if r := read(commands, "fails"); r.err != errFails || len(r.ran) != 1 {
			t.Errorf("%q: %+v", commands, r)
		}
	}
	_, _, err := Read(source.New(strings.NewReader(a), int64(len(a))+1, nil), func([][]byte) error { return nil })
	if err != source.ErrEnd {
		t.Errorf("a file that has become shorter: %v", err)
	}
}

// A transaction runs as a whole or not at all, also one of more than the 16 MB that are held back.
func TestALongTransaction(t *testing.T) {
	command := string(wire.AppendCommand(nil, "SET", "k", strings.Repeat("x", 1<<20)))
	before := string(wire.AppendCommand(nil, "SET", "a", "b"))
	for _, n := range []int{15, 16, 17, 40} {
		text := before + Multi + strings.Repeat(command, n)
		for _, tail := range []string{"", command[:9], "\x00\x00"} {
			r := read(text+tail, "")
			var d *DamageError
			if !errors.As(r.err, &d) || !d.Torn || d.At != int64(len(before)) || len(r.ran) != 1 ||
				r.crc != source.Checksum(0, []byte(before)) {
				t.Errorf("%d MB and %q: %d have run, %v", n, tail, len(r.ran), r.err)
			}
		}
		r := read(text+"nonsense"+command+Exec, "")
		if r.err == nil || r.err.(*DamageError).At != int64(len(text)) || len(r.ran) != 1 {
			t.Errorf("%d MB, damaged: %d have run, %v", n, len(r.ran), r.err)
		}
		if r := read(text+Exec+command, ""); r.err != nil || len(r.ran) != n+2 {
			t.Errorf("%d MB: %d have run, %v", n, len(r.ran), r.err)
		}
		if r := read(text+Exec+Multi+command, ""); r.err == nil || len(r.ran) != n+1 {
			t.Errorf("%d MB, and one more transaction: %d have run, %v", n, len(r.ran), r.err)
		}
	}
}
