package s3

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"firn/internal/blob"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/logging"
)

// Store is a [blob.Store] in a bucket.
type Store struct {
	opts   Options
	region string
	creds  aws.CredentialsProvider
	client *s3.Client

	probing chan struct{} // holds a token while someone tries conditions; guards trial
	trial   trial

	// singleDeletes is set once the store has refused DeleteObjects as such.
	singleDeletes atomic.Bool
}

var _ blob.Store = (*Store)(nil)

// Open returns a store whose bucket was reached. Errors say what is wrong with
// what: blob.ErrDenied for settings, rights, bucket and region, blob.ErrUnavailable
// if there was no answer.
func Open(ctx context.Context, opts Options) (*Store, error) {
	s, err := New(ctx, opts)
	if err != nil {
		return nil, err
	}
	if err := s.Check(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// New returns a store without asking the bucket for anything, for those who must
// start while it is away. Errors: blob.ErrDenied for settings.
func New(ctx context.Context, opts Options) (*Store, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	cfg, err := loadConfig(ctx, opts)
	if err != nil {
		return nil, fmt.Errorf("%w: load AWS configuration: %w", blob.ErrDenied, err)
	}
	if cfg.Region == "" {
		cfg.Region = defaultRegion
	}
	client := s3.NewFromConfig(cfg, func(o *s3.Options) {
		if opts.Endpoint != "" {
			o.BaseEndpoint = aws.String(strings.TrimRight(opts.Endpoint, "/"))
		}
		o.UsePathStyle = opts.PathStyle
		o.Retryer = aws.NopRetryer{}
		o.DisableLogOutputChecksumValidationSkipped = true
		// Set in both cases: unset means no checksum at all in some paths of the SDK.
		o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenSupported
		o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenSupported
		if opts.Checksum == ChecksumRequiredOnly {
			o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
			o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
		}
	})
	return &Store{opts: opts, region: cfg.Region, creds: cfg.Credentials, client: client, probing: make(chan struct{}, 1)}, nil
}

func loadConfig(ctx context.Context, opts Options) (aws.Config, error) {
	// Not an *http.Client: with AWS_CA_BUNDLE set the SDK wants to change the
	// transport, and fails on clients that do not let it.
	client := awshttp.NewBuildableClient().
		WithDialerOptions(func(d *net.Dialer) {
			d.Timeout = min(10*time.Second, opts.IdleTimeout)
		}).
		WithTransportOptions(func(tr *http.Transport) {
			tr.MaxIdleConns = opts.Conns
			tr.MaxIdleConnsPerHost = opts.Conns
			tr.TLSHandshakeTimeout = min(10*time.Second, opts.IdleTimeout)
			// Counted from the last byte sent; before that the watchdog looks on.
			tr.ResponseHeaderTimeout = opts.IdleTimeout
		})
	load := []func(*config.LoadOptions) error{
		config.WithHTTPClient(client),
		config.WithLogger(logging.Nop{}),
		config.WithRetryer(func() aws.Retryer { return aws.NopRetryer{} }),
	}
	if opts.Region != "" {
		load = append(load, config.WithRegion(opts.Region))
	}
	if opts.AccessKey != "" {
		load = append(load, config.WithCredentialsProvider(
			credentials.NewStaticCredentialsProvider(opts.AccessKey, opts.SecretKey, opts.SessionToken)))
	}
	if !opts.onAWS() {
		// There is no instance role to find, only seconds to lose looking for it.
		load = append(load, config.WithEC2IMDSClientEnableState(imds.ClientDisabled))
	}
	return config.LoadDefaultConfig(ctx, load...)
}

// key returns the key in the bucket. Errors: blob.ErrKey.
func (s *Store) key(key string) (*string, error) {
	if err := blob.CheckKey(key); err != nil {
		return nil, err
	}
	if err := blob.CheckKey(s.opts.Prefix + key); err != nil {
		return nil, err
	}
	return aws.String(s.opts.Prefix + key), nil
}
