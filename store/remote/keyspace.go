package remote

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"github.com/redis/rueidis"

	"celld/store/remote/link"
)

// ErrNoPrefix reports a Flush without Options.Prefix: the engine may hold others' keys.
var ErrNoPrefix = errors.New("there is no prefix")

// Keys that are celld's own, after Options.Prefix. What is asked about all keys leaves them out.
const policiesKey, rulesKey = "celld:policies", "celld:rules" // and idsKey

// ScanOptions are those of SCAN.
type ScanOptions struct {
	Cursor  uint64 // 0: from the start
	Pattern string // of keys without the prefix
	Count   int64  // about how many keys are looked at
	Type    string // "": any
}

// Scan tells some keys of the prefix, and the cursor of the next, which is 0 after the last. As with SCAN, a key may be told twice. done
// is called once, from any goroutine, as that of the methods below: with an error when ctx has ended.
func (s *Store) Scan(ctx context.Context, o ScanOptions, done func(next uint64, keys []string, err error)) {
	var found []string
	s.walk(&walk{ScanOptions: o, ctx: ctx, once: true,
		page: func(_ context.Context, keys []string) (bool, error) { found = keys; return true, nil },
		done: func(next uint64, err error) { done(next, found, err) },
	})
}

// Keys tells all keys of a pattern, each once. It stops when they take more than mostBytes, with 16 bytes for each beside its own.
func (s *Store) Keys(ctx context.Context, pattern string, mostBytes int, done func(keys []string, err error)) {
	var found []string
	bytes, seen := 0, map[string]struct{}{}
	s.walk(&walk{ScanOptions: ScanOptions{Pattern: pattern, Count: walkStep}, ctx: ctx,
		page: func(_ context.Context, keys []string) (bool, error) {
			for _, key := range keys {
				if _, again := seen[key]; !again {
					seen[key] = struct{}{}
					found = append(found, key)
					bytes += len(key) + 16
				}
			}
			return bytes <= mostBytes, nil
		},
		done: func(_ uint64, err error) { done(found, err) },
	})
}

// Size tells how many keys there are. With a prefix all keys of the engine are looked at.
func (s *Store) Size(ctx context.Context, done func(n int64, err error)) {
	n := int64(0)
	if s.options.Prefix != "" {
		s.walk(&walk{ScanOptions: ScanOptions{Pattern: "*", Count: walkStep}, ctx: ctx,
			page: func(_ context.Context, keys []string) (bool, error) { n += int64(len(keys)); return true, nil },
			done: func(_ uint64, err error) { done(n, err) },
		})
		return
	}
	s.aside(ctx, func(ctx context.Context) (more bool) {
		nodes, err := s.masters(ctx)
		for _, node := range nodes {
			var size int64
			if size, err = inTime(&s.keyspace, ctx, func() (int64, error) { return node.Do(ctx, node.B().Dbsize().Build()).AsInt64() }); err != nil {
				err = unread(err)
				break
			}
			n += size
		}
		done(n, err)
		return false
	}, func(err error) { done(0, err) })
}

// randomTries is how often the engine is asked for any key at all, in the hope that it is one of the prefix.
const randomTries = 8

// RandomKey tells a key. Where few keys of the engine have the prefix, it is one of the first that are found, and not every key is as likely.
func (s *Store) RandomKey(ctx context.Context, done func(key string, found bool, err error)) {
	tries := 0
	s.aside(ctx, func(soon context.Context) (more bool) {
		nodes, err := s.masters(soon)
		if err != nil {
			done("", false, err)
			return false
		}
		node := nodes[rand.IntN(len(nodes))]
		name, err := inTime(&s.keyspace, soon, func() (string, error) { return node.Do(soon, node.B().Randomkey().Build()).ToString() })
		if err != nil && !rueidis.IsRedisNil(err) {
			done("", false, unread(err))
			return false
		}
		if key, shown := s.shown(name); err == nil && shown && len(s.alive(soon, node, []string{key})) > 0 {
			done(key, true, nil)
			return false
		}
		if tries++; tries < randomTries {
			return true
		}
		var key string
		found := false
		s.walk(&walk{ScanOptions: ScanOptions{Pattern: "*", Count: walkStep}, ctx: ctx,
			page: func(_ context.Context, keys []string) (bool, error) {
				if found = len(keys) > 0; found {
					key = keys[rand.IntN(len(keys))]
				}
				return !found, nil
			},
			done: func(_ uint64, err error) { done(key, found, err) },
		})
		return false
	}, func(err error) { done("", false, err) })
}

// Flush removes all keys of the prefix, step by step: those that are added meanwhile may stay. The error is ErrNoPrefix where there is
// none.
func (s *Store) Flush(done func(err error)) {
	if s.options.Prefix == "" {
		done(ErrNoPrefix)
		return
	}
	s.walk(&walk{ScanOptions: ScanOptions{Pattern: "*", Count: walkStep}, ctx: context.Background(), over: true,
		page: func(ctx context.Context, keys []string) (bool, error) { return true, s.unlink(ctx, keys) },
		done: func(_ uint64, err error) {
			s.waits.pokeAll()
			s.publish(allNews)
			done(err)
		},
	})
}

