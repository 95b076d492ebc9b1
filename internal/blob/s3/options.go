package s3

import (
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"firn/internal/blob"
)

// Checksum says which checksums travel with requests and answers.
type Checksum string

const (
	// ChecksumAuto sends and verifies checksums wherever the protocol has them.
	ChecksumAuto Checksum = "auto"
	// ChecksumRequiredOnly does so only where the protocol demands it, for stores
	// that do not know the newer headers.
	ChecksumRequiredOnly Checksum = "required-only"
)

// Conditional says whether conditional writes are used.
type Conditional string

const (
	// ConditionalAuto tries whether the store honours conditions. The trial writes
	// a small object ".firn-probe" below the prefix, which stays there unlisted.
	ConditionalAuto Conditional = "auto"
	// ConditionalOff refuses Puts under a condition with blob.ErrNotSupported and
	// writes nothing at start, so that credentials for reading suffice.
	ConditionalOff Conditional = "off"
)

// Options of a store. Only Bucket is required.
type Options struct {
	Bucket string
	// Prefix is put before every key, with a slash between. Leading and trailing
	// slashes do not matter: "", "/" and "a", "/a", "a/" are each the same.
	Prefix string
	// Region defaults to what the environment says, else us-east-1.
	Region string
	// Endpoint is the URL of a store other than AWS, such as https://minio:9000.
	Endpoint string
	// PathStyle puts the bucket into the path instead of the host name.
	PathStyle bool

	// AccessKey, SecretKey and SessionToken are static credentials. If AccessKey is
	// empty, the AWS chain is asked: environment, shared files, web identity, and,
	// unless Endpoint is somewhere else than AWS, the instance's role.
	AccessKey    string
	SecretKey    string
	SessionToken string

	Checksum     Checksum    // default ChecksumAuto
	Conditional  Conditional // default ConditionalAuto
	StorageClass string      // of new objects; default the bucket's
	// SSE is the server-side encryption of new objects: "", "AES256" or "aws:kms".
	SSE string
	// SSEKeyID is the KMS key of "aws:kms"; default the account's.
	SSEKeyID string

	// SinglePut is the size up to which an object is one request, in bytes; larger
	// ones are uploaded in parts. Default 64 MiB.
	SinglePut int64
	// PartSize is the size of every part but the last, in bytes, at least 5 MiB;
	// it grows for objects of more than 10,000 parts. Default 16 MiB.
	PartSize int64
	// PageSize bounds the keys of one page of a listing; default and maximum 1000.
	PageSize int32

	// IdleTimeout ends a request during which no byte moves for so long; default
	// 20 s.
	IdleTimeout time.Duration
	// MinRate is the slowest transfer that is waited for, in bytes a second: a
	// request of n bytes ends after IdleTimeout + n/MinRate. Default 256 KiB/s.
	MinRate int64
	// Conns bounds the idle connections that are kept; default 128.
	Conns int

	// Logger takes what an operator should know about the store; nil discards.
	Logger *slog.Logger
}

const (
	defaultRegion = "us-east-1"

	minPart  = 5 << 20
	maxParts = 10_000
	maxPage  = 1000
)

func (o Options) withDefaults() (Options, error) {
	o.Prefix = strings.Trim(o.Prefix, "/")
	if o.Prefix != "" {
		o.Prefix += "/"
	}
	if o.Checksum == "" {
		o.Checksum = ChecksumAuto
	}
	if o.Conditional == "" {
		o.Conditional = ConditionalAuto
	}
	if o.SinglePut <= 0 {
		o.SinglePut = 64 << 20
	}
	if o.PartSize <= 0 {
		o.PartSize = 16 << 20
	}
	if o.PageSize <= 0 || o.PageSize > maxPage {
		o.PageSize = maxPage
	}
	if o.IdleTimeout <= 0 {
		o.IdleTimeout = 20 * time.Second
	}
	if o.MinRate <= 0 {
		o.MinRate = 256 << 10
	}
	if o.Conns <= 0 {
		o.Conns = 128
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o, o.check()
}

func (o Options) check() error {
	invalid := func(format string, args ...any) error {
		return fmt.Errorf("%w: s3 options: "+format, append([]any{blob.ErrDenied}, args...)...)
	}
	switch {
	case o.Bucket == "":
		return invalid("no bucket")
	case len(o.Prefix) > blob.MaxKey/2:
		return invalid("prefix of more than %d bytes", blob.MaxKey/2)
	case o.Checksum != ChecksumAuto && o.Checksum != ChecksumRequiredOnly:
		return invalid("checksum %q is neither %s nor %s", o.Checksum, ChecksumAuto, ChecksumRequiredOnly)
	case o.Conditional != ConditionalAuto && o.Conditional != ConditionalOff:
		return invalid("conditional put %q is neither %s nor %s", o.Conditional, ConditionalAuto, ConditionalOff)
	case o.SSE != "" && o.SSE != "AES256" && o.SSE != "aws:kms":
		return invalid("server-side encryption %q is neither AES256 nor aws:kms", o.SSE)
	case o.SSEKeyID != "" && o.SSE != "aws:kms":
		return invalid("a key id needs aws:kms")
	case o.PartSize < minPart:
		return invalid("parts of %d bytes, want at least %d", o.PartSize, minPart)
	case (o.AccessKey == "") != (o.SecretKey == ""):
		return invalid("access key and secret key belong together")
	}
	if o.Endpoint != "" {
		u, err := url.Parse(o.Endpoint)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return invalid("endpoint %q is not an http or https URL", o.Endpoint)
		}
	}
	return nil
}

// onAWS reports whether requests go to AWS, where an instance may have a role.
func (o Options) onAWS() bool {
	u, err := url.Parse(o.Endpoint)
	if o.Endpoint == "" || err != nil {
		return true
	}
	h := u.Hostname()
	return strings.HasSuffix(h, ".amazonaws.com") || strings.HasSuffix(h, ".amazonaws.com.cn")
}
