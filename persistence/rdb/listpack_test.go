package rdb

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// appendElement writes an element of a listpack as Redis does: the shortest form of an integer, else a text.
func appendElement(b []byte, text string) []byte {
	start := len(b)
	n, err := strconv.ParseInt(text, 10, 64)
	isNumber := err == nil && strconv.FormatInt(n, 10) == text
	little := func(size int) {
		b = append(b, binary.LittleEndian.AppendUint64(nil, uint64(n))[:size]...)
	}
	fits := func(bits int) bool { return isNumber && n >= -1<<(bits-1) && n < 1<<(bits-1) }
	switch {
	case isNumber && n >= 0 && n < 128:
		b = append(b, byte(n))
	case fits(13):
		b = append(b, 0xc0|byte(uint16(n)>>8&0x1f), byte(n))
	case fits(16):
		b = append(b, 0xf1)
		little(2)
	case fits(24):
		b = append(b, 0xf2)
		little(3)
	case fits(32):
		b = append(b, 0xf3)
		little(4)
	case isNumber:
		b = append(b, 0xf4)
		little(8)
	case len(text) < 64:
		b = append(append(b, 0x80|byte(len(text))), text...)
	case len(text) < 4096:
		b = append(append(b, 0xe0|byte(len(text)>>8), byte(len(text))), text...)
	default:
		b = append(binary.LittleEndian.AppendUint32(append(b, 0xf0), uint32(len(text))), text...)
	}
	length := len(b) - start
	var back []byte
	for rest := length; len(back) == 0 || rest > 0; rest >>= 7 {
		back = append(back, byte(rest&127)|128)
	}
	back[len(back)-1] &= 127
	slices.Reverse(back)
	return append(b, back...)
}

func listpack(elements []string) []byte {
	b := make([]byte, 6)
	for _, text := range elements {
		b = appendElement(b, text)
	}
	b = append(b, 0xff)
	binary.LittleEndian.PutUint32(b, uint32(len(b)))
	binary.LittleEndian.PutUint16(b[4:], uint16(len(elements)))
	return b
}

func readListpack(b []byte) (elements []string, ok bool) {
	ok = eachOfListpack(b, func(name, value []byte) { elements = append(elements, string(name), string(value)) })
	return elements, ok
}

// Any listpack of pairs is read, in each of its forms.
func TestListpack(t *testing.T) {
	for _, n := range []int64{0, 127, 128, -1, 4095, 4096, -4096, -4097, 32767, -32768, 32768, 1<<23 - 1, -1 << 23, 1 << 23, 1<<31 - 1,
		-1 << 31, 1 << 31, -1 << 63, 1<<63 - 1} {
		want := []string{"number", fmt.Sprint(n)}
		if got, ok := readListpack(listpack(want)); !ok || !slices.Equal(got, want) {
			t.Errorf("%q: %q, %v", want, got, ok)
		}
	}
	for _, n := range []int{0, 1, 62, 63, 64, 124, 125, 126, 127, 128, 4094, 4095, 4096, 1<<14 - 6, 1<<14 - 5, 1 << 14,
		1<<21 - 6, 1<<21 - 5,
		1 << 21} {
		want := []string{strings.Repeat("x", n), "a value"}
		if got, ok := readListpack(listpack(want)); !ok || !slices.Equal(got, want) {
			t.Errorf("a text of %d bytes: %v", n, ok)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(rapid.OneOf(rapid.StringN(0, 200, 5000), rapid.Map(rapid.Int64(),
			func(n int64) string { return fmt.Sprint(n) })), 0, 12).Draw(t, "elements")
		want = want[:len(want)/2*2]
		b := listpack(want)
		if got, ok := readListpack(b); !ok || !slices.Equal(got, want) {
			t.Fatalf("%q: %q, %v", want, got, ok)
		}
		for n := range b {
			if _, ok := readListpack(b[:n]); ok {
				t.Fatalf("%q is read when it is cut at %d", b, n)
			}
		}
	})
	if _, ok := readListpack(listpack([]string{"a", "1", "b"})); ok {
		t.Error("an odd one is read")
	}
}

// An element that is cut off, or of an unknown code, is none.
func TestListpackElementsThatAreNone(t *testing.T) {
	for _, b := range []string{"\x81", "\xc0", "\xe0", "\xe0\x01", "\xf0\xff\xff\xff\xff", "\xf0\x01\x00\x00", "\xf1\x01", "\xf5abcdefgh"} {
		if element, n := listpackElement([]byte(b)); element != nil || n != 0 {
			t.Errorf("%q: %q, %d", b, element, n)
		}
	}
}

// The last element may end where the bytes end.
func TestListpackElementsThatEndWithTheBytes(t *testing.T) {
	for b, want := range map[string]string{"\x81a": "a", "\xc1\x01": "257", "\xe0\x01a": "a", "\xf0\x01\x00\x00\x00a": "a",
		"\xf1\x01\x00": "1"} {
		if element, n := listpackElement([]byte(b)); string(element) != want || n != len(b) {
			t.Errorf("%q: %q, %d", b, element, n)
		}
	}
}

// LZF never unpacks to more than the size that the file names.
func TestLZFThatGrows(t *testing.T) {
	packed := []byte("\x00a\xe0\xff\x00") // a, and 264 times what is before
	if out, ok := unpackLZF(nil, packed, 265); !ok || strings.Trim(string(out), "a") != "" {
		t.Errorf("%q, %v", out, ok)
	}
	for _, size := range []int{1, 4, 264} {
		if out, ok := unpackLZF(nil, packed, size); ok || len(out) > size {
			t.Errorf("%d bytes of %d, %v", len(out), size, ok)
		}
	}
}

// FuzzListpack: any bytes are read or refused, and what is read is no longer than they are.
func FuzzListpack(f *testing.F) {
	f.Add(listpack([]string{"gcra/1m", "limit=5/1m tat=1700000009000000000", "n", "-5", "m", "70000"}))
	f.Add(listpack([]string{strings.Repeat("x", 70), "1234567890123", strings.Repeat("y", 5000), "-70000"}))
	f.Add([]byte("\x0d\x00\x00\x00\x02\x00\xf0\xff\xff\xff\xff\x01\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) >= 4 { // or hardly any is looked into
			binary.LittleEndian.PutUint32(b, uint32(len(b)))
		}
		total := 0
		eachOfListpack(b, func(name, value []byte) { total += len(name) + len(value) })
		if total > 20*len(b) {
			t.Errorf("%d bytes of %d", total, len(b))
		}
	})
}
