// Package keys reads a key set for the Go peers that verify tokens. It stands apart from package peer, so that those that verify
// nothing do not carry the library.
package keys

import (
	"context"

	"github.com/lestrrat-go/jwx/v3/jwk"
)

// Fetch gives each key in the form that read gives it, by kid; a key without a kid is left out. A real service would fetch again from
// time to time.
func Fetch[Form any](url string, read func(jwk.Key) (Form, error)) (map[string]Form, error) {
	set, err := jwk.Fetch(context.Background(), url)
	if err != nil {
		return nil, err
	}
	byKid := map[string]Form{}
	for index := range set.Len() {
		key, _ := set.Key(index)
		kid, found := key.KeyID()
		if !found || kid == "" {
			continue
		}
		if byKid[kid], err = read(key); err != nil {
			return nil, err
		}
	}
	return byKid, nil
}
