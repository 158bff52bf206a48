package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"celld/persistence"
)

// The replies of CONFIG SET are Redis's.
const (
	errUnknown   = "ERR Unknown option or number of arguments for CONFIG SET - '%s'"
	errFailed    = "ERR CONFIG SET failed (possibly related to argument '%s') - %s"
	errImmutable = "can't set immutable config"
	errTwice     = "duplicate parameter"
	errRestart   = "this needs a restart with --%s %s"
	errRewrite   = "ERR The server is running without a config file"
	errSaving    = "Invalid save parameters"
)

// databases is a parameter of Redis that tools ask for. celld has no setting for it: there is one database.
const databases = "databases"

// names are those of all parameters.
func (c *Config) names() []string {
	names := []string{databases}
	for _, row := range c.rows {
		names = append(names, row.Name)
	}
	return names
}

// View calls f with each parameter and its value, in the order of --help. Any goroutine may call it.
func (c *Config) View(secrets bool, f func(name, value string)) {
	c.view.RLock()
	defer c.view.RUnlock()
	for _, row := range c.rows {
		value := row.Value.String()
		if row.Secret && !secrets {
			value = Hidden(value)
		}
		f(row.Name, value)
	}
	f(databases, "1")
}

// Change sets parameters, each a name and a value: all of them, or none where the error is the reply. It reads and checks all before it
// changes any. Any goroutine may call it.
func (c *Config) Change(words [][]byte) error {
	c.changing.Lock()
	defer c.changing.Unlock()
	rows, err := c.changeable(words)
	if err != nil {
		return err
	}
	changes := make([]change, len(rows))
	for i, row := range rows {
		if changes[i], err = row.Value.parse(string(words[2*i+1])); err != nil {
			return fmt.Errorf(errFailed, row.Name, cmp.Or(row.refusal, err.Error()))
		}
	}
	for i, row := range rows {
		switch err := changes[i].check(); {
		case errors.Is(err, persistence.ErrNeedsRestart):
			return fmt.Errorf(errFailed, row.Name, fmt.Sprintf(errRestart, row.Name, words[2*i+1]))
		case err != nil:
			return fmt.Errorf(errFailed, row.Name, err)
		}
	}
	c.view.Lock() // released before the consequences, which may take long
	for i := range changes {
		changes[i].put()
	}
	c.view.Unlock()
	for i := range changes {
		changes[i].apply()
	}
	return nil
}

// changeable returns the settings that words name.
func (c *Config) changeable(words [][]byte) (rows []*Setting, err error) {
	for i := 0; i < len(words); i += 2 {
		name := strings.ToLower(string(words[i]))
		switch row := c.Setting(name); {
		case row == nil && name != databases:
			return nil, fmt.Errorf(errUnknown, words[i])
		case row == nil || !row.Mutable:
			return nil, fmt.Errorf(errFailed, words[i], errImmutable)
		case slices.Contains(rows, row):
			return nil, fmt.Errorf(errFailed, words[i], errTwice)
		default:
			rows = append(rows, row)
		}
	}
	return rows, nil
}
