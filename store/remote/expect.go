package remote

import (
	"strconv"

	"github.com/redis/rueidis"

	"celld/store/remote/link"
)

// expectText stores a TAT where the key holds the one that it was computed from, and answers 1. Else it decides as the script does, whose
// arguments follow. What it saves stands at versions.
var expectText = `
if redis.call('GET', KEYS[1]) == ARGV[1] then
	redis.call('SET', KEYS[1], ARGV[2], 'PXAT', ARGV[3])
	return 1
end
for _ = 1, 3 do table.remove(ARGV, 1) end
` + throttleText

var expectScript = link.NewScript(expectText)

// expect has operations of a key decided here, with the TAT that the key had after the last request, and reports whether it does. The
// engine stores the outcome if it still has that TAT. It does not where the outcome depends on when exactly the engine decides.
func (s *Store) expect(q *queue, ops []*operation) bool {
	clock := s.link.Clock(q.key)
	from, ok := clock.Lower()
	now, fresh := clock.Upper()
	if !ok || !fresh {
		return false
	}
	sh := s.queues.shardOf(q.key)
	sh.mu.Lock()
	tat := sh.versions.tat(q.key)
	sh.mu.Unlock()
	if tat <= uint64(now) {
		return false
	}
	early, next := tat, tat
	for _, o := range ops {
		early = o.decideAt(early, from)
		limited := o.limited()
		if next = o.decideAt(next, now); next != early || limited != o.limited() {
			return false
		}
	}
	if next == tat || next == 0 {
		return false
	}
	args := []string{strconv.FormatUint(tat, 10), strconv.FormatUint(next, 10), expiryMs(next, now), s.timeArg()}
	s.stats.Scripts.Add(1)
	r := &link.Request{Script: expectScript, Keys: []string{q.key}, Args: appendRuns(args, ops), Deadline: ops[0].deadline}
	r.Done = func(answer rueidis.RedisMessage, err error) {
		switch {
		case err != nil:
		case answer.IsInt64():
			s.stats.Expected.Add(1)
			s.decided(q, ops, tat, now, r.Sent)
			return
		default:
			s.stats.ExpectedMissed.Add(1)
		}
		s.bucketsDecided(q, ops, r, answer, err)
	}
	s.send(r)
	return true
}
