// Reads queries (one JSON string a line) with Go's parsers. Prints, for each line, a JSON object: parser -> the accounts that it reads.
package main

import (
	"bufio"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"

	"github.com/gin-gonic/gin"
)

const parameter = "account_id"

type bound struct {
	Account []string `form:"account_id"`
}

func main() {
	gin.SetMode(gin.ReleaseMode)
	parsers := map[string]func(query string) []string{
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
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(make([]byte, 1<<20), 1<<20)
	output := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var query string
		if err := json.Unmarshal(lines.Bytes(), &query); err != nil {
			panic(err)
		}
		read := map[string][]string{}
		for name, parse := range parsers {
			read[name] = append([]string{}, parse(query)...)
		}
		if err := output.Encode(read); err != nil {
			panic(err)
		}
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
