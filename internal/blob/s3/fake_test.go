package s3_test

import (
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"firn/internal/blob"
	"firn/internal/blob/blobtest"
	"firn/internal/blob/s3"

	"github.com/rclone/gofakes3"
	"github.com/rclone/gofakes3/s3mem"
)

const (
	accessKey = "testkey"
	secretKey = "testsecretkey"
	bucket    = "firn-test"
)

// serialPuts lets one PUT at a time through: the fake checks conditions and writes
// in two steps.
func serialPuts(h http.Handler) http.Handler {
	var mu sync.Mutex
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut || r.Method == http.MethodPost {
			mu.Lock()
			defer mu.Unlock()
		}
		h.ServeHTTP(w, r)
	})
}

// startFake serves an S3 store in memory with an empty bucket.
func startFake(t *testing.T) (endpoint string) {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket(t.Context(), bucket); err != nil {
		t.Fatal(err)
	}
	fake := gofakes3.New(backend, gofakes3.WithIntegrityCheck(true),
		gofakes3.WithV4Auth(map[string]string{accessKey: secretKey}))
	srv := httptest.NewUnstartedServer(serialPuts(fake.Server()))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.Start()
	t.Cleanup(srv.Close)
	return srv.URL
}

func options(endpoint string) s3.Options {
	return s3.Options{
		Bucket: bucket, Endpoint: endpoint, PathStyle: true, AccessKey: accessKey, SecretKey: secretKey,
		Logger: slog.New(slog.DiscardHandler),
	}
}

func open(t *testing.T, opts s3.Options) *s3.Store {
	t.Helper()
	s, err := s3.Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStoreOnFake(t *testing.T) {
	for name, change := range map[string]func(*s3.Options){
		"Defaults":     func(*s3.Options) {},
		"Prefix":       func(o *s3.Options) { o.Prefix = "/some/prefix/" },
		"Pages":        func(o *s3.Options) { o.PageSize = 7 },
		"RequiredOnly": func(o *s3.Options) { o.Checksum = s3.ChecksumRequiredOnly },
		"Parts":        func(o *s3.Options) { o.SinglePut = 1 << 20; o.PartSize = 5 << 20 },
	} {
		t.Run(name, func(t *testing.T) {
			blobtest.Run(t, func(t *testing.T) blob.Store {
				opts := options(startFake(t))
				change(&opts)
				return open(t, opts)
			}, blobtest.Options{Large: 11<<20 + 3, AfterKeys: true})
		})
	}
}
