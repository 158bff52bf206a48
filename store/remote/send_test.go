package remote

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"

	"celld/cell"
	"celld/store"
	"celld/store/policy"
)

// counting is a client that notes how many commands go together.
type counting struct {
	rueidis.Client
	mu    sync.Mutex
	sizes []int
}

func (c *counting) DoMulti(ctx context.Context, commands ...rueidis.Completed) []rueidis.RedisResult {
	c.mu.Lock()
	c.sizes = append(c.sizes, len(commands))
	c.mu.Unlock()
	return c.Client.DoMulti(ctx, commands...)
}

// What gathers goes in one pipeline, up to a bound, if its deadlines are alike.
func TestWhatGoesInOnePipeline(t *testing.T) {
	s := newTestStore(t, newAiling(t).socket, Options{})
	count := &counting{Client: *s.client.Load()}
	client := rueidis.Client(count)
	s.client.Store(&client)
	l := &s.lanes.all[0]
	for i, c := range []struct {
		n     int
		later time.Duration // the last one's deadline
		sizes []int
	}{
		{1, 0, []int{1}}, {mostPipelined, 0, []int{mostPipelined}}, {mostPipelined + 1, 0, []int{mostPipelined, 1}},
		{3, alike - 1, []int{3}}, {3, 1 - alike, []int{3}}, {3, alike, []int{2, 1}}, {3, -alike, []int{2, 1}},
	} {
		var answered sync.WaitGroup
		deadline := time.Now().Add(patient)
		l.inFlight, count.sizes = inFlight, nil
		for j := range c.n {
			answered.Add(1)
			r := &request{args: []string{"SET", "x"}, keys: []string{"k"}, deadline: deadline, done: func(rueidis.RedisMessage, error) { answered.Done() }}
			if j == c.n-1 {
				r.deadline = deadline.Add(c.later)
			}
			s.send(r)
		}
		if len(l.waiting) != c.n {
			t.Fatalf("%d: %d wait", i, len(l.waiting))
		}
		l.inFlight = 1
		l.run()
		answered.Wait()
		if !slices.Equal(count.sizes, c.sizes) || l.inFlight != 0 {
			t.Errorf("%d: %v, want %v; %d are under way", i, count.sizes, c.sizes, l.inFlight)
		}
	}
}

// A pipeline starts where fewer are under way than may be.
func TestWhenAPipelineStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(Options{Policies: &policy.Set{}})
		l := &s.lanes.all[0]
		for under, starts := range map[int]bool{0: true, 1: false} {
			l.inFlight, l.waiting = under, nil
			answered := make(chan error, 1)
			s.send(&request{args: []string{"SET", "x"}, keys: []string{"k"}, deadline: time.Now().Add(patient), done: func(_ rueidis.RedisMessage, err error) { answered <- err }})
			if !starts {
				if len(l.waiting) != 1 || l.inFlight != under {
					t.Errorf("%d under way: %d wait, and %d are under way", under, len(l.waiting), l.inFlight)
				}
			} else if err := <-answered; !isDown(err) {
				t.Errorf("without a connection: %v", err)
			}
			synctest.Wait()
		}
	})
}

// The quickest round trip of a second counts, and near is less than nearby.
func TestRoundTrips(t *testing.T) {
	now, l := time.Now(), lane{}
	took := func(after, d time.Duration) time.Duration {
		l.took(now.Add(after-d), now.Add(after))
		return l.least
	}
	for i, want := range []time.Duration{5, 3, 3, 3, 9} {
		after := []time.Duration{0, 1, 2, time.Second + 1, time.Second + 2}[i]
		if got := took(after, []time.Duration{5, 3, 4, 9, 9}[i]); got != want {
			t.Errorf("%d: %d ns", i, got)
		}
	}
	if l.soon() != 2*9+nearby/2 {
		t.Errorf("%v", l.soon())
	}
	for d, want := range map[time.Duration]int{nearby - 1: 1, nearby: inFlight} {
		if l.least = d; l.most() != want {
			t.Errorf("%v: %d", d, l.most())
		}
	}
}

