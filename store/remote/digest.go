package remote

import (
	"bytes"
	"cmp"
	"crypto/sha1"
	"encoding/binary"
	"fmt"
	"slices"
)

// Digest is that of what the engine had under a key of Open when the view was read.
func (v *View) Digest(key []byte) []byte {
	return v.find(v.store.options.Prefix + string(key)).read.digest()
}

// Still reports whether a key of Open has the content of a digest, and the same expiry.
func (v *View) Still(key, digest []byte) bool {
	now := v.Digest(key)
	nowMs, wasMs := int64(binary.BigEndian.Uint64(now)), int64(binary.BigEndian.Uint64(digest))
	return bytes.Equal(now[8:], digest[8:]) && (nowMs == wasMs || nowMs != noExpiry && wasMs != noExpiry && near(nowMs, wasMs))
}

// digest is the expiry, which differs by some ms whenever it is read, and a SHA-1 of the rest.
func (c *content) digest() []byte {
	h := sha1.New()
	fmt.Fprintf(h, "%s %q", c.kind, c.text)
	for _, f := range slices.SortedFunc(slices.Values(c.fields), func(a, b field) int { return cmp.Compare(a.name, b.name) }) {
		fmt.Fprintf(h, " %q %q", f.name, f.text)
	}
	return h.Sum(binary.BigEndian.AppendUint64(nil, uint64(c.expiry)))
}
