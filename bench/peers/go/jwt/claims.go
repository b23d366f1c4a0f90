package main

import (
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/valyala/fastjson"

	"account-authz/bench/peers/peer"
)

const (
	leeway             = 30 * time.Second
	maxLifetimeSeconds = 86_400
)

// The claims of a token by their exact names; encoding/json would take "Acc" for "acc" too. Times are seconds, NaN where there is none.
type claims struct {
	peer.Principal
	audience      jwt.ClaimStrings
	exp, nbf, iat float64
}

var (
	parsers  fastjson.ParserPool
	errClaim = errors.New("a claim outside its grammar")
)

func (c *claims) UnmarshalJSON(text []byte) error {
	parser := parsers.Get()
	defer parsers.Put(parser)
	payload, err := parser.ParseBytes(text)
	if err != nil {
		return err
	}
	if payload.Exists("cnf") {
		return errClaim
	}
	ok := true
	c.UID = textOf(payload.Get("uid"), &isFieldByte, &ok)
	c.App = textOf(payload.Get("app"), &isFieldByte, &ok)
	c.Role = textOf(payload.Get("role"), &isFieldByte, &ok)
	c.Acc = textOf(payload.Get("acc"), &isAccountByte, &ok)
	c.Iss = string(payload.GetStringBytes("iss"))
	c.exp = timeOf(payload.Get("exp"), &ok)
	c.nbf = timeOf(payload.Get("nbf"), &ok)
	c.iat = timeOf(payload.Get("iat"), &ok)
	c.audience = audienceOf(payload.Get("aud"), &ok)
	if !ok || c.Acc == "." || c.Acc == ".." {
		return errClaim
	}
	return nil
}

// Visible ASCII without space, comma, semicolon and double quote.
var isFieldByte = func() (set [256]bool) {
	for character := byte('!'); character <= '~'; character++ {
		set[character] = character != ',' && character != ';' && character != '"'
	}
	return set
}()

var isAccountByte = func() (set [256]bool) {
	for _, character := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._~-") {
		set[character] = true
	}
	return set
}()

func textOf(value *fastjson.Value, isByte *[256]bool, ok *bool) string {
	if value == nil {
		*ok = false
		return ""
	}
	text, err := value.StringBytes()
	if err != nil || len(text) == 0 || len(text) > 128 {
		*ok = false
		return ""
	}
	for _, character := range text {
		if !isByte[character] {
			*ok = false
			return ""
		}
	}
	return string(text)
}

func timeOf(value *fastjson.Value, ok *bool) float64 {
	if value == nil {
		return math.NaN()
	}
	seconds, err := value.Float64()
	if err != nil {
		*ok = false
	}
	return seconds
}

func audienceOf(value *fastjson.Value, ok *bool) jwt.ClaimStrings {
	if value == nil {
		return nil
	}
	if text, err := value.StringBytes(); err == nil {
		return jwt.ClaimStrings{string(text)}
	}
	list, err := value.Array()
	audience := make(jwt.ClaimStrings, 0, len(list))
	for _, each := range list {
		text, notText := each.StringBytes()
		err = errors.Join(err, notText)
		audience = append(audience, string(text))
	}
	*ok = *ok && err == nil
	return audience
}

// Validate is called by the parser after the registered claims.
func (c *claims) Validate() error {
	lifetime := c.exp - c.iat
	if math.IsNaN(c.iat) {
		lifetime = c.exp - float64(time.Now().UnixNano())/1e9
	} else if c.iat > c.exp {
		return errClaim
	}
	if lifetime > maxLifetimeSeconds {
		return errClaim
	}
	return nil
}

func (c *claims) GetExpirationTime() (*jwt.NumericDate, error) { return dateOf(c.exp), nil }
func (c *claims) GetNotBefore() (*jwt.NumericDate, error)      { return dateOf(c.nbf), nil }
func (c *claims) GetIssuedAt() (*jwt.NumericDate, error)       { return dateOf(c.iat), nil }
func (c *claims) GetAudience() (jwt.ClaimStrings, error)       { return c.audience, nil }
func (c *claims) GetIssuer() (string, error)                   { return c.Iss, nil }
func (c *claims) GetSubject() (string, error)                  { return "", nil }

func dateOf(seconds float64) *jwt.NumericDate {
	if math.IsNaN(seconds) {
		return nil
	}
	whole, fraction := math.Modf(seconds)
	return &jwt.NumericDate{Time: time.Unix(int64(whole), int64(fraction*1e9))}
}

// Members that change what is verified, or that name or carry a key.
var refusedMembers = []string{"crit", "b64", "zip", "jwk", "jku", "x5u"}

var tokenTypes = []string{"jwt", "at+jwt", "application/jwt", "application/at+jwt"}

func isHeader(header map[string]any) bool {
	for _, member := range refusedMembers {
		if _, found := header[member]; found {
			return false
		}
	}
	typ, _ := header["typ"].(string)
	return typ == "JWT" || slices.Contains(tokenTypes, strings.ToLower(typ))
}
