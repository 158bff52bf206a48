package remote

import (
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"celld/internal/celldtest"
	"celld/store"
	"celld/store/remote/link/linktest"
	"celld/store/remote/queue"
	"celld/store/remote/view"
)

// pidOf is the process of an engine.
func (s *Store) pidOf(t *testing.T) int {
	t.Helper()
	info, _ := s.do(t, "INFO", "server").ToString()
	_, info, _ = strings.Cut(info, "process_id:")
	id, _, _ := strings.Cut(info, "\r")
	pid, err := strconv.Atoi(id)
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// A call on a new key waits for its engine as long as any other does: it is decided anew where the engine was slower than a call leaves
// a trace.
func TestANewKeyOfAnEngineThatStands(t *testing.T) {
	s := newTestStore(t, linktest.StartRedis(t), Options{Timeout: patient})
	bucket := bucketOf(t, 9, 10, 3600)
	throttle := func(key string) store.Request {
		reqs := []store.Request{{Key: []byte(key), Bucket: bucket, Quantity: 4}}
		s.throttleNow(reqs, store.Access{NowNS: time.Now().UnixNano()})
		return reqs[0]
	}
	pid := s.pidOf(t)
	attempts := 0
	celldtest.Eventually(t, "a key is tried, and decided again", func() bool { // once the engine's time is known
		for range 10 {
			throttle(strconv.FormatInt(time.Now().UnixNano(), 10))
		}
		tried, scripts := s.stats.SetNew.Load(), s.stats.Scripts.Load()
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(view.Linger, func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
		attempts++
		key := "k" + strconv.Itoa(attempts)
		if r := throttle(key); r.Err != nil || r.Decision.Limited || r.Decision.Remaining != 6 {
			t.Fatalf("%+v", r)
		}
		again := s.stats.Scripts.Load() == scripts+1
		if r := throttle(key); r.Err != nil || r.Decision.Limited || r.Decision.Remaining != 2 {
			t.Fatalf("the next: %+v", r)
		}
		return s.stats.SetNew.Load() == tried+1 && again
	})
}

// What was stored for a new key is taken back before it is decided again, and what others have taken since is not.
func TestANewKeyThatIsDecidedAgain(t *testing.T) {
	const nowNS, second = 4_102_444_800_123_456_789, 1_000_000_000
	s := newTestStore(t, linktest.StartRedis(t), Options{Time: func() int64 { return nowNS }})
	text := func(seconds int64) string { return strconv.FormatInt(nowNS+seconds*second, 10) }
	for _, c := range []struct {
		name        string
		ours, holds int64 // seconds from now; holds 0: nothing
		remaining   int64
		limited     bool
		leaves      int64
	}{
		{"as it was stored", 3, 3, 5, false, 5},
		{"it is over", -1, 0, 5, false, 5},
		{"it is gone", 3, 0, 5, false, 5},
		{"another has taken 2 behind it", 3, 5, 3, false, 7},
		{"another has taken 6 behind it", 3, 9, 4, true, 6},
		{"another has taken 1 when it was over", -1, 1, 4, false, 6},
		{"another has given back 1", 3, 2, 3, false, 7},
	} {
		s.do(t, "DEL", "k")
		if c.holds != 0 {
			s.do(t, "SET", "k", text(c.holds))
		}
		r := &store.Request{Key: []byte("k"), Bucket: bucketOf(t, 9, 10, 10), Quantity: 5}
		w := make(signal, 1)
		o := &call{Common: queue.Common{Key: "k", Deadline: time.Now().Add(patient)}, store: s, throttle: r, pending: newPending(0, w)}
		s.deciding(o).again(uint64(nowNS + c.ours*second))
		<-w
		if d := r.Decision; r.Err != nil || d.Limited != c.limited || d.Remaining != c.remaining {
			t.Errorf("%s: %+v, %v", c.name, d, r.Err)
		}
		if left, _ := s.do(t, "GET", "k").ToString(); left != text(c.leaves) {
			t.Errorf("%s: it holds %s, want %s", c.name, left, text(c.leaves))
		}
	}
}
