package remote

import (
	"strings"
	"testing"
	"testing/synctest"

	"celld/integration_test/harness"
	"celld/store"
	"celld/store/policy"
)

// A Take whose keys have rules asks nothing of the engine. Without a rule for one of them, it asks about that key only; what is given back
// is about all keys.
func TestTheKeysOfAChange(t *testing.T) {
	inFakeTime(t, Options{Prefix: "p:"}, func(t *testing.T, s *Store, e *harness.Ailing) {
		for _, rule := range []policy.Rule{{Pattern: "good"}, {Pattern: "fine"}, {Deny: true, Pattern: "bad"}} {
			if _, err := s.policies.PutRule(rule, atNS); err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range []struct {
			keys    string
			cost    int64
			asked   string // keys that are read
			limited bool
		}{
			{"good", 1, "", false},
			{"good fine", 1, "", false},
			{"good bad", 1, "", true},
			{"good", 0, "", false},
			{"other", 1, "p:other", false},
			{"good other", 1, "p:other", false},
			{"other another", 1, "p:other p:another", false},
			{"good", -1, "p:good", false},
			{"good other", -1, "p:good p:other", false},
		} {
			var read []string
			e.AnswersBy(func(command string) string {
				words := strings.Split(command, " ")
				if words[1] == commitScript.Digest {
					return viewReply("stored", -1)
				}
				var contents []string
				read = nil
				for _, word := range words[3:] {
					if strings.HasPrefix(word, "p:") && !strings.HasSuffix(word, turnsSuffix) {
						read, contents = append(read, word), append(contents, nothing)
					}
				}
				return viewReply("read", -1, contents...)
			})
			for i := range s.queues.shards {
				s.queues.shards[i].versions.keys.Purge()
			}
			var calls []store.Call
			for key := range strings.FieldsSeq(c.keys) {
				calls = append(calls, takeCall(t, key, "10/1m,algo=log"))
			}
			r := s.plainly(t, c.cost, calls...).reqs[0]
			if got := strings.Join(read, " "); r.Err != nil || got != c.asked || r.Taken.Limited != c.limited {
				t.Errorf("%+v: read %q, %+v, %v", c, got, r.Taken, r.Err)
			}
			synctest.Wait()
			first, _, several := strings.Cut(c.asked, " ")
			if seen := s.queues.shardOf(first).versions.stored(first) != nil; seen != (first != "" && !several) {
				t.Errorf("%+v: what the key holds is seen: %v", c, seen)
			}
			if s.queues.bytes.Load() != 0 {
				t.Errorf("%+v: %d bytes wait", c, s.queues.bytes.Load())
			}
		}
	})
}

// Changes of one key that come together are decided together, and each that its keys do not allow is told so alone.
func TestChangesThatGoTogether(t *testing.T) {
	inFakeTime(t, Options{}, func(t *testing.T, s *Store, e *harness.Ailing) {
		e.AnswersBy(func(command string) string {
			if strings.Contains(command, commitScript.Digest) {
				return viewReply("stored", -1)
			}
			return viewReply("read", -1, nothing, array(bulk("list"), number(-1)))
		})
		var told []error
		decided := 0
		op := func(keys ...string) *operation {
			return &operation{key: keys[0], deadline: s.deadline(), change: &change{
				keys: keys,
				decide: func(v *View) {
					decided++
					if _, err := v.Throttle([]byte("k"), bucketOf(t, 9, 10, 10), 1, store.Access{NowNS: v.NowNS}); err != nil {
						t.Error(err)
					}
				},
				done: func(err error) { told = append(told, err) },
			}}
		}
		s.changes(&queue{key: "k"}, []*operation{op("k"), op("k", "list"), op("k")})
		synctest.Wait()
		if len(told) != 3 || told[0] != nil || told[1] != store.ErrWrongType || told[2] != nil || decided != 2 || s.stats.Changes.Load() != 1 {
			t.Errorf("%v, %d were decided by %d changes", told, decided, s.stats.Changes.Load())
		}
		// In a Cluster, those whose keys are apart are refused before anything is asked.
		s.isCluster()
		asked := e.Count()
		told, decided = nil, 0
		s.changes(&queue{key: "k"}, []*operation{op("k", "list")})
		synctest.Wait()
		if len(told) != 1 || told[0] != ErrCrossSlot || decided != 0 || e.Count() != asked {
			t.Errorf("%v, %d were decided, asked %d", told, decided, e.Count()-asked)
		}
	})
}
