package rdb

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"celld/persistence/source"
)

// seen is what Read found in a file: "key=value", with "@expiry" if there is one, and "key:kind".
type seen []string

func (s *seen) String(key, value []byte, expiryMS int64) error {
	text := fmt.Sprintf("%s=%s", key, value)
	if expiryMS >= 0 {
		text += fmt.Sprintf("@%d", expiryMS)
	}
	*s = append(*s, text)
	return nil
}

func (*seen) Field(f *Fields, _, _ []byte) { f.Bad = true }
func (*seen) Setting(string, string) bool  { return false }
func (s *seen) Hash(key []byte, _ *Fields, _ int64) error {
	s.Other(key, "hash")
	return nil
}
func (s *seen) Other(key []byte, kind string) { *s = append(*s, string(key)+":"+kind) }

func readAll(file []byte) (seen, error) {
	var all seen
	_, err := Read(source.New(bytes.NewReader(file), int64(len(file)), nil), &all)
	return all, err
}

// withChecksum ends a file.
func withChecksum(file string) []byte {
	b := append([]byte(file), opEOF)
	return binary.LittleEndian.AppendUint64(b, source.Checksum(0, b))
}

const (
	eight   = "12345678"
	sixteen = eight + eight
	// The content of a listpack or one of its forerunners does not matter: it is one string.
	packed = "\x03abc"
	lzf    = "\xc3\x05\x0a\x00a\xe0\x00\x00" // ten times a
	group  = "\x05group\x01\x02"             // its name and last ID
	// One pending entry in the group, given to one of two consumers.
	pending = "\x01" + sixteen + eight + "\x01"
)

// rdbValues are values of all types, as each version of Redis has written them.
var rdbValues = []struct {
	kind  byte
	value string
	want  string // "": it is refused
}{
	{typeList, "\x03\x01a\xc0\x05" + lzf, "list"},
	{typeList, "\x00", "list"},
	{typeSet, "\x02\x01a\xc1\x00\x01", "set"},
	{typeZSet, "\x04\x01a\x031.5\x01b\xfd\x01c\xfe\x01d\xff", "zset"},
	{typeHash, "\x02\x01a\x01b\xc2\x01\x02\x03\x04" + lzf, "hash"},
	{typeZSet2, "\x02\x01a" + eight + "\x01b" + eight, "zset"},
	{typeModule, "\x81" + eight, ""},
	{typeModule2, "\x81" + eight + "\x01\x05\x02\x40\x00\x03abcd\x04" + eight + "\x05\x03abc\x05" + lzf + "\x00", "module"},
	{typeModule2, "\x81" + eight + "\x06\x00", ""},
	{8, packed, ""},
	{typeHashZipmap, packed, "hash"},
	{typeListZiplist, lzf, "list"},
	{typeSetIntset, "\x0a\x02\x00\x00\x00\x01\x00\x00\x00\x05\x00", "set"},
	{typeZSetZiplist, packed, "zset"},
	{typeHashZiplist, packed, "hash"},
	{typeListQuicklist, "\x02" + packed + lzf, "list"},
	{typeStream, "\x01\x10" + sixteen + packed + "\x02\x05\x06\x01" + group + pending + "\x02\x05alice" + eight + "\x01" + sixteen + "\x03bob" + eight + "\x00", "stream"},
	{typeHashListpack, packed, "hash"},
	{typeZSetListpack, packed, "zset"},
	{typeListQuicklist2, "\x02\x01" + lzf + "\x02" + packed, "list"},
	{typeStream2, "\x00\x02\x05\x06\x01\x02\x03\x04\x07\x01" + group + "\x09" + pending + "\x01\x05alice" + eight + "\x01" + sixteen, "stream"},
	{typeSetListpack, packed, "set"},
	{typeStream3, "\x00\x02\x05\x06\x01\x02\x03\x04\x07\x01" + group + "\x09" + pending + "\x01\x05alice" + eight + eight + "\x01" + sixteen, "stream"},
	{typeHashFieldTTLRC, "\x02\x00\x01a\x01b\x81" + eight + "\x01c" + lzf, "hash"},
	{typeHashListTTLRC, packed, "hash"},
	{typeHashFieldTTL, eight + "\x02\x00\x01a\x01b\x81" + eight + "\x01c" + lzf, "hash"},
	{typeHashListTTL, eight + packed, "hash"},
	{26, packed, ""},
	{243, packed, ""},
}

