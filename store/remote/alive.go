package remote

import (
	"context"
	"sync"

	"github.com/redis/rueidis"
)

// alive returns the keys of a master that EXISTS would find. Others linger: what they held is over. Those that stay for longer than keys
// linger are not read. To ask for how long 1,000 keys stay takes the engine 0.3 ms, as SCAN of them does.
func (s *Store) alive(ctx context.Context, node rueidis.Client, keys []string) []string {
	commands := make(rueidis.Commands, len(keys))
	for i, key := range keys {
		commands[i] = node.B().Pttl().Key(s.options.Prefix + key).Build()
	}
	over := make([]bool, len(keys))
	var asked sync.WaitGroup
	answers, _ := inTime(&s.keyspace, ctx, func() ([]rueidis.RedisResult, error) { return node.DoMulti(ctx, commands...), nil })
	deadline, _ := ctx.Deadline()
	for i, answer := range answers {
		ms, err := answer.AsInt64()
		if over[i] = ms == gone; err != nil || ms < 0 || ms > persisted+nearMs {
			continue
		}
		v := s.newView(deadline)
		v.add(s.options.Prefix + keys[i])
		asked.Add(1)
		v.open(func() {
			if v.Err == nil {
				v.Table()
				over[i] = !v.keys[0].shown
			}
			v.Close()
			asked.Done()
		})
	}
	asked.Wait()
	left := keys[:0]
	for i, key := range keys {
		if !over[i] {
			left = append(left, key)
		}
	}
	return left
}

// gone is what PTTL answers where there is no such key.
const gone = -2
