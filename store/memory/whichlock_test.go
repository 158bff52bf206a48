package memory

import (
	"bytes"
	"testing"

	"celld/cell"
	"celld/store"
	"celld/store/memory/table"
	"celld/store/policy"
)

// Which calls on a key that is there take the lock.
func TestWhichCallsTakeTheLock(t *testing.T) {
	const nowNS, second = int64(1) << 60, int64(1e9)
	bucket, err := cell.NewBucket(2, 1, 60)
	if err != nil {
		t.Fatal(err)
	}
	throttle := func(quantity int64) func(*Store, []byte, int64) {
		return func(s *Store, key []byte, nowNS int64) {
			_, _ = s.Throttle(key, bucket, quantity, store.Access{NowNS: nowNS})
		}
	}
	takes := func(text string, o store.TakeOptions) func(*Store, []byte, int64) {
		limit, err := cell.ParseLimit(text)
		if err != nil {
			t.Fatal(err)
		}
		return func(s *Store, key []byte, nowNS int64) {
			_, _ = s.Take([]store.Call{{Key: key, Limit: &limit}}, o, store.Access{NowNS: nowNS})
		}
	}
	take := func(text string) func(*Store, []byte, int64) { return takes(text, store.TakeOptions{Cost: 1}) }
	policed := func(text string) func(*Store, []byte, int64) { // by a policy, which is set anew when it is another
		limit, err := cell.ParseLimit(text)
		if err != nil {
			t.Fatal(err)
		}
		return func(s *Store, key []byte, nowNS int64) {
			_, _ = s.SetPolicy("p", []cell.Limit{limit}, policy.Options{})
			_, _ = s.Take([]store.Call{{Key: key, Limit: &limit, Policy: s.PolicyNamed("p").Limits[0]}}, store.TakeOptions{Cost: 1},
				store.Access{NowNS: nowNS})
		}
	}
	expire := func(expiryNS int64) func(*Store, []byte, int64) {
		return func(s *Store, key []byte, nowNS int64) {
			_ = s.Update(key, store.Access{NowNS: nowNS}, func(old store.Value, _ bool) (store.Value, bool) {
				old.ExpiryNS = expiryNS
				return old, true
			})
		}
	}
	type call = func(*Store, []byte, int64)
	type events = []call
	nothing := call(func(*Store, []byte, int64) {})
	for _, tt := range []struct {
		name    string
		before  events
		call    call
		afterNS int64
		locks   bool
	}{
		{"passes", events{throttle(1)}, throttle(1), 0, false},
		{"denied", events{throttle(3)}, throttle(1), 0, false},
		{"peek", events{throttle(1)}, throttle(0), 0, false},
		{"refund", events{throttle(3)}, throttle(-1), 0, true},
		{"overflow", events{throttle(1)}, throttle(1 << 62), 0, true},
		{"absent", events{}, throttle(1), 0, true},
		{"the instant before its end", events{throttle(1)}, throttle(1), 60*second - 1, false},
		{"dead", events{throttle(1)}, throttle(1), 60 * second, true},
		{"expires", events{throttle(1), expire(nowNS + second)}, throttle(1), 0, true},
		{"never expires", events{throttle(1), expire(store.NoExpiry)}, throttle(1), 0, true},
		{"expires no more", events{throttle(1), expire(store.NoExpiry), throttle(1)}, throttle(1), 0, false},
		{"wrong type", events{take("5/1m")}, throttle(1), 0, true},
		{"wrong type of a take", events{throttle(1)}, take("5/1m"), 0, true},
		{"a take passes", events{take("5/1m")}, take("5/1m"), 0, false},
		{"a take is denied", events{take("1/1m")}, take("1/1m"), 0, false},
		{"a window passes", events{take("5/1m,algo=window")}, take("5/1m,algo=window"), 0, false},
		{"a window denies", events{take("1/1m,algo=window")}, take("1/1m,algo=window"), 0, false},
		{"a warmup passes", events{take("5/1ms,warmup=1s")}, take("5/1ms,warmup=1s"), 700_000, false},
		{"a warmup denies", events{take("5/1m,warmup=1s")}, take("5/1m,warmup=1s"), 0, false},
		{"another cold", events{take("5/1m,warmup=1s")}, take("5/1m,warmup=1s,cold=2"), 0, true},
		{"slide", events{take("5/1m,algo=slide")}, take("5/1m,algo=slide"), 0, false},
		{"block", events{take("1/1m,block=1h")}, take("1/1m,block=1h"), 0, false},
		{"blocked", events{take("1/1m,block=1h"), take("1/1m,block=1h")}, take("1/1m,block=1h"), 0, false},
		{"blocked by another literal", events{take("1/1m"), take("1/1m,block=1h")}, take("1/1m"), 0, true},
		{"blocked by a policy", events{policed("1/1m,block=1h"), policed("1/1m,block=1h")}, policed("1/1m,block=1h"), 0, false},
		{"blocked for longer than a policy says", events{policed("1/1m,block=1h"), policed("1/1m,block=1h")}, policed("1/1m,block=59m"), 0, true},
		{"log", events{take("5/1m,algo=log")}, take("5/1m,algo=log"), 0, true},
		{"buckets", events{take("5/1m,algo=slide,buckets=3")}, take("5/1m,algo=slide,buckets=3"), 0, true},
		{"another burst", events{take("5/1m")}, take("5/1m,burst=3"), 0, true},
		{"another shape", events{take("5/1m")}, take("5/1h"), 0, true},
		{"two limits", events{take("5/1m"), take("5/1h")}, take("5/1h"), 0, true},
		{"a peek of a take", events{take("5/1m")}, takes("5/1m", store.TakeOptions{}), 0, true},
		{"force", events{take("5/1m")}, takes("5/1m", store.TakeOptions{Cost: 1, Mode: cell.Force}), 0, true},
		{"up to", events{take("5/1m")}, takes("5/1m", store.TakeOptions{Cost: 1, UpTo: true}), 0, true},
		{"a take of what is dead", events{take("1/1m")}, take("1/1m"), 60 * second, true},
		{"nothing", events{throttle(1)}, nothing, 0, false},
	} {
		for _, length := range []int{0, 1, 8, 15, 16, 17, 40, 41, table.HugeKey - 1, table.HugeKey} {
			s, key := New(Options{Shards: 1}), bytes.Repeat([]byte("k"), length)
			for _, event := range tt.before {
				event(s, key, nowNS)
			}
			before := s.All[0].Version.Load()
			tt.call(s, key, nowNS+tt.afterNS)
			locks := s.All[0].Version.Load() != before
			if want := tt.locks || length == table.HugeKey && tt.name != "nothing"; locks != want {
				t.Errorf("%s, %d bytes: locks: %v", tt.name, length, locks)
			}
			if held := s.All[0].InUse; held > 1 {
				t.Errorf("%s, %d bytes: the key is there %d times", tt.name, length, held)
			}
		}
	}
}
