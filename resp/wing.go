package resp

import (
	"celld/resp/config"
	"celld/resp/scripts"
)

// Wing is a part of celld that the rest does without. main.go lists them. A nil function does nothing.
type Wing struct {
	config.Part
	Open  func(o *Options) error              // completes what the server is made of
	Serve func(srv *Server, o *Options) error // begins, as the server listens; Server.OnStop ends it
	Tell  func(srv *Server, state State, addrs []string)
}

// Scripting lets clients run scripts, by an engine that open makes.
func Scripting(open func() scripts.Engine) Wing {
	return Wing{
		Part: config.Part{Rows: config.Scripts},
		Open: func(o *Options) error {
			o.Scripts = open
			return nil
		},
	}
}

// State is what a Wing is told: the server begins to load its files, to serve, or to reload, has reloaded, or begins to stop.
type State int

const (
	Loading State = iota
	Ready
	Reloading
	Reloaded
	Stopping
)

// Settings are the defaults of a celld with these wings.
func Settings(wings ...Wing) *config.Config {
	parts := make([]config.Part, len(wings))
	for i, w := range wings {
		parts[i] = w.Part
	}
	return config.New(parts...)
}
