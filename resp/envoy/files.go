package envoy

import (
	"celld/persistence/regular"
	"celld/resp/envoy/domains"
)

// readFiles reads a file, or all files in a directory and below, in the order of their names: see regular.Walk.
func readFiles(path string) (files []domains.File, err error) {
	err = regular.Walk(path, func(name string, text []byte) {
		files = append(files, domains.File{Name: name, Text: text})
	})
	if err != nil {
		return nil, err
	}
	return files, nil
}
