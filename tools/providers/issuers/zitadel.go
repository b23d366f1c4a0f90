// The example server of zitadel/oidc, whose service user gets a JWT.
package main

import (
	"context"
	"log/slog"
	"net/http"
	"os"

	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/op"
)

type client struct{ op.Client }

func (client) AccessTokenType() op.AccessTokenType { return op.AccessTokenTypeJWT }

type store struct{ *storage.Storage }

func (s store) ClientCredentials(ctx context.Context, id, secret string) (op.Client, error) {
	found, err := s.Storage.ClientCredentials(ctx, id, secret)
	return client{found}, err
}

func (s store) GetPrivateClaimsFromScopes(context.Context, string, string, []string) (map[string]any, error) {
	return map[string]any{"account": "acme", "roles": []string{"owner"}}, nil
}

func main() {
	url := os.Getenv("URL")
	data := store{storage.NewStorage(storage.NewUserStore(url))}
	router := exampleop.SetupServer(url, data, slog.New(slog.DiscardHandler), false)
	panic(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), router))
}