// unlink deletes keys, each by a command of its own, as they have many slots.
func (s *Store) unlink(ctx context.Context, keys []string) error {
	client := s.link.Client()
	commands := make(rueidis.Commands, len(keys))
	names := make([]string, len(keys))
	for i, key := range keys {
		names[i] = s.options.Prefix + key
		commands[i] = client.B().Unlink().Key(names[i]).Build()
	}
	defer s.versionsOf(names, (*versions).forget)
	answers, err := inTime(&s.keyspace, ctx, func() ([]rueidis.RedisResult, error) { return client.DoMulti(ctx, commands...), nil })
	if err != nil {
		return link.Classify(err)
	}
	for _, answer := range answers {
		if err := answer.Error(); err != nil {
			return link.Classify(err)
		}
	}
	return nil
}

// shown returns the name of a key without the prefix, and whether it is one that is told.
func (s *Store) shown(name string) (key string, shown bool) {
	key, shown = strings.CutPrefix(name, s.options.Prefix)
	own := key == policiesKey || key == rulesKey || key == idsKey || strings.HasPrefix(key, idsKey+":{") || strings.HasSuffix(key, turnsSuffix)
	return key, shown && !own
}

// walkStep is how many keys the engine looks at in one step of a walk over all: this takes it 0.3 ms.
const walkStep = 1000

// walk goes over the keys of all masters, one after the other.
type walk struct {
	ScanOptions
	ctx  context.Context
	once bool // one step only
	over bool // keys that linger, too: see alive
	page func(ctx context.Context, keys []string) (more bool, err error)
	done func(next uint64, err error)
}

// A cursor has the place of a master among all in its upper bits, and the cursor of that master below. An engine's cursor is lower than
// the size of its table, and in a Cluster than 2^14 times that of a slot's.
const (
	cursorBits = 54
	cursorMask = 1<<cursorBits - 1
)

var errCursor = errors.New("invalid cursor")

func (s *Store) walk(w *walk) {
	s.aside(w.ctx, func(ctx context.Context) (more bool) {
		next, more, err := s.step(ctx, w)
		if more && !w.once {
			w.Cursor = next
			return true
		}
		w.done(next, err)
		return false
	}, func(err error) { w.done(0, err) })
}

// step asks one master once.
func (s *Store) step(ctx context.Context, w *walk) (next uint64, more bool, err error) {
	nodes, err := s.masters(ctx)
	if err != nil {
		return 0, false, err
	}
	place := int(w.Cursor >> cursorBits)
	if place >= len(nodes) {
		return 0, false, nil
	}
	node := nodes[place]
	scan := node.B().Scan().Cursor(w.Cursor & cursorMask).Match(escapePattern(s.options.Prefix) + w.Pattern).Count(w.Count)
	build := scan.Build
	if w.Type != "" {
		build = scan.Type(w.Type).Build
	}
	entry, err := inTime(&s.keyspace, ctx, func() (rueidis.ScanEntry, error) { return node.Do(ctx, build()).AsScanEntry() })
	if err != nil {
		err = unread(err)
	}
	if errors.Is(err, link.ErrUnknownType) { // of Valkey; Redis finds none
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	keys := entry.Elements[:0]
	for _, name := range entry.Elements {
		if key, shown := s.shown(name); shown {
			keys = append(keys, key)
		}
	}
	if !w.over {
		keys = s.alive(ctx, node, keys)
	}
	more, err = w.page(ctx, keys)
	switch {
	case err != nil:
		return 0, false, err
	case entry.Cursor > cursorMask:
		return 0, false, errCursor
	case entry.Cursor > 0:
		return uint64(place)<<cursorBits | entry.Cursor, more, nil
	case place+1 < len(nodes):
		return uint64(place+1) << cursorBits, more, nil
	}
	return 0, false, nil
}

// unread is the error of a request that changes nothing.
func unread(err error) error {
	err = link.Classify(err)
	if down, ok := err.(*DownError); ok {
		return &DownError{Cause: down.Cause}
	}
	return err
}

// escapePattern returns a pattern that matches just a text.
func escapePattern(text string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `^`, `\^`).Replace(text)
}

// masters are the engine's masters, always in the same order. While the engine is known to be away they are an error, at once.
func (s *Store) masters(ctx context.Context) ([]rueidis.Client, error) {
	client := s.link.Client()
	if client == nil {
		return nil, link.ErrNoConnection
	}
	if err := s.link.Down(); err != nil {
		return nil, err
	}
	if !s.link.Cluster() {
		return []rueidis.Client{client}, nil
	}
	return s.keyspace.masters(ctx, client.Nodes())
}

// masters are those of a Cluster's nodes that say that they are. A replica that does not answer is left out, but without a master it is an
// error.
func (k *keyspace) masters(ctx context.Context, nodes map[string]rueidis.Client) (masters []rueidis.Client, err error) {
	addresses := make([]string, 0, len(nodes))
	for address := range nodes {
		addresses = append(addresses, address)
	}
	slices.Sort(addresses)
	roles := make([]string, len(addresses))
	errs := make([]error, len(addresses))
	var asked sync.WaitGroup
	for i, address := range addresses {
		asked.Go(func() {
			var answer []rueidis.RedisMessage
			node := nodes[address]
			answer, errs[i] = inTime(k, ctx, func() ([]rueidis.RedisMessage, error) { return node.Do(ctx, node.B().Role().Build()).ToArray() })
			if errs[i] == nil {
				roles[i], errs[i] = answer[0].ToString()
			}
		})
	}
	asked.Wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	known := make(map[string]bool, len(nodes))
	for i, address := range addresses {
		replica := roles[i] != "master"
		if errs[i] != nil {
			if replica = k.replicas[address]; !replica {
				return nil, unread(errs[i])
			}
		}
		known[address] = replica
		if !replica {
			masters = append(masters, nodes[address])
		}
	}
	k.replicas = known
	return masters, nil
}

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
