package s3

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"firn/internal/blob"

	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// probeKey is the object that conditional writes are tried on. It is the same for
// all instances and stays: then a trial leaves nothing to delete, and racing ones
// cannot mislead each other.
const probeKey = ".firn-probe"

// verdict says which conditions the store honours.
type verdict struct {
	ifNoneMatch, ifMatch bool
}

// Check asks for one key of the bucket and, unless conditions are off, tries what
// the store does with them. Errors as of [Open].
func (s *Store) Check(ctx context.Context) error {
	cctx, cancel := context.WithTimeoutCause(ctx, s.budget(0), errStalled)
	defer cancel()
	if _, err := s.creds.Retrieve(cctx); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("check bucket %s: %w: no credentials: %v", s.opts.Bucket, blob.ErrDenied, err)
	}
	one := int32(1)
	_, err := s.client.ListObjectsV2(cctx, &s3.ListObjectsV2Input{Bucket: &s.opts.Bucket, Prefix: &s.opts.Prefix, MaxKeys: &one})
	if err != nil {
		return fmt.Errorf("check bucket %s: %w", s.opts.Bucket, s.explain(ctx, err))
	}
	if s.opts.Conditional == ConditionalOff {
		return nil
	}
	v, err := s.conditions(ctx)
	if err != nil {
		return fmt.Errorf("check bucket %s: try conditional writes: %w", s.opts.Bucket, err)
	}
	if !v.ifNoneMatch || !v.ifMatch {
		s.opts.Logger.Warn("object store ignores conditions of writes",
			"bucket", s.opts.Bucket, "if_none_match", v.ifNoneMatch, "if_match", v.ifMatch)
	}
	return nil
}

// explain adds to the meaning of an error what an operator has to change.
func (s *Store) explain(ctx context.Context, err error) error {
	a := answerOf(err)
	err = s.meaning(ctx, err)
	hint := ""
	region := a.header.Get("X-Amz-Bucket-Region")
	switch {
	case a.code == "NoSuchBucket":
		hint = "the bucket does not exist"
	case region != "" && region != s.region:
		hint = fmt.Sprintf("the bucket is in region %s, not %s", region, s.region)
	case a.code == "PermanentRedirect", a.code == "AuthorizationHeaderMalformed", a.code == "IllegalLocationConstraintException":
		hint = fmt.Sprintf("the bucket is not in region %s, or not at this endpoint", s.region)
	case a.code == "InvalidAccessKeyId", a.code == "SignatureDoesNotMatch", a.code == "ExpiredToken", a.code == "InvalidToken":
		hint = "the credentials are not valid"
	case a.code == "RequestTimeTooSkewed":
		hint = "the clock of this machine is wrong"
	case a.status == 401, a.status == 403:
		hint = "the credentials have no right to list the bucket"
	case a.status == 404, a.status == 405, a.status == 501:
		hint = "the endpoint does not look like an object store"
	case errors.Is(err, blob.ErrUnavailable) && a.status == 0:
		hint = "the endpoint does not answer"
	}
	if hint == "" {
		return err
	}
	return fmt.Errorf("%s: %w", hint, err)
}

// supports returns blob.ErrNotSupported if the store would ignore the condition.
func (s *Store) supports(ctx context.Context, opts blob.PutOptions) error {
	if !opts.IfNoneMatch && opts.IfMatch == "" {
		return nil
	}
	if s.opts.Conditional == ConditionalOff {
		return fmt.Errorf("%w: conditional writes are switched off", blob.ErrNotSupported)
	}
	v, err := s.conditions(ctx)
	if err != nil {
		return fmt.Errorf("try conditional writes: %w", err)
	}
	if opts.IfNoneMatch && !v.ifNoneMatch || opts.IfMatch != "" && !v.ifMatch {
		return fmt.Errorf("%w: store ignores or refuses the condition", blob.ErrNotSupported)
	}
	return nil
}

// trial is how far trying has come. Each answer counts once it is there: were the trial
// begun anew after a failure, a store that fails at a regular rhythm, such as each second
// write, would never let it end.
type trial struct {
	verdict
	accepted              bool // the probe object was written, or the condition is unknown
	createTold, matchTold bool // ifNoneMatch is known, ifMatch is
}

// conditions tries conditional writes, once with success.
func (s *Store) conditions(ctx context.Context) (verdict, error) {
	select {
	case s.probing <- struct{}{}:
		defer func() { <-s.probing }()
	case <-ctx.Done():
		return verdict{}, ctx.Err()
	}
	for t := &s.trial; !t.createTold; {
		refused, err := s.try(ctx, blob.PutOptions{IfNoneMatch: true})
		if err != nil {
			return verdict{}, err
		}
		// What is accepted once found the key free, or was ignored. After that it is not free.
		t.ifNoneMatch, t.createTold, t.accepted = refused, refused || t.accepted, true
	}
	if t := &s.trial; !t.matchTold {
		// No object has this ETag.
		refused, err := s.try(ctx, blob.PutOptions{IfMatch: `"00000000000000000000000000000000"`})
		if err != nil {
			return verdict{}, err
		}
		t.ifMatch, t.matchTold = refused, true
	}
	return s.trial.verdict, nil
}

// try writes the probe object and reports whether the condition was refused for
// what it says. A store that does not know the condition at all has accepted it.
func (s *Store) try(ctx context.Context, opts blob.PutOptions) (refused bool, err error) {
	k := s.opts.Prefix + probeKey
	_, err = s.putSingle(ctx, &k, strings.NewReader("firn tries conditional writes on this object\n"), opts)
	switch {
	case err == nil, errors.Is(err, blob.ErrNotSupported):
		return false, nil
	case errors.Is(err, blob.ErrPrecondition), errors.Is(err, errConflict), opts.IfMatch != "" && errors.Is(err, blob.ErrNotFound):
		return true, nil
	}
	return false, err
}
