package acl

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"celld/persistence/regular"
)

// File is the users of a file that can be used as it is.
type File struct {
	rights map[string]*Rights
}

// Mistakes are what is wrong in the lines of a file, a sentence each. Any other error of ReadFile says why there are no lines.
type Mistakes []string

func (m Mistakes) Error() string { return strings.Join(m, " ") }

func (m *Mistakes) add(format string, args ...any) { *m = append(*m, fmt.Sprintf(format, args...)) }

// errorsAt is how much text of errors is enough.
const errorsAt = 4 << 10

// ReadFile reads a file of users: lines such as user app on >secret ~app:* +cl.throttle, and empty ones. The error is one line that says
// what is wrong where, in Redis's words.
func ReadFile(t *Table, path string) (*File, error) {
	text, err := readBounded(path)
	if err != nil {
		why := err.Error()
		if of := (*fs.PathError)(nil); errors.As(err, &of) {
			why = of.Err.Error()
			why = strings.ToUpper(why[:1]) + why[1:]
		}
		return nil, fmt.Errorf("Error loading ACLs, opening file '%s': %s", path, why)
	}
	return parse(t, path, text)
}

func readBounded(path string) (string, error) {
	file, err := regular.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, mostBytes+1))
	if err == nil && len(text) > mostBytes {
		err = errFull
	}
	return string(text), err
}

func parse(t *Table, path, text string) (*File, error) {
	f := &File{rights: map[string]*Rights{}}
	var wrong Mistakes
	for i, text := range strings.Split(text, "\n") {
		if text = strings.Trim(text, " \t\r"); text != "" {
			f.parseLine(t, &wrong, fmt.Sprintf("%s:%d", path, i+1), i+1, text)
		}
		if len(wrong.Error()) > errorsAt {
			break
		}
	}
	bytes := 0
	for name, r := range f.rights {
		bytes += len(line(name, r))
	}
	if len(wrong) == 0 && bytes > mostBytes {
		wrong.add("%s: %v", path, errFull)
	}
	if len(wrong) > 0 {
		return nil, wrong
	}
	return f, nil
}

// parseLine reads a user, or says what is wrong: each unknown command, and the first other error, as Redis does.
func (f *File) parseLine(t *Table, wrong *Mistakes, at string, number int, text string) {
	words := strings.Split(text, " ")
	if words[0] != "user" || len(words) < 2 {
		wrong.add("%s should start with user keyword followed by the username.", at)
		return
	}
	name := words[1]
	switch {
	case hasSpaces(name):
		wrong.add("'%s: username '%s' contains invalid characters.", at, name)
		return
	case f.rights[name] != nil:
		wrong.add("WARNING: Duplicate user '%s' found on line %d.", name, number)
		return
	}
	if len(words) > mostRules {
		wrong.add("%s: %v.", at, errRules)
		return
	}
	r, syntax := noRights(t), false
	for _, rule := range words[2:] {
		rule = strings.Trim(rule, "\t\r\n")
		switch err := r.apply(rule); {
		case err == errUnknown:
			wrong.add("%s: Error in applying operation '%s': %s.", at, rule, err)
		case err != nil && !syntax: // without the rule, which may be a password
			wrong.add("%s: %s.", at, err)
			syntax = true
		}
	}
	f.rights[name] = r
}

// Save writes the users to a file, in place of what it has: all of it or nothing. Only the owner may read a file that was not there.
func (us *Users) Save(path string) error {
	mode := fs.FileMode(0o600)
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	var text strings.Builder
	for _, u := range us.Sorted() {
		text.WriteString(u.Line() + "\n")
	}
	return regular.Replace(path, []byte(text.String()), mode)
}
