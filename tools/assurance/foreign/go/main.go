// Reads queries or paths (one JSON string a line) with Go's parsers and routers. Prints, for each line, a JSON object: parser -> the accounts
// that it reads. Arguments: `queries`, or `paths` and a JSON object of `templates`, most specific first, and `narrowed`.
package main

import (
	"bufio"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"
)

const parameter = "account_id"

type bound struct {
	Account []string `form:"account_id"`
}

func main() {
	gin.SetMode(gin.ReleaseMode)
	parsers := queryParsers()
	if os.Args[1] == "paths" {
		parsers = routers(os.Args[2])
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(make([]byte, 1<<20), 1<<20)
	output := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var text string
		if err := json.Unmarshal(lines.Bytes(), &text); err != nil {
			panic(err)
		}
		read := map[string][]string{}
		for name, parse := range parsers {
			read[name] = append([]string{}, parse(text)...)
		}
		if err := output.Encode(read); err != nil {
			panic(err)
		}
	}
}

func queryParsers() map[string]func(string) []string {
	return map[string]func(string) []string{
		"Go net/url, ParseQuery": func(query string) []string {
			values, _ := url.ParseQuery(query)
			return values[parameter]
		},
		"Go net/http, URL.Query": func(query string) []string {
			return request(query).URL.Query()[parameter]
		},
		"Go net/http, FormValue": func(query string) []string {
			r := request(query)
			r.FormValue(parameter)
			return r.Form[parameter]
		},
		"gin, QueryArray": func(query string) []string {
			return context(query).QueryArray(parameter)
		},
		"gin, QueryMap": func(query string) []string {
			values := []string{}
			for _, value := range context(query).QueryMap(parameter) {
				values = append(values, value)
			}
			return values
		},
		"gin, ShouldBindQuery": func(query string) []string {
			var target bound
			if context(query).ShouldBindQuery(&target) != nil {
				return nil
			}
			return target.Account
		},
	}
}

type layout struct {
	Templates []string `json:"templates"`
	Narrowed  []string `json:"narrowed"`
}

func (l layout) served(template string, account string) []string {
	if slices.Contains(l.Narrowed, template) {
		return []string{"another route"}
	}
	if account == "" {
		return nil
	}
	return []string{account}
}

func routers(text string) map[string]func(string) []string {
	var l layout
	if err := json.Unmarshal([]byte(text), &l); err != nil {
		panic(err)
	}
	var served []string
	mux := http.NewServeMux()
	for _, template := range l.Templates {
		handler := func(_ http.ResponseWriter, r *http.Request) { served = l.served(template, r.PathValue(parameter)) }
		base := strings.TrimSuffix(template, "/*")
		pattern := regexp.MustCompile(":([a-z_]+)").ReplaceAllString(base, "{$1}")
		mux.HandleFunc(pattern, handler)
		if base != template {
			mux.HandleFunc(pattern+"/{rest...}", handler)
		}
	}
	return map[string]func(string) []string{
		"Go ServeMux": func(target string) []string {
			served = nil
			address, err := url.ParseRequestURI(target)
			if err != nil {
				return nil
			}
			mux.ServeHTTP(httptest.NewRecorder(), &http.Request{Method: "GET", URL: address, Header: http.Header{}})
			return served
		},
		"Go, URL.Path split by hand": func(target string) []string {
			address, err := url.ParseRequestURI(target)
			if err != nil {
				return nil
			}
			segments := strings.Split(strings.TrimSuffix(address.Path, "/"), "/")
			for _, template := range l.Templates {
				base := strings.TrimSuffix(template, "/*")
				parts := strings.Split(base, "/")
				if len(segments) < len(parts) || (base == template && len(segments) > len(parts)) {
					continue
				}
				fits, account := true, ""
				for i, part := range parts {
					if part == ":"+parameter {
						account = segments[i]
					} else if !strings.HasPrefix(part, ":") && !strings.EqualFold(part, segments[i]) {
						fits = false
					}
				}
				if fits {
					return l.served(template, account)
				}
			}
			return nil
		},
	}
}

func request(query string) *http.Request {
	return &http.Request{Method: "GET", URL: &url.URL{Path: "/", RawQuery: query}, Header: http.Header{}}
}

func context(query string) *gin.Context {
	c, _ := gin.CreateTestContext(httptest.NewRecorder())
	c.Request = request(query)
	return c
}
