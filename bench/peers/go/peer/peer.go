// Package peer is shared by the Go peers: their options, the checks that need no token, the answers, and the gRPC server.
package peer

import (
	"encoding/json"
	"log"
	"net"
	"os"
	"strconv"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// Options is the configuration of a peer: JSON, as its last argument.
type Options struct {
	Port       int    `json:"port"`
	AnswerFile string `json:"answerFile"`
	Issuer     string `json:"issuer"`
	Audience   string `json:"audience"`
	JwksURL    string `json:"jwksUrl"`
}

// ReadOptions reads the last argument.
func ReadOptions() Options {
	var options Options
	if err := json.Unmarshal([]byte(os.Args[len(os.Args)-1]), &options); err != nil {
		log.Fatal(err)
	}
	return options
}

// Answer is the product's own allow.
func (options Options) Answer() *authv3.CheckResponse {
	bytes, err := os.ReadFile(options.AnswerFile)
	if err != nil {
		log.Fatal(err)
	}
	answer := &authv3.CheckResponse{}
	if err := proto.Unmarshal(bytes, answer); err != nil {
		log.Fatal(err)
	}
	return answer
}

// Serve runs until the process is killed.
func Serve(options Options, service authv3.AuthorizationServer) {
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(options.Port)))
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer()
	authv3.RegisterAuthorizationServer(server, service)
	log.Fatal(server.Serve(listener))
}
