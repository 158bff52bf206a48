package persistence_test

import (
	"fmt"
	"testing"

	"celld/persistence"
)

func TestParseSavePoints(t *testing.T) {
	for text, want := range map[string]string{
		"": "[]", "1 0": "[{1s 0}]", "3600 1 300 100": "[{1h0m0s 1} {5m0s 100}]", " 60  5 ": "[{1m0s 5}]",
		"9223372036854775 1": "[{2562047h47m16s 1}]", // 292 years
		"0 1":                "", "1 -1": "", "1": "", "1 2 3": "", "x 1": "", "1 x": "", "1.5 1": "",
	} {
		points, err := persistence.ParseSavePoints(text)
		if got := fmt.Sprint(points); (err != nil) != (want == "") || err == nil && got != want || err != nil && points != nil {
			t.Errorf("%q: %v, %v; want %s", text, points, err, want)
		}
	}
}

func TestParseFsync(t *testing.T) {
	for text, want := range map[string]persistence.Fsync{"always": persistence.Always, "no": persistence.Never,
		"everysec": persistence.EverySecond, "": persistence.EverySecond} {
		if got := persistence.ParseFsync(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