// Errors are counted, and say what may have reached the engine.
func TestFailedRequests(t *testing.T) {
	for _, c := range []struct {
		err                error
		unsent, sent       bool
		failures, timeouts int64
		row                int32
	}{
		{errLate, true, false, 1, 1, 0},
		{context.DeadlineExceeded, true, false, 1, 1, 0},
		{context.DeadlineExceeded, false, true, 1, 1, 0},
		{rueidis.ErrClosing, false, true, 1, 0, 1},
		{rueidis.ErrClosing, true, false, 1, 0, 1},
		{store.ErrFull, false, true, 1, 0, 1},
		{&EngineError{"odd"}, false, false, 0, 0, 0},
	} {
		s := newStore(Options{Policies: &policy.Set{}})
		s.byHand()
		l := &s.lanes.all[0]
		err := l.failed(&request{keys: []string{"k"}}, c.err, c.unsent)
		down := (*DownError)(nil)
		if is := errors.As(err, &down); is != (c.failures > 0) || is && down.Sent != c.sent {
			t.Errorf("%v: %#v", c.err, err)
		}
		if st := s.Stats(); st.Failures.Load() != c.failures || st.Timeouts.Load() != c.timeouts || l.breaker.row.Load() != c.row || l.breaker.doubt != nil {
			t.Errorf("%v: %d failures, %d time-outs, %d in a row", c.err, st.Failures.Load(), st.Timeouts.Load(), l.breaker.row.Load())
		}
	}
}

// A new key that the engine does not decide on as one is decided by the script, or fails.
func TestAnswersToNewKeys(t *testing.T) {
	for answer, c := range map[string]struct {
		scripts int64
		unknown bool
		refused int64
		down    bool
	}{
		"-ERR syntax error\r\n":           {1, true, 0, false},
		"-WRONGTYPE Operation\r\n":        {1, false, 0, false},
		"$1\r\n7\r\n":                     {1, false, 1, false},
		"-READONLY You can't write\r\n":   {0, false, 0, true},
		"_\r\n":                           {0, false, 0, false},
		"-ERR odd\r\n":                    {0, false, 0, false},
		"-LOADING Redis is loading\r\n":   {0, false, 0, true},
		"-NOREPLICAS Not enough good\r\n": {0, false, 0, true},
	} {
		e := newAiling(t)
		e.does(map[string]string{"SET ": answer, "EVAL": "-ERR odd\r\n"})
		s := newTestStore(t, e.socket, Options{Time: func() int64 { return in2100 }})
		s.newKeys.refused.Store(100)
		r := []store.Request{{Key: []byte("k"), Bucket: bucketOf(t, 9, 10, 10), Quantity: 1}}
		s.throttleNow(r, store.Access{NowNS: in2100})
		if st := s.Stats(); st.Scripts.Load() != c.scripts || s.newKeys.unknown.Load() != c.unknown || st.SetNewRefused.Load() != c.refused || isDown(r[0].Err) != c.down ||
			(r[0].Err == nil) != (answer == "_\r\n") || st.SetNew.Load() != 1 {
			t.Errorf("%q: %d scripts, unknown %v, %v", answer, st.Scripts.Load(), s.newKeys.unknown.Load(), r[0].Err)
		}
		want := int32(100)
		switch answer {
		case "_\r\n":
			want = 99
		case "$1\r\n7\r\n":
			want = 100 + (1024-100+63)/64
		}
		if got := s.newKeys.refused.Load(); got != want {
			t.Errorf("%q: the share is %d, want %d", answer, got, want)
		}
	}
}

// Keys are tried while less than 80 % are in use, and above that one in 16.
func TestWhenTryingPays(t *testing.T) {
	var n setNewState
	for i, c := range []struct {
		was, is int32
		refused bool
	}{{0, 0, false}, {0, 16, true}, {64, 63, false}, {63, 63, false}, {1024, 1008, false}, {1024, 1024, true}, {640, 630, false}, {640, 646, true}} {
		n.refused.Store(c.was)
		if n.note(c.refused); n.refused.Load() != c.is {
			t.Errorf("%d: %d becomes %d, want %d", i, c.was, n.refused.Load(), c.is)
		}
	}
	for share, want := range map[int32]int{mostRefused - 1: 4 * tryOneIn, mostRefused: 4, 1024: 4} {
		n.refused.Store(share)
		tries := 0
		for range 4 * tryOneIn {
			if n.pays() {
				tries++
			}
		}
		if tries != want {
			t.Errorf("%d of 1024: %d tries", share, tries)
		}
	}
	n.refused.Store(0)
	if n.unknown.Store(true); n.pays() {
		t.Error("an engine is tried that does not have it")
	}
}

