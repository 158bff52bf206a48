package persistence

import (
	"errors"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"time"

	"celld/persistence/dir"
)

// Options say where the files are and when they are written.
type Options struct {
	Dir            string // "": the working directory
	DBFilename     string
	AppendOnly     bool
	AppendFilename string
	Fsync          Fsync // at the start
	LoadTruncated  bool  // true: Load cuts off an append-only file that ends in the middle of a command; false: it refuses the file

	// These may change while the server runs, so the Disk calls them each time. None may be nil.
	SavePoints        func() []SavePoint
	RewritePercentage func() int64 // the growth in percent since the last rewrite that calls for another; 0: never
	RewriteMinSize    func() int64 // bytes; a smaller file is not rewritten

	LockWait time.Duration // how long Load waits for another process to leave the directory; 0: not at all

	Clock func() int64 // Unix nanoseconds
	Log   *slog.Logger
	Files dir.FileSystem // nil: the operating system's
	Exit  func(code int) // ends the process after a fault; nil: os.Exit
}

// Fsync says when the append-only file is forced to the disk. The zero value is EverySecond.
type Fsync int

const (
	EverySecond Fsync = iota
	Always            // before the reply is sent
	Never             // when the operating system decides to
)

// ParseFsync reads redis.conf's words "always", "everysec" and "no". Any other text is EverySecond.
func ParseFsync(text string) Fsync {
	switch text {
	case "always":
		return Always
	case "no":
		return Never
	}
	return EverySecond
}

// SavePoint asks for a snapshot once at least Changes were made and the last snapshot is at least After old.
type SavePoint struct {
	After   time.Duration
	Changes int64
}

// mostSeconds is the longest Duration, 292 years.
const mostSeconds = int64(math.MaxInt64 / time.Second)

// ParseSavePoints reads redis.conf's save: "3600 1 300 100", seconds and changes in turn. An empty text has no
// save points. The error says what the text should look like.
func ParseSavePoints(text string) ([]SavePoint, error) {
	wrong := errors.New("argument must be pairs of seconds and changes in quotes, such as '3600 1 300 100'")
	words := strings.Fields(text)
	if len(words)%2 != 0 {
		return nil, wrong
	}
	var points []SavePoint
	for i := 0; i < len(words); i += 2 {
		seconds, err := strconv.ParseInt(words[i], 10, 63)
		changes, err2 := strconv.ParseInt(words[i+1], 10, 63)
		if err != nil || err2 != nil || seconds < 1 || changes < 0 {
			return nil, wrong
		}
		points = append(points, SavePoint{time.Duration(min(seconds, mostSeconds)) * time.Second, changes})
	}
	return points, nil
}
