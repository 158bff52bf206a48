// Package guard tells which requests the page of a web site makes its browser send.
//
//	if why := (guard.Guard{}).Program(r); why != "" { … refuse it
//
// A page of any web site can make its browser ask 127.0.0.1, by an image or a form, and can point its own site's name
// there (DNS rebinding). It must not read our answers, take from limits, or keep us busy. A browser's requests
// differ from others:
//
//   - To another site it sends Sec-Fetch-Site or Origin, and no header of the page's choice, unless OPTIONS permits that. It never does.
//   - To the page's own name it sends whatever the page wants, except Host and Via, and always Accept. By POST it also sends Origin.
//
// Proxies pass on Host, Origin and Sec-Fetch-Site of their clients. They send headers that such a page cannot send.
package guard

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Guard is what a door knows of its clients.
type Guard struct {
	AnyName bool // they may ask by any name, and not only by localhost or an address
	Token   bool // they have shown a token
}

// AnotherName and AnotherSite say why a request is refused.
const (
	AnotherName = "without a token, celld answers only requests to localhost or to an address here"
	AnotherSite = "the request comes from the page of another site"
)

// Person says why a request is refused for a page that people and tools read. Empty: it is not. A link that leads here is followed.
func (g Guard) Person(r *http.Request) (why string) {
	switch {
	case !g.AnyName && !isAddress(r.Host):
		return AnotherName
	case g.fromAnotherSite(r) && !g.bearer(r) && r.Header.Get("Sec-Fetch-Dest") != "document":
		return AnotherSite
	}
	return ""
}

// Program says why a request is refused that may be a page's, and not a program's or a proxy's. Empty: it is not. headers are those from
// which it makes a key.
func (g Guard) Program(r *http.Request, headers ...string) (why string) {
	shown := forwarded(r, headers)
	switch {
	case r.Header["Via"] != nil || g.bearer(r):
	case !g.AnyName && !isAddress(r.Host) && strings.Contains(r.Host, ".") && (!shown || r.Header["Accept"] != nil):
		return AnotherName + ", and those of proxies that send Via"
	case g.fromAnotherSite(r) && !shown:
		return AnotherSite + "; a proxy shows by Via, X-Forwarded-For or X-Real-IP that it asks"
	}
	return ""
}

// Chunked lets a connection end after a request whose body is in chunks. A proxy may have seen another end of it, by a Content-Length
// that net/http has removed (RFC 9112, section 6.1).
func Chunked(w http.ResponseWriter, r *http.Request) {
	if r.TransferEncoding != nil {
		w.Header().Set("Connection", "close")
	}
}

// bearer reports whether a request shows the token in a way that no browser does by itself, as it does with a password.
func (g Guard) bearer(r *http.Request) bool {
	_, _, basic := r.BasicAuth()
	return g.Token && !basic
}

// LoopbackOnly says that only this machine reaches an address. Of names, only localhost is known to be so.
func LoopbackOnly(hostPort string) bool {
	host, _, _ := net.SplitHostPort(hostPort)
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

func isAddress(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	_, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil || strings.EqualFold(host, "localhost")
}

// fromAnotherSite reports whether a browser says that the request comes from the page of another site. Another port of this machine is
// another site, too, and so is each name without a token: it may be rebound.
func (g Guard) fromAnotherSite(r *http.Request) bool {
	return slices.ContainsFunc(r.Header["Sec-Fetch-Site"], func(site string) bool { return site != "same-origin" && site != "none" }) ||
		slices.ContainsFunc(r.Header["Origin"], func(origin string) bool {
			_, host, _ := strings.Cut(origin, "://")
			return !strings.EqualFold(host, r.Host) || !g.Token && !isAddress(host)
		})
}

// forwarded reports whether a check has a header that the page of another site cannot set: one that proxies set, or one from which the
// key is made.
func forwarded(r *http.Request, headers []string) bool {
	proxies := []string{"Forwarded", "X-Forwarded-For", "X-Real-Ip"}
	return slices.ContainsFunc(proxies, func(name string) bool { return r.Header[name] != nil }) ||
		slices.ContainsFunc(headers, func(name string) bool {
			return r.Header[name] != nil && !sentByBrowsers[name] && !strings.HasPrefix(name, "Sec-")
		})
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
