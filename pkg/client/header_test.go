package client_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"firn/pkg/client"
)

// What a program gives for authentication goes into every request, repeated ones too.
func TestHeaderGoesIntoEveryRequest(t *testing.T) {
	var mu sync.Mutex
	asked := map[string]bool{}
	refused := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if name, password, ok := r.BasicAuth(); !ok || name != "user" || password != "secret" {
			t.Errorf("%s %s: Authorization %q", r.Method, r.URL, r.Header.Get("Authorization"))
		}
		mu.Lock()
		asked[r.Method+" "+r.URL.Query().Get("live")+strings.TrimPrefix(r.URL.Path, "/s")] = true
		refused++
		refuse := refused == 1
		mu.Unlock()
		if refuse {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Stream-Next-Offset", "3")
		w.Header().Set("Stream-Up-To-Date", "true")
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Query().Get("live") == "sse":
			w.WriteHeader(http.StatusNotImplemented)
		case r.URL.Query().Get("live") == "long-poll":
			w.Header().Set("Stream-Closed", "true")
			w.WriteHeader(http.StatusNoContent)
		case r.Method == http.MethodGet:
			w.Write([]byte("[]"))
		}
	}))
	t.Cleanup(srv.Close)
	auth := &http.Request{Header: http.Header{}}
	auth.SetBasicAuth("user", "secret")
	s, err := client.NewStream(srv.URL+"/s", client.Options{
		HTTP: srv.Client(), Header: auth.Header, Retry: client.Retry{First: time.Nanosecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	p, err := s.NewProducer(client.ProducerOptions{ContentType: "application/json"})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		head(ctx, s), second(s.Create(ctx, client.CreateOptions{})), second(s.AppendJSON(ctx, 1)), p.Append(ctx, []byte("1")), p.Close(context.Background()),
		s.Delete(ctx), s.PublishSnapshot(ctx, "3", "", strings.NewReader("")),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	if got := pages(t, s.Follow(ctx, "")); got != "\"\" 3 up to date\n\"\" 3 up to date closed\n" {
		t.Errorf("got\n%s", got)
	}
	for _, what := range []string{"HEAD ", "PUT ", "POST ", "DELETE ", "GET ", "GET sse", "GET long-poll", "PUT /snapshot/3"} {
		if !asked[what] {
			t.Errorf("%q was not asked: %v", what, asked)
		}
	}
}
