// Authorino's own packages with one AuthConfig from a file: its reconciler reads it from an in-memory client instead of a Kubernetes
// API, and its service answers Check. Without the metrics and traces of its main.go, which cost time.
package main

import (
	"context"
	"log"
	"net"
	"os"
	"strings"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"github.com/go-logr/logr"
	api "github.com/kuadrant/authorino/api/v1beta3"
	"github.com/kuadrant/authorino/controllers"
	"github.com/kuadrant/authorino/pkg/index"
	authorinolog "github.com/kuadrant/authorino/pkg/log"
	"github.com/kuadrant/authorino/pkg/service"
	"google.golang.org/grpc"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"
)

// Arguments: the address to listen on, the file of the AuthConfig, the URL of the issuer that it names ISSUER_URL.
func main() {
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		log.Fatal(err)
	}
}

func run(address, file, issuerURL string) error {
	authorinolog.SetLogger(logr.Discard(), authorinolog.Options{})
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	config := &api.AuthConfig{}
	if err := yaml.UnmarshalStrict([]byte(strings.ReplaceAll(string(text), "ISSUER_URL", issuerURL)), config); err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err := api.AddToScheme(scheme); err != nil {
		return err
	}
	configs := index.NewIndex()
	reconciler := &controllers.AuthConfigReconciler{
		Client:       fake.NewClientBuilder().WithScheme(scheme).WithObjects(config).Build(),
		Logger:       logr.Discard(),
		Index:        configs,
		StatusReport: controllers.NewStatusReportMap(),
	}
	request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(config)}
	if _, err := reconciler.Reconcile(context.Background(), request); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	authv3.RegisterAuthorizationServer(server, &service.AuthService{Index: configs})
	return server.Serve(listener)
}
