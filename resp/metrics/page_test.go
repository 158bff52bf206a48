package metrics

import "testing"

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"user:42": "user:42", "é√日": "é√日", "": "", `"a" 'b'`: `"a" 'b'`, `\x00`: `\\x00`, "\x00\n\xff": `\x00\n\xff`,
		"a\u202eb\u200d": `a\u202eb\u200d`, "\"\\\"": `"\\"`,
	} {
		if got := Printable(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
