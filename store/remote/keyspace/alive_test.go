package keyspace

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"celld/cell"
	"celld/internal/celldtest"
	"celld/store"
	"celld/store/remote/link/linktest"
	"celld/store/remote/view"
)

// A key of which nothing is left to remember is told by nobody who lists keys, though the engine still has it, and a FLUSHALL removes it.
func TestKeysThatLingerAreNotListed(t *testing.T) {
	s := newTestStore(t, linktest.StartRedis(t), Options{Prefix: "p:"})
	celldtest.Again(t, func(string) string { // a machine that stands still for as long as keys view.Linger sees none
		now := time.Now()
		over, soon := strconv.FormatInt(now.UnixNano()-1e6, 10), strconv.FormatInt(now.UnixNano()+600e9, 10)
		until := strconv.FormatInt(now.Add(view.Linger-50*time.Millisecond).UnixMilli(), 10)
		s.do(t, "SET", "p:over", over, "PXAT", until)
		limit := linktest.Literal(t, "1/1m")
		state := cell.State{A: uint64(now.UnixNano() - 1e6)}
		s.do(t, "HSET", "p:bucket", string(limit.Shape.AppendText(nil)), string(limit.AppendState(nil, &state)))
		s.do(t, "PEXPIREAT", "p:bucket", until)
		s.do(t, "SET", "p:live", soon, "PXAT", until)
		s.do(t, "SET", "p:other", "text", "PXAT", until)
		got := fmt.Sprint(keysOf(t, s, "*"))
		got += fmt.Sprint(wait(t, func(done func([]string, error)) {
			o := store.ScanOptions{Pattern: "[ob]*", Count: 100}
			s.Scan(t.Context(), o, func(_ uint64, keys []string, err error) { done(keys, err) })
		}))
		got += fmt.Sprint(wait(t, func(done func(int64, error)) { s.Size(t.Context(), done) }))
		random := map[string]bool{}
		for range 20 {
			random[wait(t, func(done func(string, error)) {
				s.RandomKey(t.Context(), func(key string, _ bool, err error) { done(key, err) })
			})] = true
		}
		if n, _ := s.do(t, "EXISTS", "p:over", "p:bucket", "p:live", "p:other").AsInt64(); n != 4 {
			return "they were gone too soon"
		}
		if got != "[live other][other]2" || random["over"] || random["bucket"] {
			return got + fmt.Sprint(random)
		}
		wait(t, func(done func(struct{}, error)) { s.Flush(func(err error) { done(struct{}{}, err) }) })
		if n, _ := s.do(t, "EXISTS", "p:over", "p:bucket", "p:live", "p:other").AsInt64(); n != 0 {
			return fmt.Sprint(n, " are left")
		}
		return ""
	})
}

// Only keys that go soon are read, and views that have read them are closed. What cannot be read stays.
func TestWhichKeysAreReadToTellThem(t *testing.T) {
	inFakeTime(t, Options{Prefix: "p:"}, func(t *testing.T, s *Store, e *celldtest.Ailing) {
		live := celldtest.BulkOf(strconv.FormatInt(time.Now().Add(time.Minute).UnixNano(), 10))
		pttl := map[string]string{"gone": celldtest.IntOf(-2), "stays": celldtest.IntOf(-1), "long": celldtest.IntOf(view.LingersMs + 1),
			"bound": celldtest.IntOf(view.LingersMs),
			"zero":  celldtest.IntOf(0), "live": celldtest.IntOf(500), "refused": "-ERR no\r\n", "unread": celldtest.IntOf(5)}
		var read []string
		left := 0
		e.AnswersBy(func(command string) string {
			words := strings.Split(command, " ")
			switch words[0] {
			case "PTTL":
				return pttl[words[1][2:]]
			case "LREM":
				left++
				return celldtest.IntOf(1)
			}
			key := words[3][2:]
			read = append(read, key)
			switch key {
			case "live":
				return linktest.ViewReply("read", 0, celldtest.ArrayOf(celldtest.BulkOf("string"),
					celldtest.IntOf(time.Now().Add(time.Minute).UnixMilli()), live))
			case "unread":
				return "-ERR no\r\n"
			}
			return linktest.ViewReply("read", 0, celldtest.ArrayOf(celldtest.BulkOf("none")))
		})
		ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(s.Timeout))
		defer cancel()
		kept := s.alive(ctx, s.Link.Client(), []string{"gone", "stays", "long", "bound", "zero", "live", "refused", "unread"})
		if got := strings.Join(kept, " "); got != "stays long live refused unread" {
			t.Errorf("kept %s", got)
		}
		synctest.Wait()
		if slices.Sort(read); strings.Join(read, " ") != "bound live unread zero" || left != 3 {
			t.Errorf("read %q, and %d views have left their lists", read, left)
		}
	})
}
