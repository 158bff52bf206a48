// Package config holds celld's settings: their names, the values that they may have, and the values that they have. It does not know what
// they are for.
//
//	cfg := config.New()                                       // the defaults
//	err := cfg.Setting("maxmemory").Value.Set("64mb")         // as a flag or the environment has it
//	err = cfg.Load(func(name string) bool { return false })   // the files that settings name
//	cfg.MaxKeys.Get()
//	cfg.MaxKeys.OnSet(func(n int64) { … })                    // what CONFIG SET changes
//	changed, err := cfg.Change([][]byte{name, value})         // CONFIG SET; View is CONFIG GET
//
// A setting is declared once, as a Setting: its name, kind, default, bounds, help, and whether it may change while celld runs. The flags,
// the environment, --help, CONFIG GET and SET are renderings of it, and a test holds docs/reference/settings.md to it.
//
// Any goroutine may read a setting at any time. A Change holds for all settings that it names, or for none.
package config
