package remote

import "errors"

// ParseFailures reads what --store-failure says.
func ParseFailures(text string) (Failure, error) {
	for i, word := range []string{"error", "allow", "deny", "local"} {
		if text == word {
			return Failure(i), nil
		}
	}
	return 0, errors.New("argument must be error, allow, deny or local")
}
