package resp

import (
	"os"
	"path/filepath"
	"testing"
)

// A loop that has ended writes no more to its wake descriptor, whose number may be that of another file by then.
func TestAskAfterTheEnd(t *testing.T) {
	l, err := newEpollLoop(newWorld(t).Server)
	if err != nil {
		t.Fatal(err)
	}
	l.closeAll()
	path := filepath.Join(t.TempDir(), "f")
	for range 8 {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
	}
	l.ask(nil)
	if text, _ := os.ReadFile(path); len(text) != 0 {
		t.Errorf("%q was written to a file", text)
	}
}