// What a key held is remembered up to a size, and not used for a while where it was wrong.
func TestWhatIsSeen(t *testing.T) {
	var s seen
	s.init()
	text := func(n int) content { return content{kind: kindString, text: strings.Repeat("1", n)} }
	hash := content{kind: kindHash, fields: []field{{strings.Repeat("a", 500), strings.Repeat("b", 523)}}}
	for i, c := range []struct {
		c     content
		known bool
	}{
		{text(mostSeen - 1), true}, {text(mostSeen), false}, {hash, true}, {content{kind: kindHash, fields: append(hash.fields, field{"a", ""})}, false},
		{text(1), true}, {content{kind: "list", foreign: true}, false},
	} {
		s.note("k", c.c, 7, notGuessed)
		if is, known := s.of("k"); known != c.known || known && (is.nowNS != 7 || is.kind != c.c.kind) {
			t.Errorf("%d: %v", i, known)
		}
	}
	for wrong, unused := range []int{1, 2, 4, 8, 16, 32, mostUnused, mostUnused} {
		if s.note("k", text(1), 7, guessedWrong); s.keys.Len() != 1 {
			t.Fatal("it is not there")
		}
		if last, _ := s.keys.Get("k"); last.wrong != wrong+1 || last.unused != unused {
			t.Errorf("wrong %d times: %d are to read it", last.wrong, last.unused)
		}
	}
	for left := mostUnused - 1; left >= 0; left-- {
		s.note("k", text(1), 7, notGuessed)
		if _, known := s.of("k"); known != (left == 0) {
			t.Errorf("%d are to read it, and it is used: %v", left, known)
		}
	}
	if s.note("k", text(1), 7, guessedRight); s.keys.Len() != 1 {
		t.Error("it is forgotten")
	}
	if last, known := s.of("k"); !known || last.wrong != 0 {
		t.Errorf("right again: %+v, %v", last, known)
	}
}

// A view of one key is loaded by what it held, at a time that is not before.
func TestWhenAViewGuesses(t *testing.T) {
	now := in2100
	guesses := func(s *Store, keys ...string) (*View, bool) {
		v := s.newView(s.deadline())
		v.addAll(keys)
		return v, v.guess()
	}
	s := newStore(Options{Policies: &policy.Set{}, Time: func() int64 { return now }})
	if _, ok := guesses(s, "k"); ok {
		t.Error("nothing is known")
	}
	for _, seenAt := range []int64{in2100 - 5, in2100 + 5} {
		s.seen.note("k", content{kind: kindString, text: "7"}, seenAt, notGuessed)
		if v, ok := guesses(s, "k"); !ok || v.NowNS != max(seenAt, in2100) || v.keys[0].read.text != "7" || v.guessed != guessed {
			t.Errorf("%v, %+v", ok, v)
		}
	}
	if _, ok := guesses(s, "k", "o"); ok {
		t.Error("two keys")
	}
	s.lanes.all[0].clock.fake = nil
	if _, ok := guesses(s, "k"); ok {
		t.Error("the engine's time is not known")
	}
}

func TestKnownTATs(t *testing.T) {
	var k known
	k.init(2)
	k.note("k", "", cell.Params{}, 7, time.Now(), false)
	k.note("f", "field", cell.Params{}, 7, time.Now(), false)
	if k.tat("k") != 7 || k.tat("f") != 0 || k.tat("o") != 0 {
		t.Errorf("%d, %d, %d", k.tat("k"), k.tat("f"), k.tat("o"))
	}
	for now, inUse := range map[int64]bool{6 + int64(linger): true, 7 + int64(linger): false} {
		if k.inUse("k", now) != inUse || k.inUse("o", now) {
			t.Errorf("in use at %d: %v", now, !inUse)
		}
	}
}
