package resp

import (
	"context"
	"fmt"

	"celld/resp/door"
)

var inside = door.Caller{Addr: "192.0.2.1:7", Trusted: true}

// ask makes an door.Ask of key limit [option value]...
func ask(key, limit string, options ...door.Option) door.Ask {
	return door.Ask{Key: key, Limits: []string{limit}, Options: options}
}

// told is how calls were answered: what was granted, or the error.
func (w *world) told(ctx context.Context, asks ...door.Ask) (told string, err error) {
	err = w.Door.Take(ctx, inside, asks, func(t *door.Taken, err error) {
		if err != nil {
			told += fmt.Sprintf("%v; ", err)
		} else {
			told += fmt.Sprintf("%d %d; ", t.Granted, t.Limits[t.Binding].Remaining)
		}
	})
	return told, err
}
