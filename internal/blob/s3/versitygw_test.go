//go:build integration

package s3_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"firn/internal/blob"
	"firn/internal/blob/blobtest"
	"firn/internal/blob/s3"
	"firn/internal/versitygw"
)

// TestStoreOnVersitygw runs the suite against a real server in both forms on the
// wire: the SDK sends checksums as headers over HTTP and as trailers over TLS.
func TestStoreOnVersitygw(t *testing.T) {
	for _, tls := range []bool{false, true} {
		t.Run(fmt.Sprintf("TLS=%v", tls), func(t *testing.T) {
			srv := versitygw.Start(t, versitygw.Options{TLS: tls})
			if tls {
				t.Setenv("AWS_CA_BUNDLE", srv.CAFile)
			}
			var buckets atomic.Int32
			fresh := func(t *testing.T, change func(*s3.Options)) blob.Store {
				name := fmt.Sprintf("bucket-%d", buckets.Add(1))
				srv.MakeBucket(t, name)
				opts := s3.Options{Bucket: name, Endpoint: srv.Endpoint, PathStyle: true,
					AccessKey: srv.AccessKey, SecretKey: srv.SecretKey}
				change(&opts)
				return open(t, opts)
			}
			for name, change := range map[string]func(*s3.Options){
				"Defaults": func(*s3.Options) {},
				"PrefixPages": func(o *s3.Options) {
					o.Prefix = "a/b"
					o.PageSize = 7
				},
				"Parts": func(o *s3.Options) {
					o.SinglePut = 1 << 20
					o.PartSize = 5 << 20
				},
				"RequiredOnlyParts": func(o *s3.Options) {
					o.Checksum = s3.ChecksumRequiredOnly
					o.SinglePut = 1 << 20
					o.PartSize = 5 << 20
				},
			} {
				t.Run(name, func(t *testing.T) {
					blobtest.Run(t, func(t *testing.T) blob.Store { return fresh(t, change) },
						blobtest.Options{PlainKeys: true, Large: 11<<20 + 3})
				})
			}
		})
	}
}
