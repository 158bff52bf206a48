package web

import (
	"fmt"
	"net/http"
	"net/url"
	"runtime"
	"runtime/pprof"
	"runtime/trace"
	"strconv"
	"strings"
	"time"

	"celld/resp/web/answers"
)

// pprofRoot is where Go's profiles are, with --http-pprof.
const pprofRoot = "/debug/pprof/"

// longestProfile leaves a second of requestTime to send it.
const longestProfile = int(requestTime/time.Second) - 1

// profile answers for one of Go's profiles, one request at a time: they stop the process for moments, and are seldom wanted. The command
// line, which may have a password, is not served, and neither is what older clients asked to name addresses.
//
// It uses no net/http/pprof: the parser there, which serves differences of profiles, makes a fresh process 0.6 MB larger.
func (s *site) profile(w http.ResponseWriter, r *http.Request, name string) {
	found := pprof.Lookup(name)
	switch {
	case name == "":
		plain(w, http.StatusOK, profileNames())
		return
	case found == nil && name != "profile" && name != "trace":
		notFound(w, r)
		return
	}
	if r.ParseForm() != nil || !fits(r.Form, name) {
		answers.Fail(w, http.StatusBadRequest, fmt.Sprintf("seconds must be from 1 to %d", longestProfile))
		return
	}
	if !s.profiling.CompareAndSwap(false, true) {
		answers.Fail(w, http.StatusServiceUnavailable, "another profile is being taken")
		return
	}
	defer s.profiling.Store(false)
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Type", "application/octet-stream")
	var err error
	debug, _ := strconv.Atoi(r.Form.Get("debug"))
	seconds, _ := strconv.Atoi(r.Form.Get("seconds"))
	switch {
	case name == "profile":
		if err = pprof.StartCPUProfile(w); err == nil {
			await(r, seconds)
			pprof.StopCPUProfile()
		}
	case name == "trace":
		if err = trace.Start(w); err == nil {
			await(r, seconds)
			trace.Stop()
		}
	default:
		if debug > 0 {
			h.Set("Content-Type", "text/plain; charset=utf-8")
		}
		err = found.WriteTo(w, debug)
	}
	if err != nil {
		answers.Fail(w, http.StatusInternalServerError, err.Error())
	}
}

// await returns after so many seconds, or when the client has gone.
func await(r *http.Request, seconds int) {
	select {
	case <-time.After(time.Duration(seconds) * time.Second):
	case <-r.Context().Done():
	}
}

// fits reports whether there is time for a profile. One of the CPU takes 5 seconds, and a trace 1, if the request does not say how long.
func fits(form url.Values, name string) bool {
	if usual := map[string]string{"profile": "5", "trace": "1"}[name]; usual != "" && !form.Has("seconds") {
		form.Set("seconds", usual)
	}
	seconds, err := strconv.Atoi(form.Get("seconds"))
	return !form.Has("seconds") || err == nil && seconds >= 1 && seconds <= longestProfile
}

// profileNames lists the profiles, one a line.
func profileNames() string {
	var b strings.Builder
	fmt.Fprintf(&b, "profiles of %s, below this address:\nprofile?seconds=5\ntrace?seconds=1", runtime.Version())
	for _, p := range pprof.Profiles() {
		b.WriteString("\n" + p.Name())
	}
	return b.String()
}
