package watch

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"celld/internal/celldtest"
	"celld/resp/config"
	"celld/resp/loglimit"
	"celld/resp/metrics"
)

// world is a Watcher with one file, whose Take refuses a text with "bad" in it.
type world struct {
	Watcher
	t    *testing.T
	file File
	log  bytes.Buffer
	took []string
}

func newWorld(t *testing.T, path string) *world {
	w := &world{t: t}
	log := loglimit.New(slog.New(slog.NewTextHandler(&w.log, nil)), nil)
	w.Watcher = Watcher{Config: config.New(), Log: log, Survive: func(string, ...any) {
		if recover() != nil {
			w.log.WriteString("a panic\n")
		}
	}}
	w.file = File{Setting: "aclfile", Paths: []string{"", path}, Take: func() ([]any, error) {
		var all []string
		err := filepath.WalkDir(path, func(name string, d os.DirEntry, err error) error {
			if err == nil && !d.IsDir() && !strings.HasPrefix(d.Name(), ".") {
				all = append(all, celldtest.ReadFile(t, name))
			}
			return err
		})
		text := strings.Join(all, "+")
		switch {
		case err != nil:
			return nil, err
		case strings.Contains(text, "bad"):
			return nil, errors.New("a: it is bad\nb: and worse\nc: and worst")
		case strings.Contains(text, "panic"):
			panic("broken")
		}
		w.took = append(w.took, text)
		return []any{"words", len(text)}, nil
	}}
	w.Add(&w.file)
	return w
}

// looks expects what one look takes ("" for nothing), and what the log has of it.
func (w *world) looks(take string, logs ...string) {
	w.t.Helper()
	w.expect(func() { w.look(&w.file, false) }, take, logs...)
}

func (w *world) expect(do func(), take string, logs ...string) {
	w.t.Helper()
	w.log.Reset()
	w.took = nil
	do()
	if got := strings.Join(w.took, ","); got != take {
		w.t.Errorf("it takes %q, want %q", got, take)
	}
	got := strings.Split(strings.TrimSuffix(w.log.String(), "\n"), "\n")
	if len(logs) == 0 && w.log.Len() == 0 {
		return
	}
	if !slices.EqualFunc(got, logs, strings.Contains) {
		w.t.Errorf("the log has\n%s\nwant\n%s", &w.log, strings.Join(logs, "\n"))
	}
}

// counts are how often a content was taken and refused, and whether one is refused now.
func (w *world) counts(want string) {
	w.t.Helper()
	text := string(metrics.AppendText(nil, metrics.New(metrics.Section{Read: w.Declare}).Read(0)))
	var got []string
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "#") && strings.Contains(line, `file="aclfile"`) {
			got = append(got, strings.Fields(line)[1])
		}
	}
	if got = append(got[1:], got[0]); strings.Join(got, " ") != want {
		w.t.Errorf("%q, want %s of\n%s", got, want, text)
	}
}

const refused = `level=WARN msg="a file is refused, and what was read before stays" setting=aclfile`

// A content is taken when two looks have found the same. One that was half written is never taken.
func TestTwoLooks(t *testing.T) {
	path := celldtest.TempFile(t, "one")
	w := newWorld(t, path)
	w.looks("")
	w.looks("")
	celldtest.WriteFile(t, "two", path)
	w.looks("")
	w.looks("two", `msg="a file is taken" setting=aclfile file=`+path+` words=3`)
	w.looks("")
	celldtest.WriteFile(t, "thr", path)
	w.looks("")
	celldtest.WriteFile(t, "three", path)
	w.looks("")
	w.looks("three", "taken")
	w.counts("2 0 0")
}

// A wrong content changes nothing. It is told and counted once, and tried again, as it may be the world that is wrong.
func TestWrongContents(t *testing.T) {
	path := celldtest.TempFile(t, "one")
	w := newWorld(t, path)
	celldtest.WriteFile(t, "bad", path)
	w.looks("")
	w.looks("", refused+" file="+path+` error="a: it is bad" more_mistakes=2`)
	w.looks("")
	w.counts("0 1 1")
	if got := w.Troubles(); len(got) != 1 || got[0] != "the file of --aclfile is refused, and what was read before stays: a: it is bad" {
		t.Errorf("%q", got)
	}
	celldtest.WriteFile(t, "bad again", path)
	w.looks("")
	w.looks("", refused)
	w.counts("0 2 1")
	take := w.file.Take
	w.file.Take = func() ([]any, error) { return nil, nil } // what was wrong with the world is right now
	w.looks("", "taken")
	w.counts("1 2 0")
	w.file.Take = take

	celldtest.WriteFile(t, "good", path)
	w.looks("")
	w.looks("good", "taken")
	for range 2 { // it is told anew when it comes back
		celldtest.WriteFile(t, "bad", path)
		w.looks("")
		w.looks("", refused)
		celldtest.WriteFile(t, "good", path)
		w.looks("", "a file is again as it was before")
		w.looks("")
	}
	if got := w.Troubles(); got != nil {
		t.Errorf("%q", got)
	}
	celldtest.WriteFile(t, "panic", path)
	w.looks("")
	w.looks("", "a panic", `error="a fault in celld"`)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	w.looks("")
	w.looks("", "no such file")
}

