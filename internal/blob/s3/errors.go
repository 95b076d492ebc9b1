package s3

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"firn/internal/blob"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// answer is what an error of the SDK says of the store's answer.
type answer struct {
	status  int    // 0: there was none
	code    string // S3's error code, if any
	message string
	header  http.Header
}

func answerOf(err error) answer {
	var a answer
	var re *smithyhttp.ResponseError
	if errors.As(err, &re) && re.Response != nil && re.Response.Response != nil {
		a.status, a.header = re.HTTPStatusCode(), re.Response.Header
	}
	var ae smithy.APIError
	if errors.As(err, &ae) {
		a.code, a.message = ae.ErrorCode(), ae.ErrorMessage()
	}
	return a
}

func (a answer) String() string {
	s := fmt.Sprintf("answer %d %s", a.status, a.code)
	if a.message != "" {
		s += ": " + a.message
	}
	if todo := a.advice(); todo != "" {
		s += " (" + todo + ")"
	}
	return s
}

// advice is what somebody can do about a refusal, "" when that is not known.
func (a answer) advice() string {
	switch a.code {
	case "NoSuchBucket":
		return "make the bucket, or correct its name in cold.url"
	case "AccessDenied", "AllAccessDisabled":
		return "allow these credentials to get, put, delete and list objects below the prefix"
	case "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "TokenRefreshRequired":
		return "correct or renew the credentials"
	case "PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException":
		if region := a.header.Get("X-Amz-Bucket-Region"); region != "" {
			return "the bucket is in region " + region + ": set region and endpoint in cold.url"
		}
		return "set the bucket's region and endpoint in cold.url"
	case "RequestTimeTooSkewed":
		return "set this machine's clock"
	}
	if a.status == http.StatusUnauthorized {
		return "correct or renew the credentials"
	}
	return ""
}

// errConflict: rivals write under the same key right now. It says that the store
// knows conditions.
var errConflict = fmt.Errorf("%w: conflicting write", blob.ErrUnavailable)

// byCode is what S3's error codes mean. A code says more than a status, and an
// error inside an answer 200 has nothing else.
var byCode = map[string]error{
	"NoSuchKey":                   blob.ErrNotFound,
	"InvalidRange":                blob.ErrRange,
	"PreconditionFailed":          blob.ErrPrecondition,
	"ConditionalRequestConflict":  errConflict,
	"OperationAborted":            blob.ErrUnavailable,
	"SlowDown":                    blob.ErrUnavailable,
	"InternalError":               blob.ErrUnavailable,
	"ServiceUnavailable":          blob.ErrUnavailable,
	"RequestTimeout":              blob.ErrUnavailable,
	"IncompleteBody":              blob.ErrUnavailable,
	"BadDigest":                   blob.ErrCorrupt,
	"InvalidDigest":               blob.ErrCorrupt,
	"XAmzContentSHA256Mismatch":   blob.ErrCorrupt,
	"XAmzContentChecksumMismatch": blob.ErrCorrupt,
	"NotImplemented":              blob.ErrNotSupported,
	"MethodNotAllowed":            blob.ErrNotSupported,
	"KeyTooLongError":             blob.ErrKey,
}

// sentinel returns the meaning of an answer. A plain 404 is not blob.ErrNotFound:
// a proxy or a wrong endpoint says that, too.
func (a answer) sentinel() error {
	if e, ok := byCode[a.code]; ok {
		return e
	}
	switch {
	case a.status == http.StatusPreconditionFailed:
		return blob.ErrPrecondition
	case a.status == http.StatusRequestedRangeNotSatisfiable:
		return blob.ErrRange
	case a.status == http.StatusNotImplemented, a.status == http.StatusMethodNotAllowed:
		return blob.ErrNotSupported
	case a.status == http.StatusTooManyRequests, a.status == http.StatusRequestTimeout, a.status >= 500, a.status < 300:
		return blob.ErrUnavailable
	}
	// All other 3xx and 4xx: something in rights, settings or the request.
	return blob.ErrDenied
}

// meaning gives an error of the SDK its sentinel. ctx is the caller's.
func (s *Store) meaning(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if cerr := ctx.Err(); cerr != nil {
		return cerr
	}
	a := answerOf(err)
	switch {
	case a.status == 0 && a.code == "" && isCredentials(err):
		return fmt.Errorf("%w: no credentials: %v", blob.ErrDenied, err)
	case a.status == 0 && a.code == "":
		// Not wrapped: it may hold the context error of a watchdog, which must not
		// be mistaken for the caller's.
		return fmt.Errorf("%w: %v", blob.ErrUnavailable, err)
	case a.status/100 == 2:
		// The answer was good but could not be read to its end.
		return fmt.Errorf("%w: answer %d: %v", blob.ErrUnavailable, a.status, err)
	}
	e := a.sentinel()
	if after, ok := retryAfter(a.header); ok && errors.Is(e, blob.ErrUnavailable) {
		return &blob.RetryAfterError{After: after, Err: errors.New(a.String())}
	}
	return fmt.Errorf("%w: %s", e, a)
}

// isCredentials reports whether the request was never sent because there was
// nothing to sign it with.
func isCredentials(err error) bool {
	var se *smithy.OperationError
	return errors.As(err, &se) && (strings.Contains(se.Err.Error(), "get identity:") ||
		strings.Contains(se.Err.Error(), "failed to refresh cached credentials"))
}

// bodyError gives an error met while reading a body its sentinel. ctx is the
// watchdog's.
func (s *Store) bodyError(ctx context.Context, err error) error {
	switch {
	case context.Cause(ctx) == errStalled:
		return fmt.Errorf("%w: body: %w", blob.ErrUnavailable, errStalled)
	case ctx.Err() != nil:
		return fmt.Errorf("body: %w", ctx.Err())
	case strings.Contains(err.Error(), "checksum did not match"): // the SDK's type is not exported
		return fmt.Errorf("%w: body: %v", blob.ErrCorrupt, err)
	}
	return fmt.Errorf("%w: body: %v", blob.ErrUnavailable, err)
}

// retryAfter reads the header in its form of seconds, the only one that stores
// send.
func retryAfter(h http.Header) (time.Duration, bool) {
	n, err := strconv.ParseUint(h.Get("Retry-After"), 10, 16)
	return time.Duration(n) * time.Second, err == nil && n > 0
}
