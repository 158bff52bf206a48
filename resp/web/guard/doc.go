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
