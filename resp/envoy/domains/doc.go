// Package domains reads the configuration of envoyproxy/ratelimit and finds the limit of a descriptor. It decides nothing.
//
//	set, err := domains.Parse(files, domains.Options{}) // the error joins one for each mistake
//	set.Has("shop")
//	limit, ok := set.Find("shop", descriptor.Entries)
//
// A domain is a tree of nodes. Each entry of a descriptor leads one level down: to the node of its key and value, else to the first pattern
// that matches both, else to the node of its key alone. The limit is that of the node to which the last entry leads. The format:
// https://github.com/envoyproxy/ratelimit#configuration.
package domains
