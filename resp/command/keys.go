package command

import "celld/store"

// Keys are those that a call may use.
type Keys = store.Keys
