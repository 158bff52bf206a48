package cli

import (
	"bufio"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"celld/resp/config"
)

// A log that nobody reads makes nobody wait. It keeps what fits, and tells how much it has dropped once it is read again.
func TestALogThatNobodyReads(t *testing.T) {
	from, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	lines := NewLines(to)
	log := NewLog(lines, config.New())
	text, n := strings.Repeat("x", 1000), 0
	for ; lines.Dropped() < 100; n++ {
		log.Info(text, "n", n)
	}
	lines.Flush(0) // nor does the end wait
	dropped := lines.Dropped()
	read := bufio.NewScanner(from)
	for i := range n - int(dropped) {
		if !read.Scan() || !strings.HasSuffix(read.Text(), fmt.Sprint(" n=", i)) {
			t.Fatalf("%d: %.100q, %v", i, read.Text(), read.Err())
		}
	}
	want := fmt.Sprint("level=WARN msg=\"lines of the log were dropped, because nobody read them\" lines=", dropped)
	if !read.Scan() || !strings.HasSuffix(read.Text(), want) {
		t.Errorf("%.200q, %v; want %s", read.Text(), read.Err(), want)
	}
	log.Info("again")
	if !read.Scan() || !strings.HasSuffix(read.Text(), "msg=again") {
		t.Errorf("%q, %v", read.Text(), read.Err())
	}
	if got := lines.Dropped(); got != dropped {
		t.Errorf("%d dropped, and %d before it was read", got, dropped)
	}
}

// writerFunc is a writer.
type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// The end waits for a reader who reads, however slowly.
func TestLastLines(t *testing.T) {
	var got strings.Builder
	reads := make(chan bool)
	lines := NewLines(writerFunc(func(p []byte) (int, error) {
		<-reads
		return got.Write(p)
	}))
	_, _ = lines.Write([]byte("first\n"))
	_, _ = lines.Write([]byte("last\n"))
	go close(reads)
	lines.Flush(time.Minute)
	if got.String() != "first\nlast\n" {
		t.Errorf("%q", got.String())
	}
}

// Lines that nobody reads any more are counted.
func TestAReaderWhoHasGone(t *testing.T) {
	lines := NewLines(writerFunc(func([]byte) (int, error) { return 0, errors.New("broken pipe") }))
	log := NewLog(lines, config.New())
	log.Info("a")
	log.Log(t.Context(), slog.LevelWarn, "b")
	lines.Flush(time.Minute)
	if n := lines.Dropped(); n != 2 {
		t.Errorf("%d lines, want 2", n)
	}
}
