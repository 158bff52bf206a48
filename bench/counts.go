//go:build linux

package main

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

// counts are what a server says that it has done. They tell whether a run did what it was meant to.
type counts struct {
	commands int64 // the peer's command, or PING
	failed   int64 // those that were answered with an error
	hits     int64 // calls that found their key; throttlecrab does not say
}

func (c counts) since(before counts) counts {
	return counts{c.commands - before.commands, c.failed - before.failed, c.hits - before.hits}
}

func countByInfo(s *server, command string) (counts, error) {
	info, err := ask(s.addr, "INFO", "commandstats")
	if err != nil {
		return counts{}, err
	}
	c, err := parseCommandStats(info, command)
	if err != nil {
		return counts{}, err
	}
	if info, err = ask(s.addr, "INFO", "stats"); err != nil {
		return counts{}, err
	}
	hits, err := parseCount(info, "keyspace_hits")
	c.hits = int64(hits)
	return c, err
}

// parseCommandStats reads a command's line of INFO commandstats. A command that never ran has none.
func parseCommandStats(info, command string) (counts, error) {
	name := "cmdstat_" + strings.ToLower(command) + ":"
	for line := range strings.Lines(info) {
		fields, ok := strings.CutPrefix(strings.TrimSpace(line), name)
		if !ok {
			continue
		}
		var c counts
		for field := range strings.SplitSeq(fields, ",") {
			key, value, _ := strings.Cut(field, "=")
			n, err := strconv.ParseInt(value, 10, 64)
			switch {
			case key == "calls" && err == nil:
				c.commands = n
			case (key == "rejected_calls" || key == "failed_calls") && err == nil:
				c.failed += n
			case strings.HasSuffix(key, "calls"):
				return counts{}, fmt.Errorf("INFO commandstats: %q", line)
			}
		}
		return c, nil
	}
	return counts{}, nil
}

func countByMetrics(s *server, _ string) (counts, error) {
	text, err := getText("http://" + s.otherAddr() + "/metrics")
	if err != nil {
		return counts{}, err
	}
	return parseMetrics(text)
}

func getText(url string) (string, error) {
	reply, err := http.Get(url)
	if err != nil {
		return "", err
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err == nil && reply.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", url, reply.Status)
	}
	return string(text), err
}

var (
	metricsRequests = regexp.MustCompile(`(?m)^throttlecrab_requests_by_transport\{transport="redis"\} (\d+)$`)
	metricsErrors   = regexp.MustCompile(`(?m)^throttlecrab_requests_errors (\d+)$`)
)

// parseMetrics reads throttlecrab's counters. Its requests are all commands, not THROTTLE alone.
func parseMetrics(text string) (counts, error) {
	requests, failed := metricsRequests.FindStringSubmatch(text), metricsErrors.FindStringSubmatch(text)
	if requests == nil || failed == nil {
		return counts{}, fmt.Errorf("no counters in throttlecrab's metrics")
	}
	var c counts
	var err error
	if c.commands, err = strconv.ParseInt(requests[1], 10, 64); err != nil {
		return counts{}, err
	}
	c.failed, err = strconv.ParseInt(failed[1], 10, 64)
	return c, err
}

// keys is how many keys a server holds, or -1 where it cannot be asked.
func (s *server) keys() (int, error) {
	if s.peer.name == "throttlecrab" {
		return -1, nil
	}
	reply, err := ask(s.addr, "DBSIZE")
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(reply)
}

// expired is how many keys a server has dropped because their time was over, or -1 where it cannot be asked. (DBSIZE would
// not do: celld first drops some of those that are due, which the probe would see.)
func (s *server) expired() (int, error) {
	if s.peer.name == "throttlecrab" {
		return -1, nil
	}
	info, err := ask(s.addr, "INFO", "stats")
	if err != nil {
		return 0, err
	}
	return parseCount(info, "expired_keys")
}

func parseCount(info, name string) (int, error) {
	value, err := infoField(info, name)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(value)
}

// infoField is the value of a line of INFO.
func infoField(info, name string) (string, error) {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), name+":"); ok {
			return value, nil
		}
	}
	return "", fmt.Errorf("no %s in INFO", name)
}
