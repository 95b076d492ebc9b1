package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"firn/internal/config"
	"firn/pkg/client"
	"firn/pkg/stream"
)

const defaultAdminURL = "http://127.0.0.1:4438"

// clients are the flags of a command that talks to the clients' listener.
type clients struct {
	URL string `name:"url" placeholder:"URL" help:"Address of the server (FIRN_URL, default http://127.0.0.1:4437)."`
}

// once: a failed request is not repeated. Who runs a command sees what failed, and may
// run it again.
var once = client.Retry{GiveUp: -1}

func (c clients) client(i *invocation, retry client.Retry) (*client.Client, error) {
	return client.New(first(c.URL, i.getenv(config.EnvURL)), client.Options{HTTP: newHTTPClient(), Retry: retry})
}

// advise adds to a failed request what to do about it.
func (c clients) advise(i *invocation, err error) error {
	if errors.Is(err, client.ErrUnreachable) {
		return unreachable(err, first(c.URL, i.getenv(config.EnvURL), client.DefaultURL), "--url", config.EnvURL)
	}
	return err
}

// operators are the flags of a command that talks to the operator's listener.
type operators struct {
	AdminURL string `name:"admin-url" placeholder:"URL" help:"Address of the server's admin listener (FIRN_ADMIN_URL, default http://127.0.0.1:4438)."`
	Token    string `name:"token" placeholder:"TOKEN" help:"The server's admin.token (FIRN_ADMIN_TOKEN, or FIRN_ADMIN_TOKEN_FILE)."`
}

// call makes a request of the operator's listener and decodes its answer into v.
// Errors: [client.ErrURL], [client.ErrUnreachable], a [*client.Error].
func (o operators) call(ctx context.Context, i *invocation, method, path string, v any) error {
	resp, root, err := o.open(ctx, i, method, path)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(v); err != nil {
		return fmt.Errorf("%s: %w; is this the admin listener of a firn server? %w", root, client.ErrAnswer, err)
	}
	return nil
}

// open makes a request and returns an answer that is good, and the address that it is
// of. Errors: as for call.
func (o operators) open(ctx context.Context, i *invocation, method, path string) (*http.Response, string, error) {
	root := first(o.AdminURL, i.getenv(config.EnvAdminURL), defaultAdminURL)
	if u, err := url.Parse(root); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, root, fmt.Errorf("%q is %w", root, client.ErrURL)
	}
	token, err := o.token(i)
	if err != nil {
		return nil, root, err
	}
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(root, "/")+path, nil)
	if err != nil {
		return nil, root, fmt.Errorf("make request: %w", err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := newHTTPClient().Do(req)
	if err != nil {
		return nil, root, unreachable(fmt.Errorf("%w: %w", client.ErrUnreachable, err), root, "--admin-url", config.EnvAdminURL)
	}
	if resp.StatusCode == http.StatusOK {
		return resp, root, nil
	}
	defer resp.Body.Close()
	err = client.ReadError(resp)
	if resp.StatusCode == http.StatusUnauthorized {
		err = fmt.Errorf("%w: give the server's admin.token by --token or FIRN_ADMIN_TOKEN", err)
	}
	return nil, root, err
}

func (o operators) token(i *invocation) (string, error) {
	if t := first(o.Token, i.getenv("FIRN_ADMIN_TOKEN")); t != "" {
		return t, nil
	}
	name := i.getenv("FIRN_ADMIN_TOKEN_FILE")
	if name == "" {
		return "", nil
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return "", fmt.Errorf("read the admin token: %w", err)
	}
	return strings.TrimRight(string(data), "\r\n"), nil
}

func unreachable(err error, root, flag, variable string) error {
	return fmt.Errorf("%w\nis it running at %s? `firn serve` starts one; %s or %s names another address", err, root, flag, variable)
}

// newHTTPClient finds out soon whether there is a server, and then waits for it as
// long as it takes: a seal or a live read may.
func newHTTPClient() *http.Client {
	return &http.Client{Transport: &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
		TLSHandshakeTimeout: 5 * time.Second,
	}}
}

func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

// streamArgument is the name of a stream on the command line.
type streamArgument struct {
	Name string `arg:"" name:"bucket/stream" help:"The stream."`
}

// parse reads the name. The ids of the flat surface are those of bucket default,
// and may hold slashes. Errors: [stream.ErrBucketName], [stream.ErrStreamName].
func (a streamArgument) parse() (stream.Name, error) {
	bucket, id, ok := strings.Cut(a.Name, "/")
	if !ok {
		return stream.Name{}, fmt.Errorf("%q names no stream, write BUCKET/STREAM; %w", a.Name, errUsage)
	}
	n, err := stream.ParseName(bucket, id)
	if bucket == stream.DefaultBucket {
		n, err = stream.ParsePath(strings.Split(id, "/"))
	}
	if err != nil {
		return n, fmt.Errorf("%q: %w", a.Name, err)
	}
	return n, nil
}

// adminPath is where the operator's listener has the stream.
func adminPath(n stream.Name) string {
	segments := strings.Split(n.ID, "/")
	for i, s := range segments {
		segments[i] = url.PathEscape(s)
	}
	return "/admin/streams/" + n.Bucket + "/" + strings.Join(segments, "/")
}
