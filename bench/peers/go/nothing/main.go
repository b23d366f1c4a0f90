// A do-nothing service with grpc-go and go-control-plane: decodes the request and answers one fixed message.
package main

import (
	"context"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"

	"account-authz/bench/peers/peer"
)

type server struct {
	authv3.UnimplementedAuthorizationServer
	answer *authv3.CheckResponse
}

func (s server) Check(context.Context, *authv3.CheckRequest) (*authv3.CheckResponse, error) {
	return s.answer, nil
}

func main() {
	options := peer.ReadOptions()
	peer.Serve(options, server{answer: options.Answer()})
}
