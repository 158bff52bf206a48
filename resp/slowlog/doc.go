// Package slowlog keeps the last commands that took long, for SLOWLOG.
//
//	log := slowlog.New(func() int64 { return 128 }) // entries
//	log.Add(slowlog.Entry{US: 20_000, Args: slowlog.Trim(args)})
//	rows := slowlog.Rows(log)                       // GET, LEN, RESET
package slowlog