// rdbOpcodes is what stands in between.
var rdbOpcodes = []struct {
	name, text string
	refused    bool
}{
	{name: "slot", text: "\xf4\x05\x40\x80\x01"},
	{name: "function", text: "\xf5\x0aten bytes."},
	{name: "function, compressed", text: "\xf5" + lzf},
	{name: "function before 7.0", text: "\xf6\x01a\x01b", refused: true},
	{name: "module aux", text: "\xf7\x81" + eight + "\x02\x01\x05\x03abc\x00"},
	{name: "idle", text: "\xf8\x80\x00\x01\x00\x00"},
	{name: "frequency", text: "\xf9\xff"},
	{name: "aux", text: "\xfa\x04name\xc0\x05"},
	{name: "aux, compressed", text: "\xfa" + lzf + lzf},
	{name: "resize", text: "\xfb\x05\x81" + eight},
	{name: "database", text: "\xfe\x00"},
}

// The end of each type is known: the limits before and after it are read, whatever surrounds them.
func TestRDBValues(t *testing.T) {
	for _, v := range rdbValues {
		t.Run(fmt.Sprintf("%d %s", v.kind, v.want), func(t *testing.T) {
			file := withChecksum("REDIS0012\x00\x01a\xc0\x05\xfc\x07\x00\x00\x00\x00\x00\x00\x00" + string(v.kind) + "\x01v" + v.value +
				"\xfd\x02\x00\x00\x00\x00\x01b\xc0\x06")
			all, err := readAll(file)
			if v.want == "" {
				if err == nil || !strings.Contains(err.Error(), "unknown") {
					t.Errorf("%v, %v", all, err)
				}
				return
			}
			if err != nil || !slices.Equal(all, seen{"a=5", "v:" + v.want, "b=6@2000"}) {
				t.Errorf("%v, %v", all, err)
			}
			everyCut(t, file)
		})
	}
	for _, o := range rdbOpcodes {
		t.Run(o.name, func(t *testing.T) {
			// An expiry stands before the idle time or frequency, and all of them before the type.
			file := withChecksum("REDIS0012\x00\x01a\xc0\x05\xfc\x07\x00\x00\x00\x00\x00\x00\x00" + o.text + "\x00\x01b\xc0\x06")
			all, err := readAll(file)
			if o.refused {
				if err == nil {
					t.Errorf("%v", all)
				}
				return
			}
			if err != nil || !slices.Equal(all, seen{"a=5", "b=6@7"}) {
				t.Errorf("%v, %v", all, err)
			}
			everyCut(t, file)
		})
	}
}

// everyCut checks that a file that ends early is refused, wherever.
func everyCut(t *testing.T, file []byte) {
	t.Helper()
	for n := range len(file) {
		if all, err := readAll(file[:n]); err == nil || !strings.HasPrefix(err.Error(), "damaged at byte ") {
			t.Errorf("cut at %d of %d: %v, %v", n, len(file), all, err)
		}
	}
}

