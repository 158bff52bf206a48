package persistence

import (
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"time"
)

// Options say where the files are and when they are written.
type Options struct {
	Dir            string // "" is the working directory
	DBFilename     string
	AppendOnly     bool
	AppendFilename string
	Fsync          Fsync // at the start
	LoadTruncated  bool  // an append-only file that ends in the middle of a command is cut there; otherwise it is refused

	// These may change while the server runs, and are asked for each time.
	SavePoints        func() []SavePoint
	RewritePercentage func() int64 // rewrite the append-only file when it has grown by so many percent since the last time; 0: never
	RewriteMinSize    func() int64 // and has so many bytes

	LockWait time.Duration // how long Load waits for another process to leave the directory

	Clock func() int64 // Unix nanoseconds
	Log   *slog.Logger
	Files FileSystem // nil: the system's
}

// Fsync is when the append-only file is forced to the disk.
type Fsync int

const (
	EverySecond Fsync = iota
	Always            // before the reply leaves
	Never             // when the system sees fit
)

// ParseFsync reads redis.conf's words.
func ParseFsync(text string) Fsync {
	switch text {
	case "always":
		return Always
	case "no":
		return Never
	}
	return EverySecond
}

// SavePoint asks for a snapshot once so many changes were made and the last one is so long ago.
type SavePoint struct {
	After   time.Duration
	Changes int64
}

// mostSeconds is 292 years, as long as a Duration can be.
const mostSeconds = int64(math.MaxInt64 / time.Second)

// ParseSavePoints reads redis.conf's save: "3600 1 300 100", seconds and changes in turn. Empty is none.
func ParseSavePoints(text string) ([]SavePoint, error) {
	words := strings.Fields(text)
	if len(words)%2 != 0 {
		return nil, fmt.Errorf("argument must be pairs of seconds and changes, such as '3600 1 300 100'")
	}
	var points []SavePoint
	for i := 0; i < len(words); i += 2 {
		seconds, err := strconv.ParseInt(words[i], 10, 63)
		changes, err2 := strconv.ParseInt(words[i+1], 10, 63)
		if err != nil || err2 != nil || seconds < 1 || changes < 0 {
			return nil, fmt.Errorf("argument must be pairs of seconds and changes, such as '3600 1 300 100'")
		}
		points = append(points, SavePoint{time.Duration(min(seconds, mostSeconds)) * time.Second, changes})
	}
	return points, nil
}