// Somebody who says that files are whole is obeyed at once, and told each time.
func TestReload(t *testing.T) {
	path := celldtest.TempFile(t, "one")
	w := newWorld(t, path)
	w.expect(w.Reload, "", `msg=reloaded unchanged=aclfile failed=""`)
	celldtest.WriteFile(t, "two", path)
	w.expect(w.Reload, "two", "taken", `msg=reloaded unchanged="" failed=""`)
	celldtest.WriteFile(t, "bad", path)
	for n := range 2 {
		w.expect(w.Reload, "", refused, `msg=reloaded unchanged="" failed=aclfile`)
		w.counts(fmt.Sprintf("1 %d 1", n+1))
	}
	w.looks("") // the looks that follow need not say it again
	w.looks("")
	none := Watcher{Config: w.Config, Log: w.Log}
	none.Add(&File{Setting: "aclfile", Paths: []string{""}})
	w.expect(none.Reload, "", "there is nothing to reload")
}

// A ConfigMap's links are swapped; a file moves; a directory comes and goes.
func TestLinksAndDirectories(t *testing.T) {
	dir := celldtest.Tree(t, map[string]string{"v1/a": "1", "v2/a": "2", "v2/b": "3", "now": "->v1"})
	w := newWorld(t, filepath.Join(dir, "now")+"/")
	point := func(to string) {
		aside := filepath.Join(dir, "new")
		if err := errors.Join(os.Symlink(to, aside), os.Rename(aside, filepath.Join(dir, "now"))); err != nil {
			t.Fatal(err)
		}
	}
	point("v2")
	w.looks("")
	w.looks("2+3", "taken")
	if err := os.Rename(filepath.Join(dir, "v2/b"), filepath.Join(dir, "v2/c")); err != nil {
		t.Fatal(err)
	}
	w.looks("")
	w.looks("2+3", "taken") // under another name it may be another thing
	point("none")
	w.looks("")
	w.looks("", "no such file")
	point("v1")
	w.looks("")
	w.looks("1", "taken")
	point("v2")
	w.looks("")
	point("v1")
	w.looks("")
	w.looks("")
}

// What changes between the reading by a start and the first look is not missed. What celld writes itself is no change.
func TestSeenAndSaved(t *testing.T) {
	path := celldtest.TempFile(t, "one")
	w := newWorld(t, path)
	w.Config.ACLFile.Put(path)
	w.Seen = See(w.Config)
	celldtest.WriteFile(t, "two", path)
	w.files, w.file = nil, File{Setting: "aclfile", Paths: []string{path}, Take: w.file.Take}
	w.Add(&w.file)
	w.looks("")
	w.looks("two", "taken")

	saved := 0
	w.file.Saved = func() { saved++ }
	celldtest.WriteFile(t, "three", path)
	w.looks("")
	w.Saved("policies")
	w.Saved("aclfile")
	w.looks("")
	w.looks("")
	w.counts("1 0 0")
	if saved != 1 {
		t.Errorf("it is told %d times", saved)
	}
	w.expect(func() { w.Read(&w.file) }, "three", "taken")
}

// Files are looked at every 2 s, and less often where that takes long; with --watch no never.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := celldtest.TempFile(t, "one")
		w := newWorld(t, path)
		began, at := time.Now(), []time.Duration(nil)
		w.file.Take = func() ([]any, error) {
			if at = append(at, time.Since(began)); len(at) == 2 {
				time.Sleep(time.Second)
			}
			return nil, errors.New("not yet")
		}
		celldtest.WriteFile(t, "two", path)
		w.Run(t.Context())
		celldtest.Pass(50 * time.Second)
		want := []time.Duration{4 * time.Second, 6 * time.Second, 27 * time.Second, 29 * time.Second}
		if len(at) < 4 || !slices.Equal(at[:4], want) {
			t.Errorf("it is read at %v, want %v", at, want)
		}
		if err := w.Config.Watch.Set("no"); err != nil {
			t.Fatal(err)
		}
		before := len(at)
		other := newWorld(t, path)
		other.Config = w.Config
		other.file.Take = func() ([]any, error) { panic("it is read") }
		celldtest.WriteFile(t, "three", path)
		other.Run(t.Context())
		celldtest.Pass(10 * time.Second)
		if len(at) == before {
			t.Error("the first has stopped")
		}
	})
}
