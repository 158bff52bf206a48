package web

import (
	"fmt"
	"net/http"
	"net/http/pprof"
	"net/url"
	"runtime"
	profiles "runtime/pprof"
	"strconv"
	"strings"
	"time"
)

// pprofRoot is where Go's profiles are, with --http-pprof.
const pprofRoot = "/debug/pprof/"

// longestProfile leaves a second of requestTime to send it.
const longestProfile = int(requestTime/time.Second) - 1

// profile answers for one of Go's profiles, one request at a time: they stop the process for moments, and are seldom wanted. The command
// line, which may have a password, is not served, and neither is what older clients asked to name addresses.
func (s *site) profile(w http.ResponseWriter, r *http.Request, name string) {
	var answer http.Handler
	switch {
	case name == "":
		plain(w, http.StatusOK, profileNames())
		return
	case name == "profile":
		answer = http.HandlerFunc(pprof.Profile)
	case name == "trace":
		answer = http.HandlerFunc(pprof.Trace)
	case profiles.Lookup(name) != nil:
		answer = pprof.Handler(name)
	default:
		notFound(w, r)
		return
	}
	if r.ParseForm() != nil || !fits(r.Form, name) {
		fail(w, http.StatusBadRequest, fmt.Sprintf("seconds must be from 1 to %d", longestProfile))
		return
	}
	if !s.profiling.CompareAndSwap(false, true) {
		fail(w, http.StatusServiceUnavailable, "another profile is being taken")
		return
	}
	defer s.profiling.Store(false)
	answer.ServeHTTP(w, r)
}

// fits reports whether there is time for a profile. One of the CPU takes 5 seconds if the request does not say how long.
func fits(form url.Values, name string) bool {
	if name == "profile" && !form.Has("seconds") {
		form.Set("seconds", "5") // net/http/pprof would take 30
	}
	seconds, err := strconv.Atoi(form.Get("seconds"))
	return !form.Has("seconds") || err == nil && seconds >= 1 && seconds <= longestProfile
}

// profileNames lists the profiles, one a line.
func profileNames() string {
	var b strings.Builder
	fmt.Fprintf(&b, "profiles of %s, below this address:\nprofile?seconds=5\ntrace?seconds=1", runtime.Version())
	for _, p := range profiles.Profiles() {
		b.WriteString("\n" + p.Name())
	}
	return b.String()
}