// Impossible lengths take neither memory nor time.
func TestRDBLengths(t *testing.T) {
	most := "\x81\xff\xff\xff\xff\xff\xff\xff\xff"
	for _, text := range []string{
		"\x00" + most, "\x00\x01a" + most, "\x00\x81\x80\x00\x00\x00\x00\x00\x00\x00",
		"\x01\x01a" + most, "\x0e\x01a" + most, "\x0f\x01a" + most, "\x04\x01a" + most + "\x01b", "\x18\x01a" + eight + most,
		"\xfa" + most, "\xf5" + most, "\xf7" + most + "\x05" + most,
		"\x00\x01a\xc3" + most + most, "\x00\x01a\xc3\x04" + most + "\xe0\xff\x00\x00", "\x00\x01a\xc3\x03\x80\x7f\xff\xff\xffabc",
		"\x01\x01a\x01\xc3" + most + "\x05", "\x00\xc4a", "\x00\x82abcd", "\x01\x01a\xc0\x05", "\xfe\xc0\x05",
		"\x03\x01a\x01\x01a\xfc" + eight,
	} {
		file := withChecksum("REDIS0012" + text)
		used := testing.AllocsPerRun(1, func() {
			if all, err := readAll(file); err == nil {
				t.Errorf("%q: %v", text, all)
			}
		})
		if used > 50 {
			t.Errorf("%q: %.0f allocations", text, used)
		}
	}
}

// Strings of all codings.
func TestRDBStrings(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"\xc0\x7f", "k=127"},
		{"\xc0\x80", "k=-128"},
		{"\xc1\xff\x7f", "k=32767"},
		{"\xc2\xff\xff\xff\x7f", "k=2147483647"},
		{"\xc2\x00\x00\x00\x80", "k=-2147483648"},
		{"\x40\x0213", "k=13"},
		{"\x80\x00\x00\x00\x0213", "k=13"},
		{"\x81\x00\x00\x00\x00\x00\x00\x00\x0213", "k=13"},
		{"\x1418446744073709551615", "k=18446744073709551615"},
		{"\x00", "k="},
		{"\x04text", "k=text"},
		{"\xc3\x05\x0a\x005\xe0\x00\x00", "k=5555555555"},
		{"\xc3\x06\x06\x01\x31\x32\x40\x01\xff", ""}, // refers to before its start
		{"\xc3\x05\x0b\x005\xe0\x00\x00", ""},        // shorter than it says
		{"\xc3\x05\x09\x005\xe0\x00\x00", ""},        // longer
		{"\xc3\x00\x00", "k="},
		{"\xc3\x01\x05\xe0", ""},
		{"\xc3\x02\x05\x04a", ""},
	} {
		all, err := readAll(withChecksum("REDIS0003\x00\x01k" + test.text))
		if test.want == "" {
			if err == nil {
				t.Errorf("%q: %v", test.text, all)
			}
		} else if err != nil || !slices.Equal(all, seen{test.want}) {
			t.Errorf("%q: %v, %v, want %s", test.text, all, err, test.want)
		}
	}
}

// The header says what reads the file; a checksum is there since version 5.
func TestRDBVersions(t *testing.T) {
	for _, test := range []struct {
		file string
		good bool
	}{
		{"REDIS0001\x00\x01a\xc0\x05\xff", true},
		{"REDIS0004\x00\x01a\xc0\x05\xff", true},
		{"REDIS0005\x00\x01a\xc0\x05\xff", false},
		{"REDIS0005\x00\x01a\xc0\x05\xff\x00\x00\x00\x00\x00\x00\x00\x00", true},
		{string(withChecksum("REDIS0005\x00\x01a\xc0\x05")), true},
		{"REDIS0012\x00\x01a\xc0\x05\xff\x00\x00\x00\x00\x00\x00\x00\x01", false},
		{"REDIS0000\xff", false},
		{"REDIS0013\xff\x00\x00\x00\x00\x00\x00\x00\x00", false},
		{"REDIS-001\xff", false},
		{"VALKEY080\xff", false},
		{"redis0009\xff", false},
		{"REDIS", false},
		{"", false},
	} {
		if all, err := readAll([]byte(test.file)); err == nil != test.good {
			t.Errorf("%q: %v, %v", test.file, all, err)
		}
	}
}
