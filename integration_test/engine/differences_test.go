package engine

import "strings"

// otherConversations are files of resp/testdata with settings of their own, by the reason.
var otherConversations = map[string]string{
	"auth":    "with a password",
	"debug":   "with DEBUG",
	"latency": "with DEBUG",
}

// differences are the beginnings of commands that an engine answers otherwise than the table in memory, by the reason.
var differences = map[string]string{
	"OBJECT IDLETIME": "the table's",
	"MEMORY USAGE":    "the table's",
}

func differs(command string) string {
	for beginning, why := range differences {
		if strings.HasPrefix(command, beginning) {
			return why
		}
	}
	return ""
}
