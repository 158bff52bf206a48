package cli

import (
	"io"
	"log/slog"

	"celld/resp/config"
	"celld/resp/loglimit"
)

// NewLog returns a log to lines with the settings' format and level. CONFIG SET loglevel changes its level.
func NewLog(lines *Lines, cfg *config.Config) *slog.Logger {
	level := new(slog.LevelVar)
	cfg.LogLevel.Follow(func(name string) {
		level.Set(map[string]slog.Level{"debug": slog.LevelDebug, "verbose": loglimit.Verbose, "notice": slog.LevelInfo,
			"warning": slog.LevelWarn}[name])
	})
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: nameLevel}
	to := func(w io.Writer) *slog.Logger {
		if cfg.LogFormat.Get() == "json" {
			return slog.New(slog.NewJSONHandler(w, options))
		}
		return slog.New(slog.NewTextHandler(w, options))
	}
	lines.mu.Lock()
	lines.log = to(lines.to)
	lines.mu.Unlock()
	return to(lines)
}

// nameLevel gives Redis's level between debug and notice its name, where slog would write DEBUG+2.
func nameLevel(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.LevelKey && a.Value.Any() == loglimit.Verbose {
		a.Value = slog.StringValue("VERBOSE")
	}
	return a
}
