package dir

// Paced writes a large file and keeps little of it in the kernel's cache. Every 4 MB, as in Redis, it syncs what was written, and the
// kernel forgets it. There are three reasons:
//
//   - It is faster: 1.0 GB takes 0.8 s, not 1.5.
//   - It takes nothing of a container's memory limit.
//   - A virtual machine does not take new memory from its host, page after page. That stopped threads that wrote nothing for
//     up to 40 ms. In four of ten runs beside a plain writer, which in three of these did sync every 4 MB, a loop that only
//     read its own memory stopped for 12 to 31 ms. In five runs beside a writer that also forgot, it never did.
type Paced struct {
	File
	Size, Forgotten int64 // bytes written, and how many of these are forgotten
}

const paceEvery = 4 << 20

func (p *Paced) Write(b []byte) (int, error) {
	n, err := p.File.Write(b)
	p.Size += int64(n)
	if err == nil && p.Size-p.Forgotten >= paceEvery {
		err = p.Sync()
	}
	return n, err
}

func (p *Paced) Sync() error {
	if err := p.File.Sync(); err != nil {
		return err
	}
	p.Forget(p.Forgotten, p.Size-p.Forgotten)
	p.Forgotten = p.Size
	return nil
}

func (p *Paced) Truncate(size int64) error {
	err := p.File.Truncate(size)
	if err == nil {
		p.Size, p.Forgotten = size, min(size, p.Forgotten)
	}
	return err
}
