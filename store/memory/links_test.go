package memory_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"celld/store"
	"celld/store/memory"
	"celld/store/memory/memtest"
)

// held is the text of all that keys hold, as tools see it.
func held(s *memory.Store, nowNS int64, keys ...string) (text string) {
	for _, key := range keys {
		text += key + ":"
		_, _ = s.Limits([]byte(key), memtest.Untouched(nowNS), func(l *store.LimitState) {
			text += fmt.Sprintf(" %s %s", l.AppendName(nil), l.Limit.AppendState(nil, &l.State))
		})
		text += "\n"
	}
	return text
}

// leads takes from a and b in one lease, whose links are under a, and returns its ID.
func leads(t *testing.T, s *memory.Store, limit, name string) int64 {
	t.Helper()
	calls := []store.Call{{Key: []byte("a"), Limit: limitOf(t, limit)}, {Key: []byte("b"), Limit: limitOf(t, limit)}}
	terms := &store.Terms{Name: name}
	if !calls[0].Limit.HoldsLeases() {
		terms.LeaseNS = 60 * second
	}
	taken, err := s.Take(calls, store.TakeOptions{Cost: 2, Terms: terms}, memtest.At(t0))
	if err != nil || taken.Limited || terms.Lease == 0 {
		t.Fatal(taken, err, terms.Lease)
	}
	return terms.Lease
}

// A caller needs the right to the keys to which a lease leads: else nothing changes, whatever is asked for.
func TestLinksNeedARight(t *testing.T) {
	for _, limit := range []string{"9/1m,algo=conc", "9/1h", "9/1h,algo=log"} {
		for _, test := range []struct {
			name           string
			reads, writes  bool
			ask            func(s *memory.Store, id int64, a store.Access) error
			changesNothing bool
		}{
			{name: "release", reads: true, writes: true, ask: func(s *memory.Store, id int64, a store.Access) error {
				done, err := s.Release([]byte("a"), id, a)
				if done && err != nil {
					t.Error("it is released, and refused")
				}
				return err
			}},
			{name: "settle", reads: true, writes: true, ask: func(s *memory.Store, id int64, a store.Access) error {
				_, err := s.Settle([]byte("a"), id, 5, a)
				return err
			}},
			{name: "renew", reads: true, writes: true, ask: func(s *memory.Store, id int64, a store.Access) error {
				_, err := s.Renew([]byte("a"), id, 90*second, a)
				return err
			}},
			{name: "repeat", reads: true, writes: true, changesNothing: true, ask: func(s *memory.Store, _ int64, a store.Access) error {
				l := limitOf(t, limit)
				terms := &store.Terms{Name: "n"}
				if !l.HoldsLeases() {
					terms.LeaseNS = 60 * second
				}
				_, err := s.Take([]store.Call{{Key: []byte("a"), Limit: l}}, store.TakeOptions{Cost: 2, Terms: terms}, a)
				if (err == nil) != (terms.Lease != 0) {
					t.Errorf("%v, lease %d", err, terms.Lease)
				}
				return err
			}},
			{name: "rename", reads: true, writes: true, ask: func(s *memory.Store, _ int64, a store.Access) error {
				there, err := s.Rename([]byte("a"), []byte("a2"), a)
				if !there {
					t.Error("it is not there")
				}
				return err
			}},
			{name: "rename, if new", reads: true, writes: true, ask: func(s *memory.Store, _ int64, a store.Access) error {
				_, moved, err := s.RenameNew([]byte("a"), []byte("a2"), a)
				if moved != (err == nil) {
					t.Error(moved, err)
				}
				return err
			}},
			{name: "put", writes: true, ask: func(s *memory.Store, _ int64, a store.Access) error {
				var fields []store.Field
				_, _ = s.Limits([]byte("a"), memtest.Untouched(t0), func(l *store.LimitState) {
					field, err := s.ParseField(string(l.AppendName(nil)), string(l.Limit.AppendState(nil, &l.State)))
					if err != nil {
						t.Fatal(err)
					}
					fields = append(fields, field)
				})
				_, err := s.PutFields([]byte("a2"), fields, true, a)
				return err
			}},
		} {
			s := memory.New(memory.Options{})
			id := leads(t, s, limit, "n")
			before := held(s, t0, "a", "a2", "b")
			var asked []string
			may := func(b bool) store.Right {
				return func(key []byte, reads, writes bool) bool {
					if asked = append(asked, string(key)); reads != test.reads || writes != test.writes {
						t.Errorf("%s, %s: reads %v, writes %v", limit, test.name, reads, writes)
					}
					return b
				}
			}
			err := test.ask(s, id, store.Access{NowNS: t0, May: may(false)})
			refused := (*store.NoRightError)(nil)
			if !errors.As(err, &refused) || string(refused.Key) != "b" || held(s, t0, "a", "a2", "b") != before {
				t.Errorf("%s, %s: %v, and it is\n%swas\n%s", limit, test.name, err, held(s, t0, "a", "a2", "b"), before)
			}
			if err := test.ask(s, id, store.Access{NowNS: t0, May: may(true)}); err != nil || (held(s, t0, "a", "a2",
				"b") == before) != test.changesNothing {
				t.Errorf("%s, %s: %v of who may do it", limit, test.name, err)
			}
			if strings.Trim(strings.Join(asked, ""), "b") != "" {
				t.Errorf("%s, %s: asked for %q", limit, test.name, asked)
			}
		}
	}
}

