package command

// The texts of errors of which every family may have need, in Redis 7's wording.
const (
	ErrUnknownCommand = "ERR unknown command '%.128s', with args beginning with: %s"
)
