// Package connection is the commands about a client's own connection, and CLIENT LIST, KILL and UNBLOCK about those of others.
package connection