// The right is asked for where there is such a lease, whose keys would be reached, and where the state that moves has links.
func TestNoLinkNeedsNoRight(t *testing.T) {
	s := memory.New(memory.Options{})
	id := leads(t, s, "9/1h", "n")
	none := store.Access{NowNS: t0, May: func(key []byte, _, _ bool) bool { t.Errorf("asked for %s", key); return false }}
	if memtest.Did(s.Release([]byte("a"), id+1, none)) || memtest.Did(s.Release([]byte("c"), id, none)) ||
		memtest.Did(s.Rename([]byte("c"), []byte("d"), none)) {
		t.Error("something was there")
	}
	if _, moved, err := s.RenameNew([]byte("a"), []byte("b"), none); moved || err != nil {
		t.Error(moved, err)
	}
	if !memtest.Did(s.Rename([]byte("a"), []byte("a"), none)) || !memtest.Did(s.Rename([]byte("b"), []byte("b2"), none)) ||
		!memtest.Did(s.Renew([]byte("b2"),
			id, second, none)) || !memtest.Did(s.Release([]byte("b2"), id, none)) {
		t.Error("b itself has no links")
	}
	if copied, err := s.Copy([]byte("a"), []byte("d"), true, none); !copied || err != nil {
		t.Error(copied, err)
	}
	if before := held(s, t0, "d"); memtest.Did(s.Release([]byte("d"), id, memtest.At(t0))) || held(s, t0, "d") != before {
		t.Error("the copy has leases")
	}
	if s.Delete([]byte("a"), t0); held(s, t0, "a") != "a:\n" {
		t.Error("it is there")
	}
	leads(t, s, "9/1m,algo=conc", "n")
	if _, err := s.Take([]store.Call{{Key: []byte("a"), Limit: limitOf(t, "5/1h,algo=log")}}, store.TakeOptions{Cost: 1},
		memtest.At(t0)); err != nil {
		t.Fatal(err)
	}
	none.NowNS = t0 + 60*second
	if !memtest.Did(s.Rename([]byte("a"), []byte("e"), none)) || memtest.Did(s.Release([]byte("e"), id, none)) {
		t.Error("its leases have ended")
	}
}

// A key that a file's links name twice is settled once.
func TestLinksThatNameAKeyTwice(t *testing.T) {
	end := t0 + 60*second
	for _, limit := range []string{"9/1h", "9/1h,algo=log", "9/1h,algo=slide,buckets=4"} {
		s := memory.New(memory.Options{})
		name := string(limitOf(t, limit).Shape.AppendText(nil))
		taken := fmt.Sprintf("limit=%s leases=7:%d:1:t%d", limit, end, t0)
		for key, text := range map[string][2]string{
			"a": {"conc/1m", fmt.Sprintf("limit=9/1m,algo=conc leases=7:%d:1,7:%d:0:k026202630262%020d", end, end, 0)}, // to b, c and b
			"b": {name + " leases", taken},
			"c": {name + " leases", taken},
		} {
			f, err := s.ParseField(text[0], text[1])
			if err == nil {
				_, err = s.PutFields([]byte(key), []store.Field{f}, true, memtest.At(t0))
			}
			if err != nil {
				t.Fatal(key, err)
			}
		}
		memtest.MustTake(t, s, 1, t0, memtest.Calls(t, "b", limit, "c", limit))
		if !memtest.Did(s.Settle([]byte("a"), 7, 3, memtest.At(t0))) {
			t.Error("it is not settled")
		}
		for _, key := range []string{"b", "c"} {
			if n := left(t, s, key, limit, t0); n != 6 {
				t.Errorf("%s: %d are left of %s", limit, n, key)
			}
		}
		memtest.MustAudit(t, s)
	}
}

// Whoever may not do everything cannot put links that lead nowhere now, and elsewhere with others that come behind them.
func TestLinksArePutWhole(t *testing.T) {
	key := bytes.Repeat([]byte("k"), 20)
	first, second := fmt.Sprintf("%x", append([]byte{21}, key[:15]...)), fmt.Sprintf("%x%022x", key[15:], 0)
	end := t0 + 1e9
	may := store.Right(func([]byte, bool, bool) bool { return true })
	for leases, want := range map[string]bool{
		fmt.Sprintf("7:%d:1,7:%d:0:k%s,7:%d:0:k%s", end, end, first, end, second):      true,
		fmt.Sprintf("7:%d:1,7:%d:0:k%s", end, end, first):                              false,
		fmt.Sprintf("7:%d:1,7:%d:0:k%s,7:%d:0:k%s", end, end, first, end+1, second):    false,
		fmt.Sprintf("8:%d:1,7:%d:0:k%s,7:%d:0:k%s", end, end, first, end, second):      false,
		fmt.Sprintf("7:%d:1,7:%d:0:k%s", end, end, strings.Repeat("ff", 16)):           false,
		fmt.Sprintf("7:%d:1,7:%d:0:k%s", end, end, "02"+"78"+strings.Repeat("00", 14)): true,
	} {
		s := memory.New(memory.Options{})
		field, err := s.ParseField(string(limitOf(t, "9/1m,algo=conc").Shape.AppendText(nil)), "limit=9/1m,algo=conc leases="+leases)
		if err != nil {
			t.Fatal(leases, err)
		}
		if _, err := s.PutFields([]byte("a"), []store.Field{field}, true, store.Access{NowNS: t0, May: may}); (err == nil) != want {
			t.Errorf("%s: %v", leases, err)
		}
		if _, err := s.PutFields([]byte("a"), []store.Field{field}, true, memtest.At(t0)); err != nil {
			t.Errorf("%s, from a file: %v", leases, err)
		}
	}
}
