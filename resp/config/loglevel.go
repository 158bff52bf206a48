package config

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"celld/persistence/regular"
)

// ReloadLogLevel reads --loglevel-file again, and returns the level. Any goroutine may call it.
func (c *Config) ReloadLogLevel() (level string, err error) {
	word, err := readLogLevel(c.LogLevelFile.Get())
	if err != nil {
		return "", err
	}
	c.changing.Lock()
	defer c.changing.Unlock()
	err = c.LogLevel.Set(word)
	return c.LogLevel.Get(), err
}

// ReloadPassword reads --requirepass-file again. Any goroutine may call it.
func (c *Config) ReloadPassword() error {
	c.changing.Lock()
	defer c.changing.Unlock()
	return c.LoadPassword(func(string) bool { return false })
}

// readLogLevel reads the word in a file. LogLevel.Set checks it.
func readLogLevel(path string) (string, error) {
	f, err := regular.Open(path)
	if err != nil {
		return "", fmt.Errorf("read the loglevel: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 1<<10))
	if err != nil {
		return "", fmt.Errorf("read the loglevel: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// loadLogLevel reads --loglevel-file at the start.
func (c *Config) loadLogLevel(changed func(name string) bool) error {
	path := c.LogLevelFile.Get()
	if path == "" {
		return nil
	}
	if changed("loglevel") {
		return errors.New("loglevel and loglevel-file are both set; give one")
	}
	word, err := readLogLevel(path)
	if err != nil {
		return err
	}
	if err := c.LogLevel.Set(word); err != nil {
		return fmt.Errorf("read the loglevel: %s: %w", path, err)
	}
	return nil
}
