package keyspace

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"celld/store"
	"celld/store/remote/link"
	"celld/store/remote/view"
)

// Options say which keys there are. All except Prefix must be set. Keys are without the prefix, names with it.
type Options struct {
	Link    *link.Link
	Prefix  string
	Timeout time.Duration
	Own     func(key string) bool                                        // keys that callers do not see
	Shows   func(name string, deadline time.Time, done func(shows bool)) // whether a key that may linger is there for callers
	Flushed func(names []string)                                         // keys that are gone
}

// Keyspace is all keys of the prefix. Its methods call done once, from any goroutine: with an error when ctx has ended.
type Keyspace struct {
	Options
	admission chan struct{}
	asked     atomic.Int64 // questions that are not answered
	asking    atomic.Int64 // requests whose goroutines the client holds

	mu       sync.Mutex
	replicas map[string]bool // by address, as far as they have said
}

// New returns a Keyspace.
func New(o Options) *Keyspace { return &Keyspace{Options: o, admission: make(chan struct{}, atOnce)} }

// scan is a walk, or a step of one.
type scan struct {
	store.ScanOptions
	over bool // keys that linger, too: see alive
}

// Scan tells some keys, and the cursor of the next, which is 0 after the last. As with SCAN, a key may be told twice.
func (k *Keyspace) Scan(ctx context.Context, o store.ScanOptions, done func(next uint64, keys []string, err error)) {
	var next uint64
	offload(k, func() (keys []string, err error) {
		err = k.admitted(ctx, func(ctx context.Context) (err error) {
			keys, next, err = k.look(ctx, scan{ScanOptions: o})
			return err
		})
		return keys, err
	}, func(keys []string, err error) { done(next, keys, err) })
}

// Keys tells all keys of a pattern, each once. It stops when they take more than mostBytes, with 16 bytes for each beside its own.
func (k *Keyspace) Keys(ctx context.Context, pattern string, mostBytes int, done func(keys []string, err error)) {
	offload(k, func() (found []string, err error) {
		bytes, seen := 0, map[string]struct{}{}
		err = k.walk(ctx, scan{ScanOptions: store.ScanOptions{Pattern: pattern}}, func(_ context.Context, keys []string) (bool, error) {
			for _, key := range keys {
				if _, again := seen[key]; !again {
					seen[key] = struct{}{}
					found = append(found, key)
					bytes += len(key) + 16
				}
			}
			return bytes <= mostBytes, nil
		})
		return found, err
	}, done)
}

// Size tells how many keys there are. With a prefix all keys of the engine are looked at.
func (k *Keyspace) Size(ctx context.Context, done func(n int64, err error)) {
	offload(k, func() (n int64, err error) {
		if k.Prefix != "" {
			err = k.walk(ctx, scan{ScanOptions: store.ScanOptions{Pattern: "*"}}, func(_ context.Context, keys []string) (bool, error) {
				n += int64(len(keys))
				return true, nil
			})
			return n, err
		}
		err = k.admitted(ctx, func(ctx context.Context) error {
			nodes, err := k.masters(ctx)
			for _, node := range nodes {
				size, err := inTime(k, ctx, func() (int64, error) { return node.Do(ctx, node.B().Dbsize().Build()).AsInt64() })
				if err != nil {
					return unread(err)
				}
				n += size
			}
			return err
		})
		return n, err
	}, done)
}

// randomTries is how often the engine is asked for any key, in the hope that the key has the prefix.
const randomTries = 8

// RandomKey tells a key. If few keys of the engine have the prefix, it is one of the first that a walk finds, and not every key is as
// likely.
func (k *Keyspace) RandomKey(ctx context.Context, done func(key string, found bool, err error)) {
	offload(k, func() (keys []string, err error) {
		for range randomTries {
			err := k.admitted(ctx, func(ctx context.Context) (err error) {
				keys, err = k.anyOf(ctx)
				return err
			})
			if err != nil || len(keys) > 0 {
				return keys, err
			}
		}
		err = k.walk(ctx, scan{ScanOptions: store.ScanOptions{Pattern: "*"}}, func(_ context.Context, some []string) (bool, error) {
			keys = some
			return len(some) == 0, nil
		})
		return keys, err
	}, func(keys []string, err error) {
		if err != nil || len(keys) == 0 {
			done("", false, err)
			return
		}
		done(keys[rand.IntN(len(keys))], true, nil)
	})
}

// anyOf asks a master for any key, and returns it if callers may see it.
func (k *Keyspace) anyOf(ctx context.Context) ([]string, error) {
	nodes, err := k.masters(ctx)
	if err != nil {
		return nil, err
	}
	node := nodes[rand.IntN(len(nodes))]
	name, err := inTime(k, ctx, func() (string, error) { return node.Do(ctx, node.B().Randomkey().Build()).ToString() })
	if rueidis.IsRedisNil(err) {
		return nil, nil
	}
	if err != nil {
		return nil, unread(err)
	}
	if key, shown := k.shown(name); shown {
		return k.alive(ctx, node, []string{key}), nil
	}
	return nil, nil
}

