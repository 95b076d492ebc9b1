package fault

import "io"

// body returns r with the fault acted out on its bytes.
func (f *Fault) body(r io.ReadCloser) io.ReadCloser {
	switch f.Kind {
	case Cut, Short:
		end := f.Err
		if f.Kind == Short {
			end = io.EOF
		}
		return &cutReader{ReadCloser: r, left: f.At, end: end}
	case Flip:
		return &flipReader{ReadCloser: r, until: f.At}
	}
	return r
}

type cutReader struct {
	io.ReadCloser
	left int64
	end  error
}

func (c *cutReader) Read(p []byte) (int, error) {
	if c.left == 0 {
		return 0, c.end
	}
	n, err := c.ReadCloser.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	return n, err
}

type flipReader struct {
	io.ReadCloser
	until int64 // bytes before the one to flip
}

func (f *flipReader) Read(p []byte) (int, error) {
	n, err := f.ReadCloser.Read(p)
	if f.until >= 0 && f.until < int64(n) {
		p[f.until] ^= 1
	}
	f.until -= int64(n)
	return n, err
}
