package hot

// sealPack names segments of several streams in one object.
func (t *txn) sealPack(c SealPack) (PackResult, error) {
	was, err := t.joinable(c.Object)
	if err != nil {
		return PackResult{}, err
	}
	var done PackResult
	live := uint64(0)
	for _, p := range c.Parts {
		ok, err := t.sealable(p.ID, p.Ref)
		if err != nil {
			return PackResult{}, err
		}
		if !ok {
			done.Passed = append(done.Passed, p.ID)
			continue
		}
		if err := t.extendSealed(p.ID, p.Ref); err != nil {
			return PackResult{}, err
		}
		live += p.Ref.To - p.Ref.From
	}
	return done, t.joinPack(c.Pack, *was, live)
}

// joinPack counts what has been named in an object. That nothing has been refuses the
// command, which has changed nothing then.
func (t *txn) joinPack(p Pack, was object, live uint64) error {
	if live == 0 {
		return ErrConflict
	}
	return t.join(p.Object, was, live, object{size: p.Size, content: p.Content})
}

// replacePack puts segments in the place of older ones.
func (t *txn) replacePack(c Replace) (PackResult, error) {
	was, err := t.joinable(c.Object)
	if err != nil {
		return PackResult{}, err
	}
	var done PackResult
	live := uint64(0)
	for _, p := range c.Parts {
		ok, err := t.replaceable(p)
		if err != nil {
			return PackResult{}, err
		}
		if !ok {
			done.Passed = append(done.Passed, p.ID)
			continue
		}
		if err := t.replaceSegments(p); err != nil {
			return PackResult{}, err
		}
		live += p.Ref.To - p.Ref.From
	}
	return done, t.joinPack(c.Pack, *was, live)
}

// replaceable reports whether a stream still has exactly the segments that are to be
// replaced, and needs the first of them.
func (t *txn) replaceable(p Replacement) (bool, error) {
	rec, err := t.stream(p.ID)
	if err != nil || rec == nil || len(p.Was) == 0 || p.Ref.To > rec.Sealed {
		return false, err
	}
	if p.Was[0].To <= rec.Floor || p.Was[0].From != p.Ref.From || p.Was[len(p.Was)-1].To != p.Ref.To {
		return false, nil
	}
	refs, err := segmentsIn(t.batch, p.ID, p.Ref.From, p.Ref.To, len(p.Was)+1)
	if err != nil || len(refs) != len(p.Was) {
		return false, err
	}
	for i, r := range refs {
		if p.Was[i] != (Piece{From: r.From, To: r.To, Object: r.Object}) || r.Object == p.Ref.Object {
			return false, nil
		}
	}
	return true, nil
}

// replaceSegments swaps segments. Who reads the old objects at the moment reads on
// during the grace.
func (t *txn) replaceSegments(p Replacement) error {
	refs, err := segmentsIn(t.batch, p.ID, p.Ref.From, p.Ref.To, len(p.Was))
	if err != nil {
		return err
	}
	rec := t.edit(p.ID)
	for _, r := range refs {
		if err := t.drop(r.Object, r.To-r.From, t.limits.grace); err != nil {
			return err
		}
		if err := t.unname(p.ID, r); err != nil {
			return err
		}
	}
	rec.Segments -= uint64(len(refs) - 1)
	if err := t.setSegment(p.ID, p.Ref, p.Ref.To > rec.Cut); err != nil {
		return err
	}
	return t.unmerge(Unmerge{ID: p.ID})
}

// unmerge looks anew whether a stream has segments to merge.
func (t *txn) unmerge(c Unmerge) error {
	rec, err := t.stream(c.ID)
	if err != nil {
		return err
	}
	if err := t.delete(keyMerge(c.ID)); err != nil || rec == nil {
		return err
	}
	return t.noteRun(rec)
}

// noteRun puts a stream that has segments to merge into the index of those. It may
// stay there when it has none any more: taking it out at once would cost every seal a
// write.
func (t *txn) noteRun(rec *Record) error {
	run, err := runOf(t.batch, rec, t.limits.sealTarget)
	if err != nil || run.Empty() {
		return err
	}
	return t.set(keyMerge(rec.ID), nil)
}