// Flush removes all keys, step by step. Keys that are added meanwhile may stay. The error is store.ErrNoPrefix if there is no prefix.
func (k *Keyspace) Flush(done func(err error)) {
	if k.Prefix == "" {
		done(store.ErrNoPrefix)
		return
	}
	offload(k, func() (struct{}, error) {
		return struct{}{}, k.walk(context.Background(), scan{store.ScanOptions{Pattern: "*"}, true},
			func(ctx context.Context, keys []string) (bool, error) {
				return true, k.unlink(ctx, keys)
			})
	}, func(_ struct{}, err error) { done(err) })
}

// unlink deletes keys, each by a command of its own, as they have many slots.
func (k *Keyspace) unlink(ctx context.Context, keys []string) error {
	client := k.Link.Client()
	commands := make(rueidis.Commands, len(keys))
	names := make([]string, len(keys))
	for i, key := range keys {
		names[i] = k.Prefix + key
		commands[i] = client.B().Unlink().Key(names[i]).Build()
	}
	defer k.Flushed(names)
	answers, err := inTime(k, ctx, func() ([]rueidis.RedisResult, error) { return client.DoMulti(ctx, commands...), nil })
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

// shown returns the name of a key without the prefix, and whether callers may see it.
func (k *Keyspace) shown(name string) (key string, shown bool) {
	key, shown = strings.CutPrefix(name, k.Prefix)
	return key, shown && !k.Own(key)
}

// walkStep is how many keys the engine looks at in one step of a walk over all: this takes it 0.3 ms.
const walkStep = 1000

// walk goes over the keys of all masters, one after the other, as long as page wants more.
func (k *Keyspace) walk(ctx context.Context, o scan, page func(ctx context.Context, keys []string) (more bool, err error)) error {
	o.Count = walkStep
	for {
		more := false
		err := k.admitted(ctx, func(ctx context.Context) error {
			keys, next, err := k.look(ctx, o)
			if err == nil {
				o.Cursor = next
				more, err = page(ctx, keys)
			}
			return err
		})
		if err != nil || !more || o.Cursor == 0 {
			return err
		}
	}
}

// A cursor has the place of a master among all in its upper bits, and the cursor of that master below. An engine's cursor is lower than
// the size of its table, and in a Cluster than 2^14 times that of a slot's.
const (
	cursorBits = 54
	cursorMask = 1<<cursorBits - 1
)

var errCursor = errors.New("invalid cursor")

// look asks one master once.
func (k *Keyspace) look(ctx context.Context, o scan) (keys []string, next uint64, err error) {
	nodes, err := k.masters(ctx)
	place := int(o.Cursor >> cursorBits)
	if err != nil || place >= len(nodes) {
		return nil, 0, err
	}
	node := nodes[place]
	scan := node.B().Scan().Cursor(o.Cursor & cursorMask).Match(escapePattern(k.Prefix) + o.Pattern).Count(o.Count)
	build := scan.Build
	if o.Type != "" {
		build = scan.Type(o.Type).Build
	}
	entry, err := inTime(k, ctx, func() (rueidis.ScanEntry, error) { return node.Do(ctx, build()).AsScanEntry() })
	if err != nil {
		if err = unread(err); errors.Is(err, link.ErrUnknownType) { // of Valkey; Redis finds none
			err = nil
		}
		return nil, 0, err
	}
	if entry.Cursor > cursorMask {
		return nil, 0, errCursor
	}
	keys = entry.Elements[:0]
	for _, name := range entry.Elements {
		if key, shown := k.shown(name); shown {
			keys = append(keys, key)
		}
	}
	if !o.over {
		keys = k.alive(ctx, node, keys)
	}
	switch {
	case entry.Cursor > 0:
		next = uint64(place)<<cursorBits | entry.Cursor
	case place+1 < len(nodes):
		next = uint64(place+1) << cursorBits
	}
	return keys, next, nil
}

// noKey is what PTTL answers if there is no such key.
const noKey = -2

// alive returns the keys of a master that EXISTS would find. The others linger: what they held is over. It does not read keys that stay
// longer than any key lingers. Asking for the time to live of 1,000 keys takes the engine 0.3 ms, as their SCAN does.
func (k *Keyspace) alive(ctx context.Context, node rueidis.Client, keys []string) []string {
	commands := make(rueidis.Commands, len(keys))
	for i, key := range keys {
		commands[i] = node.B().Pttl().Key(k.Prefix + key).Build()
	}
	over := make([]bool, len(keys))
	var asked sync.WaitGroup
	answers, _ := inTime(k, ctx, func() ([]rueidis.RedisResult, error) { return node.DoMulti(ctx, commands...), nil })
	deadline, _ := ctx.Deadline()
	for i, answer := range answers {
		ms, err := answer.AsInt64()
		if over[i] = ms == noKey; err != nil || ms < 0 || ms > view.LingersMs {
			continue
		}
		asked.Add(1)
		k.Shows(k.Prefix+keys[i], deadline, func(shows bool) {
			over[i] = !shows
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

// unread is the error of a request that changes nothing.
func unread(err error) error { return link.Unsent(link.Classify(err)) }

// escapePattern returns a pattern that matches just a text.
func escapePattern(text string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `^`, `\^`).Replace(text)
}
