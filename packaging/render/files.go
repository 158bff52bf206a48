package main

import _ "embed"

var (
	//go:embed celld.1.tmpl
	manual string
	//go:embed celld-commands.7.tmpl
	manualOfCommands string
	//go:embed env.tmpl
	env string
	//go:embed bash.tmpl
	bash string
	//go:embed zsh.tmpl
	zshell string
	//go:embed fish.tmpl
	fish string
)

// files are the templates by the names of what they make.
var files = map[string]string{
	"man/celld.1": manual, "man/celld-commands.7": manualOfCommands, "env": env,
	"completions/celld.bash": bash, "completions/_celld": zshell, "completions/celld.fish": fish,
}
