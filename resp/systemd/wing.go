package systemd

import "celld/resp"

// Wing is celld's side of systemd.
func Wing() resp.Wing {
	n := Notifier{}
	return resp.Wing{
		Open: func(o *resp.Options) (err error) {
			n.Log = o.Log
			o.Inherited, err = Sockets()
			return err
		},
		Tell: func(srv *resp.Server, state resp.State, addrs []string) {
			if n.Tell(state, addrs); state == resp.Ready {
				go n.Watch(srv.Decides)
			}
		},
	}
}
