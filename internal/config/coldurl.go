package config

import (
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
)

// ColdKind says what is behind the cold tier.
type ColdKind uint8

const (
	// ColdDefault is the zero [ColdURL]: a directory in the data directory. It
	// is gone from a [Config.Resolved] configuration.
	ColdDefault ColdKind = iota
	// ColdNone: there is no cold tier.
	ColdNone
	// ColdFile: a directory.
	ColdFile
	// ColdS3: a bucket of S3, or of a store that speaks its protocol.
	ColdS3
)

// ColdURL is where the cold tier is.
type ColdURL struct {
	Kind ColdKind
	// Path is the directory of a ColdFile.
	Path string
	// Bucket of a ColdS3, and the Prefix of its keys without slashes at the ends.
	Bucket, Prefix string
	// Region of the bucket; empty leaves it to the AWS environment.
	Region string
	// Endpoint is the http or https URL of the store; empty is AWS.
	Endpoint string
	// PathStyle puts the bucket into the path instead of the host name.
	PathStyle bool
}

const (
	fileScheme = "file://"
	s3Scheme   = "s3://"
)

// ParseColdURL reads what [ColdURL.String] prints: none, a file:// or s3:// URL,
// or nothing for the default.
func ParseColdURL(s string) (ColdURL, error) {
	switch {
	case s == "":
		return ColdURL{}, nil
	case s == "none":
		return ColdURL{Kind: ColdNone}, nil
	case strings.HasPrefix(s, fileScheme):
		return parseFileURL(s)
	case strings.HasPrefix(s, s3Scheme):
		return parseS3URL(s)
	}
	return ColdURL{}, fmt.Errorf("%q is no place for the cold tier: write none, file:///DIRECTORY or s3://BUCKET/PREFIX", s)
}

// parseFileURL takes the path as it is, without escapes. A first element that is
// neither / nor a dot would be the host of a proper URL: refused, not guessed.
func parseFileURL(s string) (ColdURL, error) {
	path := strings.TrimPrefix(s, fileScheme)
	if !filepath.IsAbs(path) && path != "." && !strings.HasPrefix(path, "./") && !strings.HasPrefix(path, "../") {
		return ColdURL{}, fmt.Errorf("%q names no directory: write file:///%s or file://./%s", s, path, path)
	}
	return ColdURL{Kind: ColdFile, Path: filepath.Clean(path)}, nil
}

func parseS3URL(s string) (ColdURL, error) {
	u, err := url.Parse(s)
	if err != nil {
		return ColdURL{}, fmt.Errorf("%q is not a URL: write it as in s3://bucket/prefix?region=eu-central-1", s)
	}
	switch {
	case u.User != nil:
		return ColdURL{}, fmt.Errorf("the URL of the bucket holds credentials: give them as cold.access_key_id and cold.secret_access_key")
	case u.Host == "":
		return ColdURL{}, fmt.Errorf("%q names no bucket: write s3://BUCKET/PREFIX", s)
	case u.Port() != "":
		return ColdURL{}, fmt.Errorf("%q has a port after the bucket: the address of the store is given as s3://BUCKET/PREFIX?endpoint=http://HOST:PORT", s)
	case u.Fragment != "":
		return ColdURL{}, fmt.Errorf("%q has a part after #, which means nothing here", s)
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return ColdURL{}, fmt.Errorf("%q has malformed parameters: %w", s, err)
	}
	c := ColdURL{Kind: ColdS3, Bucket: u.Host, Prefix: strings.Trim(u.Path, "/")}
	for name, values := range query {
		if len(values) != 1 {
			return ColdURL{}, fmt.Errorf("%q has the parameter %s more than once", s, name)
		}
		if err := c.setParameter(name, values[0]); err != nil {
			return ColdURL{}, fmt.Errorf("%q: %w", s, err)
		}
	}
	return c, nil
}

func (c *ColdURL) setParameter(name, value string) error {
	switch name {
	case "region":
		c.Region = value
	case "endpoint":
		e, err := url.Parse(value)
		if err != nil || e.Scheme != "http" && e.Scheme != "https" || e.Host == "" || e.User != nil || e.RawQuery != "" {
			return fmt.Errorf("endpoint %q is not of the form http://HOST:PORT or https://HOST", value)
		}
		c.Endpoint = strings.TrimSuffix(value, "/")
	case "path_style":
		switch value {
		case "true":
			c.PathStyle = true
		case "false":
			c.PathStyle = false
		default:
			return fmt.Errorf("path_style is true or false, not %q", value)
		}
	default:
		return fmt.Errorf("unknown parameter %s%s", name, didYouMean(name, []string{"region", "endpoint", "path_style"}))
	}
	return nil
}

// String is the URL. [ParseColdURL] reads it back.
func (c ColdURL) String() string {
	switch c.Kind {
	case ColdNone:
		return "none"
	case ColdFile:
		if !filepath.IsAbs(c.Path) && c.Path != "." && !strings.HasPrefix(c.Path, "../") {
			return fileScheme + "./" + c.Path
		}
		return fileScheme + c.Path
	case ColdS3:
		return c.s3String()
	}
	return ""
}

func (c ColdURL) s3String() string {
	u := url.URL{Scheme: "s3", Host: c.Bucket, Path: c.Prefix}
	query := make([]string, 0, 3)
	if c.Region != "" {
		query = append(query, "region="+url.QueryEscape(c.Region))
	}
	if c.Endpoint != "" {
		// Colons and slashes need no escape in a query and are easier to read without.
		escaped := strings.NewReplacer("%3A", ":", "%2F", "/").Replace(url.QueryEscape(c.Endpoint))
		query = append(query, "endpoint="+escaped)
	}
	if c.PathStyle {
		query = append(query, "path_style=true")
	}
	u.RawQuery = strings.Join(query, "&")
	return u.String()
}

// UnmarshalText is [ParseColdURL].
func (c *ColdURL) UnmarshalText(text []byte) (err error) {
	*c, err = ParseColdURL(string(text))
	return err
}
