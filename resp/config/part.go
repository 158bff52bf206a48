package config

// Part is what a part of celld that may be left out adds to the settings. A nil function does nothing.
type Part struct {
	Rows func(c *Config) []Setting

	// Environ reads other variables than celld's, and warns of what celld does not do.
	Environ func(e Environment) (warnings []string)

	// Foreign reports that a program of this name is called as another program is, so arguments that celld does not know are left out.
	Foreign func(program string) bool

	// Load reads the files that the settings name, and checks what depends on several settings.
	Load func(c *Config, given func(setting string) bool) error

	// Check is for --check: what is wrong beside that, by the user's mistake or by a fault of the machine.
	Check func(c *Config) (warnings []string, mistakes, faults error)

	Needs func() string // the flag without which now all others do nothing; "": they do something
	Door  func() Door
}

// Environment is what a Part may do that reads the environment.
type Environment struct {
	Program string                            // as it was called
	Given   func(setting string) bool         // by a flag, or a variable before
	Set     func(setting, from, value string) // from names the variables. What was given stays
	Fail    func(error)
}

// Door is where a part has connections of its own.
type Door struct {
	Name           string // its settings are --NAME-…
	Addresses      int    // at which it serves
	MaxConnections *Param[int64]
	TLS            bool
}

// Doors are those of all parts.
func (c *Config) Doors() (doors []Door) {
	for _, p := range c.parts {
		if p.Door != nil {
			doors = append(doors, p.Door())
		}
	}
	return doors
}
