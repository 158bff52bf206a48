package view

import (
	"strings"
	"testing"
	"testing/synctest"

	"celld/internal/celldtest"
	"celld/store"
	"celld/store/remote/link"
	"celld/store/remote/link/linktest"
	"celld/store/remote/queue"
)

// Changes of one key that come together are decided together, and each that its keys do not allow is told so alone.
func TestChangesThatGoTogether(t *testing.T) {
	inFakeTime(t, Options{}, func(t *testing.T, s *Store, e *celldtest.Ailing) {
		e.AnswersBy(func(command string) string {
			if strings.Contains(command, commitScript.Digest) {
				return linktest.ViewReply("stored", -1)
			}
			return linktest.ViewReply("read", -1, nothing, celldtest.ArrayOf(celldtest.BulkOf("list"), celldtest.IntOf(-1)))
		})
		var told []error
		decided := 0
		hold := func(again ...*Change) {
			first := &holder{Common: queue.Common{Key: "k", Deadline: s.deadline()}}
			s.queues.Enqueue(first)
			for _, c := range again {
				s.queues.Enqueue(c)
			}
			first.batch.Next()
			synctest.Wait()
		}
		change := func(keys ...string) *Change {
			return s.NewChange(keys, s.deadline(), func(v *View) {
				decided++
				if _, err := v.Throttle([]byte("k"), linktest.Literal(t, "9/10s").Bucket(), 1, store.Access{NowNS: v.NowNS}); err != nil {
					t.Error(err)
				}
			}, func(err error) { told = append(told, err) })
		}
		hold(change("k"), change("k", "list"), change("k"))
		if len(told) != 3 || told[0] != nil || told[1] != store.ErrWrongType || told[2] != nil || decided != 2 ||
			s.counts.Changes.Load() != 1 {
			t.Errorf("%v, %d were decided by %d changes", told, decided, s.counts.Changes.Load())
		}
		// In a Cluster, those whose keys are apart are refused before anything is asked.
		linktest.InCluster(s.Link)
		asked := e.Count()
		told, decided = nil, 0
		hold(change("k", "list"))
		if len(told) != 1 || told[0] != link.ErrCrossSlot || decided != 0 || e.Count() != asked {
			t.Errorf("%v, %d were decided, asked %d", told, decided, e.Count()-asked)
		}
	})
}

// holder holds up what is asked of its key, until its batch goes on.
type holder struct {
	queue.Common
	batch *queue.Group
}

func (h *holder) GoesWith(first queue.Operation) bool { return first == h }
func (h *holder) Send(b *queue.Group)                 { h.batch = b }
func (h *holder) Answer(error)                        {}
