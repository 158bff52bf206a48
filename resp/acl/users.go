package acl

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// DefaultName is the user of connections that have not authenticated.
const DefaultName = "default"

// mostBytes is how much text all names and rules may have together.
const mostBytes = 16 << 20

// mostRules is how many rules a user takes at once. Of passwords, patterns and rules on commands a user has at most MostOfAKind each,
// as each new one is compared with those.
const (
	mostRules   = 10_000
	MostOfAKind = 1_000
)

const (
	// errName is the answer to a name that no line of rules can have.
	errName textError = "Usernames can't contain spaces or null characters"
	// errRules is the answer to too many rules at once.
	errRules textError = "A user takes at most 10000 rules at once"
	// errFull is the answer to a rule for which there is no room.
	errFull textError = "Users and their rules have at most 16mb together"
)

// User is a name that connections hold on to. It outlives its removal: the caller that removes it ends its connections.
type User struct {
	name   string
	rights atomic.Pointer[Rights]
	bytes  int // of its line; guarded by Users.mu
}

func (u *User) Name() string    { return u.name }
func (u *User) Rights() *Rights { return u.rights.Load() }

// Line is the user in a file: user app on #… ~app:* resetchannels -@all +get.
func (u *User) Line() string { return line(u.name, u.Rights()) }

func line(name string, r *Rights) string { return "user " + name + " " + r.String() }

// Users are all of them. Any goroutine may use them.
type Users struct {
	Default *User // is always there

	table    *Table
	mu       sync.RWMutex
	byName   map[string]*User
	bytes    int
	required *string // the password rule of a default user that no file describes; nil: nopass
}

// NewUsers returns the user default alone, who may do everything and needs no password.
func NewUsers(t *Table) *Users {
	us := &Users{table: t, byName: map[string]*User{}}
	us.Default = us.put(DefaultName, allRights(t))
	return us
}

// put makes or changes a user. The caller holds the lock.
func (us *Users) put(name string, r *Rights) *User {
	u := us.byName[name]
	if u == nil {
		u = &User{name: name}
		us.byName[name] = u
	}
	bytes := len(line(name, r))
	us.bytes += bytes - u.bytes
	u.bytes = bytes
	u.rights.Store(r.publish())
	return u
}

// Table is that of the commands.
func (us *Users) Table() *Table { return us.table }

// Get returns a user, or nil.
func (us *Users) Get(name string) *User {
	us.mu.RLock()
	defer us.mu.RUnlock()
	return us.byName[name]
}

// FirstOn returns the first of these users who is there and on, or nil.
func (us *Users) FirstOn(names []string) *User {
	for _, name := range names {
		if u := us.Get(name); u != nil && u.Rights().On() {
			return u
		}
	}
	return nil
}

// Sorted returns all users by name.
func (us *Users) Sorted() []*User {
	us.mu.RLock()
	defer us.mu.RUnlock()
	return slices.SortedFunc(maps.Values(us.byName), func(a, b *User) int { return cmp.Compare(a.name, b.name) })
}

// Lines returns the line of each user, by name.
func (us *Users) Lines() map[string]string {
	us.mu.RLock()
	defer us.mu.RUnlock()
	lines := make(map[string]string, len(us.byName))
	for name, u := range us.byName {
		lines[name] = u.Line()
	}
	return lines
}

// RuleError says which rule cannot be applied, and why.
type RuleError struct {
	Rule string
	Err  error
}

func (e *RuleError) Error() string { return e.Rule + ": " + e.Err.Error() }
func (e *RuleError) Unwrap() error { return e.Err }

// Set applies rules to a user, whom it makes if there is none. It applies all of them or none. The error is a *RuleError, errName,
// errRules or errFull.
func (us *Users) Set(name string, rules []string) error {
	if hasSpaces(name) {
		return errName
	}
	if len(rules) > mostRules {
		return errRules
	}
	us.mu.Lock()
	defer us.mu.Unlock()
	u, r := us.byName[name], noRights(us.table)
	before := 0
	if u != nil {
		r, before = u.Rights(), u.bytes
	}
	r = r.clone()
	for _, rule := range rules {
		if err := r.apply(rule); err != nil {
			return &RuleError{rule, err}
		}
	}
	if us.bytes-before+len(line(name, r)) > mostBytes {
		return errFull
	}
	us.put(name, r)
	return nil
}

// Delete removes a user, and returns it, or nil. The user default must stay.
func (us *Users) Delete(name string) *User {
	us.mu.Lock()
	defer us.mu.Unlock()
	u := us.byName[name]
	if u == nil || u == us.Default {
		return nil
	}
	us.remove(u)
	return u
}

func (us *Users) remove(u *User) {
	delete(us.byName, u.name)
	us.bytes -= u.bytes
}

// SetPassword makes this the only password of the user default, also after a Replace by a file that does not describe it. Empty: it
// needs none.
func (us *Users) SetPassword(password string) {
	us.mu.Lock()
	defer us.mu.Unlock()
	us.required = nil
	if password != "" {
		r := noRights(us.table)
		_ = r.apply(">" + password)
		rule := "#" + r.Passwords()[0]
		us.required = &rule
	}
	us.put(DefaultName, us.guarded(us.Default.Rights()))
}

// guarded returns rights with the password that is required.
func (us *Users) guarded(r *Rights) *Rights {
	r = r.clone()
	r.noPass, r.passwords = true, nil
	if us.required != nil {
		_ = r.apply(*us.required) // a digest that SetPassword has made
	}
	return r
}

// Open says that connections need not authenticate.
func (us *Users) Open() bool {
	r := us.Default.Rights()
	return r.on && r.noPass
}

// Authenticate returns the user with this name and password, or nil.
func (us *Users) Authenticate(name, password []byte) *User {
	u := us.Get(string(name))
	if u == nil {
		return nil
	}
	if r := u.Rights(); r.on && r.accepts(password) {
		return u
	}
	return nil
}

// Replace takes the users of a file in place of all. It returns those but the user default that have changed or gone, whose
// connections must end.
func (us *Users) Replace(f *File) (ended []*User) {
	us.mu.Lock()
	defer us.mu.Unlock()
	for name, u := range us.byName {
		r := f.rights[name]
		if u == us.Default || r != nil && r.String() == u.Rights().String() {
			continue
		}
		ended = append(ended, u)
		us.remove(u)
	}
	for name, r := range f.rights {
		us.put(name, r)
	}
	if f.rights[DefaultName] == nil {
		us.put(DefaultName, us.guarded(allRights(us.table)))
	}
	return ended
}
