package hot

import "fmt"

// The life of an object: intended → live → retired → forgotten, or intended →
// retired. While it is intended or retired it has an entry in the queue, which
// says when the sweep is to look at it.

func (t *txn) intend(c Intend) error {
	o, err := t.object(c.Object)
	if err != nil {
		return err
	}
	if o != nil {
		return ErrConflict
	}
	return t.put(c.Object, object{state: Intended, due: t.now + t.limits.intentGrace})
}

func (t *txn) prolong(c Prolong) error {
	o, err := t.object(c.Object)
	if err != nil {
		return err
	}
	if o == nil || o.state != Intended {
		return ErrConflict
	}
	return t.replace(c.Object, *o, object{state: Intended, due: t.now + t.limits.intentGrace})
}

// claim makes an intended object live. Errors: ErrConflict.
func (t *txn) claim(name string, is object) error {
	o, err := t.object(name)
	if err != nil {
		return err
	}
	if o == nil && t.limits.fault == FaultClaimAny {
		o = &object{}
	} else if o == nil || o.state != Intended {
		return ErrConflict
	}
	is.state = Live
	return t.replace(name, *o, is)
}

// joinable returns the record of an object whose ranges are named in several steps:
// it is intended, or an earlier step has made it live. Errors: ErrConflict.
func (t *txn) joinable(name string) (*object, error) {
	o, err := t.object(name)
	if err == nil && (o == nil || o.state == Retired) {
		err = ErrConflict
	}
	return o, err
}

// join adds content bytes to what names a joinable object.
func (t *txn) join(name string, was object, live uint64, is object) error {
	is.state, is.live, is.keep = Live, was.live+live, was.keep
	return t.replace(name, was, is)
}

// share adds a stream to those that show a snapshot.
func (t *txn) share(name string) error {
	o, err := t.liveObject(name)
	if err != nil {
		return err
	}
	is := *o
	is.live++
	return t.replace(name, *o, is)
}

// drop takes away what named an object; the last one retires it.
func (t *txn) drop(name string, n, grace uint64) error {
	o, err := t.liveObject(name)
	if err != nil {
		return err
	}
	if o.live < n {
		return fmt.Errorf("%w: object %s has %d live, %d are dropped", ErrDamaged, name, o.live, n)
	}
	is := *o
	if grace == never {
		is.keep = never
	} else {
		is.keep = max(is.keep, t.now+grace)
	}
	if is.live -= n; is.live == 0 || t.limits.fault == FaultRetireNamed {
		is.state = Retired
		if is.keep != never {
			is.due = is.keep
		}
		is.keep = 0
	}
	return t.replace(name, *o, is)
}

func (t *txn) abandon(c Abandon) error {
	for _, name := range c.Objects {
		o, err := t.object(name)
		if err != nil {
			return err
		}
		if o == nil || o.state != Intended {
			continue
		}
		if err := t.replace(name, *o, object{state: Retired, due: t.now + t.limits.grace}); err != nil {
			return err
		}
	}
	return nil
}

func (t *txn) postpone(c Postpone) error {
	for _, name := range c.Objects {
		o, err := t.object(name)
		if err != nil {
			return err
		}
		if o == nil || o.state != Retired {
			continue
		}
		is := *o
		is.due = t.now + t.limits.grace
		if err := t.replace(name, *o, is); err != nil {
			return err
		}
	}
	return nil
}

func (t *txn) forget(c Forget) error {
	for _, name := range c.Objects {
		o, err := t.object(name)
		if err != nil {
			return err
		}
		if o == nil || o.state != Retired {
			continue
		}
		if err := t.delete(keyQueue(o.due, name)); err != nil {
			return err
		}
		if err := t.delete(keyObject(name)); err != nil {
			return err
		}
	}
	return nil
}

// object returns nil when the catalog does not know the key.
func (t *txn) object(name string) (*object, error) {
	v, err := get(t.batch, keyObject(name))
	if err != nil || v == nil {
		return nil, err
	}
	o, err := decodeObject(v)
	return &o, err
}

func (t *txn) liveObject(name string) (*object, error) {
	o, err := t.object(name)
	if err != nil {
		return nil, err
	}
	if o == nil || o.state != Live {
		return nil, fmt.Errorf("%w: object %s is named but not live", ErrDamaged, name)
	}
	return o, nil
}

func (t *txn) replace(name string, was, is object) error {
	if was.due != 0 {
		if err := t.delete(keyQueue(was.due, name)); err != nil {
			return err
		}
	}
	if was.sparse() != is.sparse() {
		if err := t.move(was.sparse(), keySparse(name), is.sparse(), keySparse(name)); err != nil {
			return err
		}
	}
	return t.put(name, is)
}

func (t *txn) put(name string, o object) error {
	if o.due != 0 {
		if err := t.set(keyQueue(o.due, name), nil); err != nil {
			return err
		}
	}
	return t.set(keyObject(name), o.encode())
}
