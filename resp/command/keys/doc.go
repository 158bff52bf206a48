// Package keys is Redis's commands on keys: GET, SET, DEL, EXPIRE, TTL, SCAN, OBJECT, COPY and those that read a key's
// limits as a hash.
//
//	rows := keys.Rows(keys.Options{})
//
// A key of CL.THROTTLE is a string, its TAT in decimal digits. A key of CL.TAKE is a hash of its limits.
package keys
