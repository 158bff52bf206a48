package settings

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"celld/store/policy"
	"celld/store/remote/link"
)

// hash is a hash of settings on the engine. Its requests go one after the other: so their answers arrive in order.
type hash struct {
	settings *Settings
	key      string
	kind     policy.Kind

	mu      sync.Mutex
	busy    bool
	waiting []func()
	version string // of the hash that this process has read; "": the engine had none
	since   string // its first version
	answers bool   // it has been read
	file    []ofFile
	unset   []ofFile // those to be set on the engine, also those that it has refused, or not answered: the next poll sets them again
}

// ofFile is a policy or a rule of this process's file.
type ofFile struct {
	name string
	set  func(done func(did bool, err error)) // on the engine
}

// loaded reports whether the hash has been read.
func (h *hash) loaded() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.answers
}

// enqueue calls do, from another goroutine, after what was enqueued before.
func (h *hash) enqueue(do func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waiting = append(h.waiting, do)
	if !h.busy {
		h.busy = true
		go h.run()
	}
}

func (h *hash) run() {
	for {
		h.mu.Lock()
		if len(h.waiting) == 0 {
			h.busy = false
			h.mu.Unlock()
			return
		}
		do := h.waiting[0]
		h.waiting = h.waiting[1:]
		h.mu.Unlock()
		do()
	}
}

func (h *hash) deadline() time.Time { return time.Now().Add(h.settings.Timeout) }

// read reads the hash if it has changed, and then closes done. What is known stays where that fails.
func (h *hash) read() (done <-chan struct{}) {
	ended, deadline := make(chan struct{}), h.deadline()
	h.enqueue(func() {
		defer close(ended)
		h.load(deadline)
	})
	return ended
}

// load is read, when it comes first.
func (h *hash) load(deadline time.Time) {
	k := h.settings.Link
	if k.Down() != nil {
		return
	}
	answer, err := k.Await(&link.Request{Script: readSettings, Keys: []string{h.key},
		Args: []string{h.version, h.since, h.settings.nowMs()}, Deadline: deadline})
	if err != nil || !answer.IsArray() {
		return
	}
	if fields, err := answer.AsStrMap(); err == nil {
		h.replace(fields)
	}
}

// keep gives the engine the file, once it has been read; only what only says, if it is not nil, and what the engine has not got yet.
func (h *hash) keep(file []ofFile, only func(name string) bool) {
	h.mu.Lock()
	if h.file = file; h.answers {
		late := map[string]bool{}
		for _, one := range h.unset {
			late[one.name] = true
		}
		h.unset = slices.DeleteFunc(slices.Clone(file), func(one ofFile) bool { return only != nil && !only(one.name) && !late[one.name] })
	}
	h.mu.Unlock()
	h.setUnset()
}

// setUnset sets on the engine what it lacks of the file.
func (h *hash) setUnset() {
	h.mu.Lock()
	list := h.unset
	h.unset = nil
	h.mu.Unlock()
	for _, one := range list {
		one.set(func(_ bool, err error) {
			switch {
			case errors.Is(err, policy.ErrTooMany):
				h.settings.Log.Error("A setting of the file is not on the engine.", "key", h.key, "field", one.name, "error", err)
			case err != nil:
				h.mu.Lock()
				h.unset = append(h.unset, one)
				h.mu.Unlock()
			}
		})
	}
}

// replace sets this process's settings to the engine's. An engine that is read for the first time, or has lost all, gets those of the
// file.
func (h *hash) replace(fields map[string]string) {
	t := h.settings
	version, since, temporary := fields[versionField], fields[sinceField], temporaryOf(fields)
	delete(fields, versionField)
	delete(fields, sinceField)
	h.mu.Lock()
	first := !h.answers
	fill := first || h.since != since
	changed := first || h.version != version || h.since != since
	h.version, h.since, h.answers = version, since, true
	file := h.file
	if fill {
		h.unset = file
	}
	h.mu.Unlock()
	if !changed {
		return
	}
	keep := maps.Clone(fields)
	if fill {
		for _, one := range file {
			keep[one.name] = ""
		}
	}
	end := t.begin()
	for _, name := range t.Policies.Settings(h.kind) {
		if _, there := keep[name]; !there {
			t.remove(h.kind, name)
		}
	}
	for name, value := range fields {
		if err := t.put(h.kind, name, value, temporary[name]); err != nil {
			t.Log.Warn("A setting of the engine cannot be used.", "key", h.key, "field", name, "value", cmp.Or(value, temporary[name]),
				"error", err)
		}
	}
	end()
	if fill {
		h.setUnset()
	}
	t.Changed(false)
}

// temporaryOf takes the temporary policies out of the fields, and the engine's time. It returns those that are not over by their names,
// which are then among the fields.
func temporaryOf(fields map[string]string) map[string]string {
	list := map[string]string{}
	now, _ := strconv.ParseInt(fields[timeField], 10, 64)
	delete(fields, timeField)
	for field, value := range fields {
		if name, is := strings.CutPrefix(field, temporaryFields); is {
			delete(fields, field)
			until, _, _ := strings.Cut(value, " ")
			if ms, err := strconv.ParseInt(until, 10, 64); err != nil || ms > now {
				list[name] = value
			}
		}
	}
	for name := range list {
		fields[name] += ""
	}
	return list
}

// change makes a change on the engine and then in this process. The first argument is the field.
func (h *hash) change(sc *link.Script, args []string, done func(did bool, err error)) {
	deadline := h.deadline()
	h.enqueue(func() { done(h.changeNow(sc, args, deadline)) })
}

func (h *hash) changeNow(sc *link.Script, args []string, deadline time.Time) (did bool, err error) {
	t := h.settings
	if err := t.Link.Down(); err != nil {
		return false, err
	}
	answer, err := t.Link.Await(&link.Request{Script: sc, Keys: []string{h.key}, Args: append(args, t.nowMs()), Deadline: deadline})
	if err != nil {
		return false, err
	}
	parts, err := answer.ToArray()
	if err != nil || len(parts) < 3 {
		return false, cmp.Or(err, link.ErrAnswer)
	}
	return h.changed(args[0], parts, deadline)
}

// changed applies the answer of a change: see the scripts. If others have changed something before, it reads all.
func (h *hash) changed(name string, parts []rueidis.RedisMessage, deadline time.Time) (bool, error) {
	t := h.settings
	did, _ := parts[0].AsInt64()
	was, _ := parts[1].ToString()
	version, _ := parts[2].ToString()
	var err error
	end := t.begin()
	switch {
	case did < 0:
		err = policy.ErrTooMany
	case len(parts) > 3:
		value, _ := parts[3].ToString()
		temporary := ""
		if len(parts) > 4 {
			temporary, _ = parts[4].ToString()
		}
		err = t.put(h.kind, name, value, temporary)
	case version != was:
		t.remove(h.kind, name)
	}
	end()
	h.mu.Lock()
	current := was == h.version && h.answers
	if current {
		if h.version = version; was == "" {
			h.since = version
		}
	}
	h.mu.Unlock()
	t.Changed(version != was)
	if !current {
		h.load(deadline) // if it comes too late, the next poll does that
	}
	return did > 0, err
}
