package persistence_test

import "testing"

// The function of OnRefusal is called when writes begin to be refused, and when they no longer are, whatever the reason.
func TestRefusalIsTold(t *testing.T) {
	w, files := inMemory(t, always)
	w.mustOpen()
	refused := true
	w.m.OnRefusal(func(is bool) { refused = is })
	want := func(want bool, when string) {
		t.Helper()
		if is := w.m.Refusal() != nil; is != want || refused != want {
			t.Errorf("%s: refused %v, told %v", when, is, refused)
		}
	}
	want(false, "at the start")
	w.throttle("a")
	w.mustWrite()
	if err := files.Remove(w.path("appendonly.aof")); err != nil {
		t.Fatal(err)
	}
	files.failing(failOn("create"))
	w.tick(second)
	w.settle()
	want(true, "without the file")
	files.failing(nil)
	w.tick(10 * second)
	w.settle()
	want(false, "with the file written anew")
	files.failing(failOn("write"))
	w.throttle("b")
	if err := w.commit(); err == nil {
		t.Error("written")
	}
	want(true, "on a full disk")
	files.failing(nil)
	w.tick(second)
	want(false, "on a disk with room")
}
