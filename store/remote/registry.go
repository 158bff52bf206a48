package remote

import (
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"celld/store/policy"
	"celld/store/remote/link"
)

// registry is a hash of settings on the engine. One request for it is under way at a time: so its answers arrive in their order.
type registry struct {
	store *Store
	key   string
	kind  policy.Kind

	mu      sync.Mutex
	busy    bool
	waiting []*entrant
	version string // of the engine's that this process has; "": the engine had none
	since   string // its first version
	answers bool   // it has been read
}

// entrant waits until no other request is under way.
type entrant struct {
	send  func()
	timer *time.Timer // at its deadline
}

// known reports whether the hash has been read.
func (r *registry) known() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.answers
}

// enter has send called when no other request is under way. It must have next called once. Where the deadline comes before that, late is
// called in its place.
func (r *registry) enter(deadline time.Time, send, late func()) {
	r.mu.Lock()
	if r.busy {
		e := &entrant{send: send}
		e.timer = time.AfterFunc(time.Until(deadline), func() {
			if r.leave(e) {
				late()
			}
		})
		r.waiting = append(r.waiting, e)
		r.mu.Unlock()
		return
	}
	r.busy = true
	r.mu.Unlock()
	send()
}

// leave reports whether an entrant still waited.
func (r *registry) leave(e *entrant) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := slices.Index(r.waiting, e)
	if at < 0 {
		return false
	}
	r.waiting = slices.Delete(r.waiting, at, at+1)
	return true
}

func (r *registry) next() {
	r.mu.Lock()
	if len(r.waiting) == 0 {
		r.busy = false
		r.mu.Unlock()
		return
	}
	e := r.waiting[0]
	r.waiting = r.waiting[1:]
	r.mu.Unlock()
	e.timer.Stop()
	e.send()
}

// read reads the hash if it has changed. What is known stays where that fails.
func (r *registry) read(done func()) {
	deadline := r.store.deadline()
	r.enter(deadline, func() {
		r.load(deadline, func() {
			r.next()
			done()
		})
	}, done)
}

// load is read of one that has entered.
func (r *registry) load(deadline time.Time, done func()) {
	s := r.store
	if s.link.Down() != nil {
		done()
		return
	}
	s.send(&link.Request{Script: readSettings, Keys: []string{r.key}, Args: []string{r.version, r.since}, Deadline: deadline, Done: func(answer rueidis.RedisMessage, err error) {
		if err == nil && answer.IsArray() {
			var fields map[string]string
			if fields, err = answer.AsStrMap(); err == nil {
				r.replace(fields)
			}
		}
		done()
	}})
}

// replace has this process have what the engine has. An engine that is met for the first time, or has lost all, gets what is in the
// file.
func (r *registry) replace(fields map[string]string) {
	s, t := r.store, &r.store.settings
	version, since := fields[versionField], fields[sinceField]
	delete(fields, versionField)
	delete(fields, sinceField)
	r.mu.Lock()
	first := !r.answers
	fill := r.kind == policy.PolicySetting && (first || r.since != since)
	changed := first || r.version != version || r.since != since
	r.version, r.since, r.answers = version, since, true
	r.mu.Unlock()
	if !changed {
		return
	}
	keep := maps.Clone(fields)
	if fill {
		t.mu.RLock()
		for _, p := range t.file {
			keep[p.Name] = ""
		}
		t.mu.RUnlock()
	}
	for _, name := range s.policies.Settings(r.kind) {
		if _, there := keep[name]; !there {
			t.remove(r.kind, name)
		}
	}
	for name, value := range fields {
		if err := t.put(r.kind, name, value); err != nil && s.options.Log != nil {
			s.options.Log.Warn("A setting of the engine cannot be used.", "key", r.key, "field", name, "value", value, "error", err)
		}
	}
	if fill {
		t.setFile()
	}
	s.waits.pokeAll()
}

// change makes a change on the engine and then in this process. The first argument is the field.
func (r *registry) change(sc *link.Script, args []string, done func(did bool, err error)) {
	s := r.store
	deadline := s.deadline()
	r.enter(deadline, func() {
		if err := s.link.Down(); err != nil {
			r.next()
			done(false, err)
			return
		}
		nowMs := ""
		if s.options.Time != nil {
			nowMs = strconv.FormatInt(s.options.Time()/1e6, 10)
		}
		s.send(&link.Request{Script: sc, Keys: []string{r.key}, Args: append(args, nowMs), Deadline: deadline, Done: func(answer rueidis.RedisMessage, err error) {
			var parts []rueidis.RedisMessage
			if err == nil {
				parts, err = answer.ToArray()
			}
			if err != nil {
				r.next()
				done(false, err)
				return
			}
			r.changed(args[0], parts, deadline, func(did bool, err error) {
				r.next()
				done(did, err)
			})
		}})
	}, func() { done(false, link.ErrLate) })
}

// changed applies a change's answer: see the scripts. Where others have changed something before it, all is read.
func (r *registry) changed(name string, parts []rueidis.RedisMessage, deadline time.Time, done func(did bool, err error)) {
	s := r.store
	did, _ := parts[0].AsInt64()
	was, _ := parts[1].ToString()
	version, _ := parts[2].ToString()
	var err error
	switch {
	case did < 0:
		err = policy.ErrTooMany
	case len(parts) > 3:
		value, _ := parts[3].ToString()
		err = s.settings.put(r.kind, name, value)
	case version != was:
		s.settings.remove(r.kind, name)
	}
	r.mu.Lock()
	current := was == r.version && r.answers
	if current {
		if r.version = version; was == "" {
			r.since = version
		}
	}
	r.mu.Unlock()
	if version != was {
		s.publish(allNews)
	}
	s.waits.pokeAll()
	if current {
		done(did > 0, err)
		return
	}
	r.load(deadline, func() { done(did > 0, err) }) // if it comes too late, the next poll does that
}
