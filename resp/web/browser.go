package web

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"celld/resp/web/answers"
)

// A page of any web site can make its browser ask 127.0.0.1, by an image or a form, and can point its own site's name
// there (DNS rebinding). It must not read our answers, take from limits, or keep us busy. A browser's requests
// differ from others:
//
//   - To another site it sends Sec-Fetch-Site or Origin, and no header of the page's choice, unless OPTIONS permits that. It never does.
//   - To the page's own name it sends whatever the page wants, except Host and Via, and always Accept.
//
// Proxies pass on Host, Origin and Sec-Fetch-Site of their clients. They send headers that such a page cannot send.

// anotherName and anotherSite say why a request is refused.
const (
	anotherName = "without --http-token-file, celld answers only requests to localhost or to an address"
	anotherSite = "the request comes from the page of another site"
)

// byPerson serves a page that people and tools read. A link that leads here is followed.
func (s *site) byPerson(answer http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch {
		case s.token == nil && !isAddress(r.Host):
			s.refuse(w, r, anotherName)
		case fromAnotherSite(r) && !s.bearer(r) && r.Header.Get("Sec-Fetch-Dest") != "document":
			s.refuse(w, r, anotherSite)
		default:
			answer(w, r)
		}
	}
}

// byPage says why a check is refused that may be a page's and not a proxy's. Empty: it is not refused.
func (s *site) byPage(r *http.Request, sources []source) (why string) {
	shown := forwarded(r, sources)
	switch {
	case r.Header["Via"] != nil || s.bearer(r):
	case s.token == nil && !isAddress(r.Host) && strings.Contains(r.Host, ".") && (!shown || r.Header["Accept"] != nil):
		return anotherName + ", and those of proxies that send Via"
	case fromAnotherSite(r) && !shown:
		return anotherSite + "; a proxy shows by Via, X-Forwarded-For or X-Real-IP that it asks"
	}
	return ""
}

// byCaller serves a program, and no browser that the page of another site has sent.
func (s *site) byCaller(answer http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if why := s.byPage(r, nil); why != "" {
			s.refuse(w, r, why)
			return
		}
		answer(w, r)
	}
}

// refuse also warns: for a proxy that is not recognised as one, the refusal is an outage.
func (s *site) refuse(w http.ResponseWriter, r *http.Request, why string) {
	s.server.WarnRefused(r.RemoteAddr, why)
	answers.Fail(w, http.StatusForbidden, why)
}

// bearer reports whether a request that is admitted shows the token in a way that no browser does by itself, as it does with a password.
func (s *site) bearer(r *http.Request) bool {
	_, _, basic := r.BasicAuth()
	return s.token != nil && !basic
}

func isAddress(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	_, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil || strings.EqualFold(host, "localhost")
}

// fromAnotherSite reports whether a browser says that the request comes from the page of another site. Another port of this machine is
// another site, too.
func fromAnotherSite(r *http.Request) bool {
	return slices.ContainsFunc(r.Header["Sec-Fetch-Site"], func(site string) bool { return site != "same-origin" && site != "none" }) ||
		slices.ContainsFunc(r.Header["Origin"], func(origin string) bool {
			_, host, _ := strings.Cut(origin, "://")
			return !strings.EqualFold(host, r.Host)
		})
}

// forwarded reports whether a check has a header that the page of another site cannot set: one that proxies set, or one from which the
// key is made.
func forwarded(r *http.Request, sources []source) bool {
	headers := []string{"Forwarded", "X-Forwarded-For", "X-Real-Ip"}
	for _, from := range sources {
		if from.header != "" && !sentByBrowsers[from.header] && !strings.HasPrefix(from.header, "Sec-") {
			headers = append(headers, from.header)
		}
	}
	return slices.ContainsFunc(headers, func(name string) bool { return r.Header[name] != nil })
}

// sentByBrowsers are the headers that browsers set by themselves, or that a page may set without asking, as the Fetch standard has them.
var sentByBrowsers = map[string]bool{
	"Accept": true, "Accept-Charset": true, "Accept-Encoding": true, "Accept-Language": true,
	"Access-Control-Request-Headers": true, "Access-Control-Request-Method": true, "Access-Control-Request-Private-Network": true,
	"Cache-Control": true, "Connection": true, "Content-Language": true, "Content-Length": true, "Content-Type": true,
	"Cookie": true, "Device-Memory": true, "Dnt": true, "Downlink": true, "Dpr": true, "Ect": true, "Host": true,
	"If-Modified-Since": true, "If-None-Match": true, "Keep-Alive": true, "Origin": true, "Pragma": true, "Priority": true,
	"Purpose": true, "Range": true, "Referer": true, "Rtt": true, "Save-Data": true, "Te": true, "Transfer-Encoding": true,
	"Upgrade": true, "Upgrade-Insecure-Requests": true, "User-Agent": true, "Viewport-Width": true, "Width": true,
}
