package config

import (
	"fmt"
)

// Idle names settings that were given and do nothing without another one. Somebody may rely on what they seem to say: with appendfsync
// alone nothing is written. CONFIG SET may still change what they need, so they are no mistakes.
func (c *Config) Idle(given func(name string) bool) (lines []string) {
	for _, s := range c.rows {
		needs := ""
		switch {
		case !given(s.Name):
		case s.Name == "appendfsync" && !c.AppendOnly.Get():
			needs = "--appendonly yes"
		case s.needs != nil:
			needs = s.needs()
		}
		if needs != "" && needs != "--"+s.Name {
			lines = append(lines, fmt.Sprintf("--%s does nothing without %s", s.Name, needs))
		}
	}
	return lines
}
