package persistence_test

import (
	"errors"
	"testing"

	"celld/persistence"
	"celld/store"
)

// While a snapshot is taken or the append-only file is rewritten, neither begins. The other kind follows if it was asked for.
func TestWhatIsAskedWhileAFileIsWritten(t *testing.T) {
	for _, saving := range []bool{true, false} {
		w, files := inMemory(t, appendOnly)
		w.mustOpen()
		w.put("a", store.Value{TAT: uint64(t0 + 90*second)})
		w.mustWrite()
		expect := func(what string, err, whileSaving, whileRewriting error) {
			if want := map[bool]error{true: whileSaving, false: whileRewriting}[saving]; !errors.Is(err, want) {
				t.Errorf("saving %v, %s: %v, want %v", saving, what, err, want)
			}
		}
		done := files.during("write", func() {
			expect("BackgroundSave", w.m.BackgroundSave(false), persistence.ErrSaving, persistence.ErrRewriting)
			if st := w.m.Status(); st.Saving != saving || st.Rewriting == saving || st.SaveScheduled || st.RewriteScheduled {
				t.Errorf("%+v", st)
			}
			if saving {
				expect("Save", w.m.Save(), persistence.ErrSaving, nil)
			}
			expect("BackgroundSave, scheduled", w.m.BackgroundSave(true), persistence.ErrSaving, persistence.ErrRewriting)
			expect("Rewrite", w.m.Rewrite(), persistence.ErrSaving, persistence.ErrRewriting)
			if st := w.m.Status(); st.SaveScheduled == saving || st.RewriteScheduled != saving {
				t.Errorf("%+v", st)
			}
			expect("ScheduleSave", w.m.ScheduleSave(), persistence.ErrSaving, nil)
			expect("ScheduleRewrite", w.m.ScheduleRewrite(), nil, persistence.ErrRewriting)
		})
		begin := w.m.Rewrite
		if saving {
			begin = func() error { return w.m.BackgroundSave(false) }
		}
		if err := begin(); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			w.settle()
			w.tick(second)
		}
		w.settle()
		if st := w.m.Status(); !done.Load() || st.Saves != 1 || st.Rewrites != 1 || st.SaveScheduled || st.RewriteScheduled {
			t.Errorf("saving %v: %+v", saving, st)
		}
		w.m.Stop()
		expect("BackgroundSave after Stop", w.m.BackgroundSave(false), persistence.ErrStopping, persistence.ErrStopping)
		expect("Rewrite after Stop", w.m.Rewrite(), persistence.ErrStopping, persistence.ErrStopping)
		if err := w.m.Close(false); err != nil {
			t.Error(err)
		}
	}
}
