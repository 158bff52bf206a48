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

// A file that is cut off anywhere has the commands before that, and a transaction as a whole or not at all. What it is cut off to can be
// extended: its checksum goes on.
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
			if !d.Torn || d.Form || d.Open || d.At > int64(cut) || d.At < int64(ends[whole]) {
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

// A byte that is changed before a stamp is noticed, and an error of a command ends the reading.
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
	if _, _, err := Read(source.New(bytes.NewReader(file), int64(len(file)), nil), func([][]byte) error { return full }); !errors.Is(err, full) {
		t.Error(err)
	}
}
