package cli

import (
	"io"
	"log/slog"

	"celld/resp"
)

// NewLog returns a log to w with the settings' format and level. CONFIG SET loglevel changes its level.
func NewLog(w io.Writer, cfg *resp.Config) *slog.Logger {
	level := new(slog.LevelVar)
	cfg.OnLogLevel(func(name string) {
		level.Set(map[string]slog.Level{"debug": slog.LevelDebug, "verbose": resp.LevelVerbose, "notice": slog.LevelInfo, "warning": slog.LevelWarn}[name])
	})
	options := &slog.HandlerOptions{Level: level}
	if cfg.LogFormat() == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}
